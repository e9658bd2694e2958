"""What changes while somebody reads: other people, time, the network."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.e2e.review.desk import Desk
from tests.e2e.review.live import Live

pytestmark = pytest.mark.slow

BEES = "Ada keeps bees on the roof of the library."
TRAIN = "The night train to Vienna leaves at nine."


def test_two_reviewers_race_and_the_loser_is_told_who_won(open_desk: Callable[[], Desk], live: Live) -> None:
    contested = live.propose(BEES)
    live.propose(TRAIN)
    rita, robin = open_desk(), open_desk()
    for desk, name in ((rita, "Rita Reviewer"), (robin, "Robin Reviewer")):
        desk.sign_in(name)
        desk.shows("bees")
    rita.press("a")
    robin.press("r")
    robin.press("Enter")
    rita.let_leave()
    expect(rita.notice).to_contain_text("Approved")
    robin.allow("status of 409")
    robin.let_leave()
    expect(robin.notice).to_contain_text("Already approved by Rita Reviewer")
    # Honest: the loser stands before what was decided, read-only.
    robin.shows("bees")
    expect(robin.detail).to_contain_text("Approved by Rita Reviewer")
    expect(robin.detail.get_by_role("group", name="Decide")).to_have_count(0)
    expect(robin.rows).to_have_count(1)
    robin.look("race-lost")
    robin.press("j")
    robin.shows("night train")
    assert live.shown(contested)["decided_by"] == "Rita Reviewer"


def test_what_somebody_else_decides_stays_before_the_reader(desk: Desk, live: Live) -> None:
    proposal = live.propose(BEES)
    live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    live.approve(proposal)
    desk.refresh()
    expect(desk.detail).to_contain_text("Approved by Robin Reviewer")
    desk.shows("bees")
    expect(desk.rows).to_have_count(1)


def test_a_change_under_the_reader_must_be_read_before_anything_is_decided(desk: Desk, live: Live) -> None:
    proposal = live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("nine")
    live.edit(proposal, "The night train to Vienna leaves at noon.")
    desk.refresh()
    alert = desk.detail.get_by_role("alert")
    expect(alert.locator("ins")).to_contain_text("noon")
    desk.look("drift")
    desk.press("a", "r", "e")
    expect(desk.notice.locator(".notice")).to_have_count(0)
    desk.button("I have read it").click()
    desk.press("a")
    desk.let_leave()
    assert live.status(proposal) == "approved"


def test_a_decision_on_a_text_that_just_changed_is_refused_and_the_change_shown(
    desk: Desk, live: Live
) -> None:
    proposal = live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("nine")
    live.edit(proposal, "The night train to Vienna leaves at noon.")
    desk.press("a")
    desk.allow("status of 409")
    desk.let_leave()
    expect(desk.notice).to_contain_text("The text changed since you read it")
    expect(desk.detail.get_by_role("alert").locator("ins")).to_contain_text("noon")
    assert live.status(proposal) == "pending"


def test_an_edit_does_not_overwrite_somebody_elses(desk: Desk, live: Live) -> None:
    proposal = live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("nine")
    desk.press("e")
    desk.page.get_by_label("Text").fill("The night train to Vienna leaves at ten.")
    live.edit(proposal, "The night train to Vienna leaves at noon.")
    desk.allow("status of 409")
    desk.press("Control+Enter")
    expect(desk.detail.get_by_role("alert").first).to_contain_text("changed while you were reading")
    expect(desk.page.get_by_label("Text")).to_have_value("The night train to Vienna leaves at ten.")
    assert live.shown(proposal)["content"].endswith("noon.")


def test_expiry_while_it_is_open(desk: Desk, live: Live) -> None:
    proposal = live.propose(BEES)
    live.due_in(proposal, 1_800)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    expect(desk.detail.locator(".countdown.warn")).to_be_visible()
    live.due_in(proposal, 240)
    desk.refresh()
    expect(desk.detail.locator(".countdown.critical")).to_be_visible()
    desk.look("critical")
    desk.page.clock.fast_forward(241_000)
    expect(desk.detail).to_contain_text("Nobody decided in time")
    expect(desk.detail.get_by_role("group", name="Decide")).to_have_count(0)
    desk.press("a")
    expect(desk.notice.locator(".notice")).to_have_count(0)
    desk.look("expired")


def test_a_decision_that_comes_too_late_is_rolled_back(desk: Desk, live: Live) -> None:
    proposal = live.propose(BEES)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    desk.press("a")
    live.due_in(proposal, -1)
    desk.allow("status of 410")
    desk.let_leave()
    expect(desk.notice).to_contain_text("it has expired")
    expect(desk.detail).to_contain_text("Nobody decided in time")
    assert live.status(proposal) == "expired"


def test_a_refresh_moves_neither_caret_nor_scroll_nor_focus(desk: Desk, live: Live) -> None:
    live.multiply(live.propose(BEES), 40)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    expect(desk.rows).to_have_count(41)
    desk.press("e")
    text = desk.page.get_by_label("Text")
    text.fill("One two three")
    desk.press("Home", "ArrowRight", "ArrowRight")
    desk.page.locator(".list").evaluate("e => e.scrollTop = 700")
    seen = desk.rows.filter(has_text="Note 12.")
    before = seen.bounding_box()
    live.propose(TRAIN)
    desk.refresh()
    expect(desk.rows).to_have_count(42)
    expect(text).to_be_focused()
    assert text.evaluate("e => [e.value, e.selectionStart]") == ["One two three", 2]
    # A row came in above; what the reader looks at stays where it is.
    after = seen.bounding_box()
    assert before is not None and after is not None and abs(before["y"] - after["y"]) < 2


def test_offline_and_back(desk: Desk, live: Live) -> None:
    proposal = live.propose(BEES)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    desk.allow("ERR_INTERNET_DISCONNECTED")
    desk.press("a")
    desk.context.set_offline(True)
    desk.let_leave()
    expect(desk.notice).to_contain_text("may not have arrived")
    desk.shows("bees")
    expect(desk.page.locator(".banners")).to_contain_text("The service cannot be reached")
    expect(desk.detail).to_contain_text("nothing can be decided now")
    desk.press("a", "r")
    expect(desk.notice.get_by_role("button", name="Undo")).to_have_count(0)
    desk.look("offline")
    assert live.status(proposal) == "pending"
    live.propose(TRAIN)
    desk.context.set_offline(False)
    expect(desk.rows).to_have_count(2)
    expect(desk.page.locator(".banners .banner")).to_have_count(0)
    desk.press("a")
    desk.let_leave()
    assert live.status(proposal) == "approved"


def test_a_service_that_fails_is_said_and_tried_again(desk: Desk, live: Live) -> None:
    live.propose(BEES)
    desk.allow("status of 502")
    desk.page.route("**/v1/proposals?*", lambda route: route.fulfill(status=502, body="<html>Bad gateway"))
    desk.sign_in("Rita Reviewer")
    expect(desk.page.get_by_role("heading", name="The queue could not be loaded")).to_be_visible()
    desk.look("queue-failed")
    desk.page.unroute_all()
    desk.button("Try again").click()
    desk.shows("bees")


@pytest.mark.parametrize("state", ["approved", "erased", "nonsense"])
def test_links_to_what_is_not_in_the_queue(desk: Desk, live: Live, state: str) -> None:
    live.propose(TRAIN)
    proposal = live.propose(BEES)
    if state == "approved":
        live.approve(proposal, reason="Ada said so herself.")
    elif state == "erased":
        live.erase_proposal(proposal)
    else:
        proposal = "prop_<img src=x onerror=alert(1)>"
    desk.allow("status of 404")
    desk.sign_in("Rita Reviewer", f"#/queue/{proposal}")
    if state == "approved":
        desk.shows("bees")
        expect(desk.detail).to_contain_text("Approved by Robin Reviewer")
        expect(desk.detail).to_contain_text("Ada said so herself.")
        expect(desk.detail.get_by_role("group", name="Decide")).to_have_count(0)
        desk.look("link-to-decided")
    else:
        expect(desk.page.get_by_role("heading", name="There is no such proposal")).to_be_visible()
    desk.press("j")
    desk.shows("night train")


def test_what_stands_further_down_is_as_fresh(desk: Desk, live: Live) -> None:
    """The list is read anew from its head: what is in focus behind that was never read again."""
    live.multiply(live.propose(BEES), 53)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    desk.button("Show more").click()
    expect(desk.rows).to_have_count(54)
    last = live.sql("select proposal_id from proposal order by deadline desc limit 2")
    edited, decided = (f"prop_{row['proposal_id'].hex}" for row in last)
    desk.rows.last.get_by_role("button").click()
    desk.shows("Note 53")
    desk.press("e")
    desk.page.get_by_label("Text (").fill("Ada keeps bees and hens.")
    desk.press("Control+Enter")
    desk.shows("hens")
    live.edit(edited, "Ada keeps bees and geese.")
    desk.refresh()
    expect(desk.detail.get_by_role("alert").locator("ins")).to_contain_text("geese")
    desk.press("k")
    desk.shows("Note 52")
    live.approve(decided)
    desk.refresh()
    expect(desk.detail).to_contain_text("Approved by Robin Reviewer")
    expect(desk.rows).to_have_count(53)


def test_what_is_decided_alone_is_selected_no_more(desk: Desk, live: Live) -> None:
    live.propose(BEES)
    live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    desk.press("x", "j", "x", "k", "a")
    group = desk.page.get_by_role("group", name="Selected proposals")
    expect(group).to_contain_text("1 selected")
    desk.let_leave()
    expect(group).to_contain_text("1 selected")


def test_a_batch_tells_what_is_done_though_a_change_cannot_be_read(desk: Desk, live: Live) -> None:
    done, changed = live.propose(BEES), live.propose(TRAIN)
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    desk.press("x", "j", "x")
    live.edit(changed, "The night train to Vienna leaves at noon.")
    desk.allow("ERR_FAILED")
    desk.page.route("**/v1/proposals/prop_*", lambda route: route.abort())
    desk.page.get_by_role("group", name="Selected proposals").get_by_role("button", name="Approve").click()
    desk.let_leave()
    expect(desk.notice).to_contain_text("1 approved, 1 not")
    endings = desk.page.get_by_role("region", name="How the batch ended")
    expect(endings).to_contain_text("it changed since you selected it. The service cannot be reached.")
    assert live.status(done) == "approved"
