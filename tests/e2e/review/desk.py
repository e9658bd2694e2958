"""A reviewer's browser window: what it shows, and what must never happen in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from tests.e2e.review.live import ROOT, Live

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / "screenshots"
WAIT_MS = 20_000
UNDO_MS = 5_000
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 860}
FOUR_K = {"width": 3840, "height": 2160}
EVERY_LOOK = os.environ.get("REM_EVERY_LOOK") == "1"
"""Every state in every size and scheme; otherwise what a change most likely breaks."""

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) =>
  window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""


_TAKE_UP = """
if (location.pathname === "/review/" && window.name === "") {
  window.name = "taken up";
  sessionStorage.setItem("remembrancer.refresh", %s);
}
"""
_sessions: dict[tuple[str, str], str] = {}


@dataclass
class Desk:
    """One window of one person. `fault` collects what fails the test when it is closed."""

    live: Live
    context: BrowserContext
    page: Page
    faults: list[str] = field(default_factory=list)
    allowed: list[re.Pattern[str]] = field(default_factory=list)

    @classmethod
    def open(cls, live: Live, context: BrowserContext) -> Desk:
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(_WATCH)
        page = context.new_page()
        desk = cls(live, context, page)
        page.on("console", desk._console)
        page.on("pageerror", lambda error: desk.faults.append(f"uncaught: {error}"))
        page.on("request", desk._request)
        page.clock.install()
        return desk

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.live.url, "data:")):
            self.faults.append(f"third party: {request.url}")

    def allow(self, pattern: str) -> None:
        """The browser logs every status of 400 or more as an error: those that the test provokes."""
        self.allowed.append(re.compile(pattern))

    def check(self) -> None:
        """Fails for CSP violations, errors and requests to other hosts."""
        if not self.page.is_closed() and self.page.url.startswith(self.live.page):
            self.faults += [f"CSP: {v}" for v in self.page.evaluate("window.violations")]
        left = [fault for fault in self.faults if not any(p.search(fault) for p in self.allowed)]
        assert left == [], "\n".join(left)

    # Getting in

    def sign_in(self, name: str, hash_: str = "", *, anew: bool = False) -> None:
        """At the real issuer the first time; later windows take up that session as a reload does."""
        kept = _sessions.get((self.live.url, name))
        if kept is not None and not anew:
            self.context.add_init_script(_TAKE_UP % json.dumps(kept))
        self.page.goto(self.live.page + hash_)
        sections = self.page.get_by_role("navigation", name="Sections")
        if kept is None or anew:
            self.page.get_by_role("button", name="Sign in").click()
            self.page.get_by_role("button", name=name).click()
            expect(sections).to_be_visible(timeout=WAIT_MS)
            _sessions[self.live.url, name] = self.page.evaluate(
                "sessionStorage.getItem('remembrancer.refresh')"
            )
        expect(sections).to_be_visible(timeout=WAIT_MS)

    def tab(self, name: str) -> None:
        self.page.get_by_role("navigation", name="Sections").get_by_role("link", name=name).click()

    # The queue

    @property
    def detail(self) -> Locator:
        return self.page.get_by_role("article", name="Proposal")

    @property
    def rows(self) -> Locator:
        return self.page.locator(".list li")

    @property
    def notice(self) -> Locator:
        return self.page.locator(".notices")

    def shows(self, text: str) -> None:
        """The proposal in focus has that text."""
        expect(self.detail.locator(".stored").first).to_contain_text(text, timeout=WAIT_MS)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name)

    def refresh(self) -> None:
        """As when the reader comes back to the window."""
        self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    def let_leave(self) -> None:
        """The undo window closes, and the answer arrives."""
        self.page.clock.fast_forward(UNDO_MS + 100)
        expect(self.notice.get_by_role("button", name="Undo")).to_have_count(0, timeout=WAIT_MS)
        expect(self.notice.locator(".notice")).to_be_visible(timeout=WAIT_MS)

    # Looking

    def look(self, name: str, sizes: Iterable[dict[str, int]] = (DESKTOP,)) -> None:
        """Accessible in light and dark, nothing cut off, and pictures for a person to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        for size in (DESKTOP, PHONE, FOUR_K) if EVERY_LOOK else sizes:
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
            for scheme in ("light", "dark") if size is DESKTOP or EVERY_LOOK else ("dark",):
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
                where = f"{name}-{size['width']}-{scheme}"
                self.page.screenshot(path=SCREENSHOTS / f"{where}.png", full_page=size is PHONE)
                # The second scheme differs in colours alone.
                self._accessible(
                    where, "['color-contrast']" if (size, scheme) == (DESKTOP, "dark") else "undefined"
                )
            self._fits(name)
        self.page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]

    def _accessible(self, where: str, rules: str) -> None:
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(AXE.read_text())
        found: list[dict[str, Any]] = self.page.evaluate(
            f"axe.run(document, {{resultTypes: ['violations'], preload: false, runOnly: {rules}}})"
            ".then((r) => r.violations)"
        )
        told = "".join(
            f"\n{v['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for v in found
            for node in v["nodes"][:2]
        )
        assert not told, f"{where}: {told}"

    def _fits(self, where: str) -> None:
        wide, room = self.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= room, f"{where}: the page scrolls sideways, {wide} > {room}"
