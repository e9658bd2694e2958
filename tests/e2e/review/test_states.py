"""What stands there while there is nothing to decide: loading, not reachable, not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.review.desk import DESKTOP, PHONE, Desk
from tests.e2e.review.live import Live

pytestmark = pytest.mark.slow


@contextmanager
def slow(desk: Desk, pattern: str) -> Iterator[None]:
    """What matches is answered afterwards."""
    waiting: list[Route] = []
    held = True
    desk.page.route(pattern, lambda route: waiting.append(route) if held else route.continue_())
    yield
    held = False
    for route in waiting:
        route.continue_()


def test_loading_says_so(desk: Desk, live: Live) -> None:
    live.propose("Ada keeps bees on the roof of the library.")
    with slow(desk, "**/v1/proposals?*"):
        desk.sign_in("Rita Reviewer")
        expect(desk.page.get_by_text("Loading the queue…")).to_be_visible()
        desk.look("queue-loading", (DESKTOP, PHONE))
    desk.shows("bees")
    with slow(desk, "**/v1/quarantine?*"):
        desk.tab("Quarantine")
        expect(desk.page.get_by_text("Loading…")).to_be_visible()
        desk.look("tab-loading")
    expect(desk.page.get_by_role("heading", name="Nothing is held")).to_be_visible()


def test_a_tab_that_fails_is_tried_again(desk: Desk, live: Live) -> None:
    desk.sign_in("Rita Reviewer")
    desk.allow("status of 503")
    desk.page.route("**/v1/conflicts?*", lambda route: route.fulfill(status=503, body="<html>"), times=1)
    desk.tab("Conflicts")
    expect(desk.page.get_by_role("heading", name="This could not be loaded")).to_be_visible()
    desk.look("tab-failed")
    desk.button("Try again").click()
    expect(desk.page.get_by_role("heading", name="No open conflicts")).to_be_visible()


def test_a_service_that_is_not_there_at_all(desk: Desk, live: Live) -> None:
    desk.allow("ERR_CONNECTION_REFUSED")
    desk.page.route("**/config.json", lambda route: route.abort("connectionrefused"), times=1)
    desk.page.goto(live.page)
    expect(desk.page.get_by_role("heading", name="The service cannot be reached")).to_be_visible()
    desk.look("unreachable", (DESKTOP, PHONE))
    desk.button("Try again").click()
    expect(desk.button("Sign in")).to_be_visible()


@pytest.mark.parametrize("state", ["inactive", "without a capability"])
def test_who_may_do_nothing_here_is_told_so(desk: Desk, live: Live, state: str) -> None:
    change = "active = false" if state == "inactive" else "capabilities = '{}'"
    live.sql(f"update principal set {change} where name = 'Avery Auditor'")
    try:
        desk.allow("status of 40[13]")
        desk.page.goto(live.page)
        desk.button("Sign in").click()
        desk.page.get_by_role("button", name="Avery Auditor").click()
        heading = "You cannot enter" if state == "inactive" else "There is nothing here for you"
        expect(desk.page.get_by_role("heading", name=heading)).to_be_visible()
        desk.look(f"person-{state.replace(' ', '-')}", (DESKTOP, PHONE))
    finally:
        live.sql(
            "update principal set active = true, capabilities = '{auditor}' where name = 'Avery Auditor'"
        )


def test_what_the_policy_forbids_fails_the_test_in_which_it_happens(desk: Desk, live: Live) -> None:
    desk.page.goto(live.page)
    expect(desk.button("Sign in")).to_be_visible()
    desk.page.evaluate(
        "() => { const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x'; document.body.append(i); }"
    )
    desk.page.wait_for_function("window.violations.length > 0")
    with pytest.raises(AssertionError, match="CSP: img-src"):
        desk.check()
    desk.allow(".")
