"""The running local system and browser windows on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.e2e.review.desk import DESKTOP, WAIT_MS, Desk
from tests.e2e.review.live import ROOT, Live, running

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine: the review page is not tested in a browser")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def system(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    assert (ROOT / "web" / "dist" / "index.html").is_file(), "the page is not built: `make page`"
    folder = tmp_path_factory.mktemp("review")
    # PostgreSQL runs as another user when the tests run as root.
    for parent in (folder, folder.parent):
        parent.chmod(0o755)
    with running(folder) as live:
        yield live


@pytest.fixture
def live(system: Live) -> Live:
    """Nothing of an earlier test in sight."""
    system.clear()
    return system


@pytest.fixture
def open_desk(live: Live, browser: Browser) -> Iterator[Callable[[], Desk]]:
    """Opens windows, each a browser profile of its own; at the end none of them may have misbehaved."""
    opened: list[Desk] = []

    def open_one() -> Desk:
        context = browser.new_context(
            viewport=DESKTOP,  # type: ignore[arg-type]
            locale="en-GB",
            timezone_id="UTC",
            permissions=["clipboard-read", "clipboard-write"],
        )
        desk = Desk.open(live, context)
        opened.append(desk)
        return desk

    yield open_one
    for desk in opened:
        try:
            desk.check()
        finally:
            desk.context.close()


@pytest.fixture
def desk(open_desk: Callable[[], Desk]) -> Desk:
    """One window, nobody signed in."""
    return open_desk()
