"""Getting in, staying in, and being put out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.review.desk import DESKTOP, PHONE, Desk
from tests.e2e.review.live import Live

pytestmark = pytest.mark.slow


def test_signing_in_through_the_real_issuer_and_out_again(desk: Desk) -> None:
    desk.page.goto(desk.live.page)
    expect(desk.button("Sign in")).to_be_visible()
    desk.look("signed-out", (DESKTOP, PHONE))
    desk.sign_in("Rita Reviewer", anew=True)
    assert "code=" not in desk.page.url and "state=" not in desk.page.url
    expect(desk.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    desk.look("queue-empty", (DESKTOP, PHONE))
    desk.page.reload()
    expect(desk.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    desk.button("Sign out").click()
    expect(desk.button("Sign in")).to_be_visible()


def test_a_refused_sign_in_says_so(desk: Desk) -> None:
    desk.page.goto(desk.live.page)
    expect(desk.button("Sign in")).to_be_visible()
    desk.page.evaluate(
        "sessionStorage.setItem('remembrancer.flow', JSON.stringify({verifier: 'v', state: 's', hash: ''}))"
    )
    desk.page.goto(f"{desk.live.page}?error=access_denied&state=s")
    expect(desk.page.get_by_role("alert")).to_contain_text("access_denied")
    desk.look("sign-in-refused")


def test_people_see_the_tabs_of_their_capabilities(desk: Desk) -> None:
    desk.sign_in("Avery Auditor")
    assert desk.page.get_by_role("navigation", name="Sections").get_by_role("link").all_inner_texts() == [
        "Audit"
    ]


def test_a_link_to_a_proposal_survives_the_sign_in(desk: Desk, live: Live) -> None:
    live.propose("Ada keeps bees on the roof of the library.")
    second = live.propose("The night train to Vienna leaves at nine.")
    desk.sign_in("Rita Reviewer", f"#/queue/{second}", anew=True)
    desk.shows("The night train to Vienna")


def test_a_token_is_renewed_before_it_ends_and_after_a_refusal(desk: Desk, live: Live) -> None:
    live.propose("Ada keeps bees on the roof of the library.")
    desk.sign_in("Rita Reviewer")
    desk.shows("bees")
    with desk.page.expect_request("**/oauth2/token") as renewal:
        desk.page.clock.fast_forward(15 * 60 * 1000)
    assert "grant_type=refresh_token" in str(renewal.value.post_data)

    refused: list[str] = []

    def spoil(route: Route) -> None:
        refused.append(route.request.url)
        route.continue_(headers={**route.request.headers, "authorization": "Bearer spoilt"})

    desk.allow("status of 401")
    live.propose("The night train to Vienna leaves at nine.")
    desk.page.route("**/v1/proposals?*", spoil, times=1)
    desk.refresh()
    expect(desk.rows).to_have_count(2)
    assert len(refused) == 1
    expect(desk.page.locator(".banners .banner")).to_have_count(0)


def test_a_session_that_is_over_keeps_what_was_typed_and_goes_on_after_signing_in(
    desk: Desk, live: Live
) -> None:
    live.propose("Ada keeps bees on the roof of the library.")
    second = live.propose("The night train to Vienna leaves at nine.")
    desk.sign_in("Rita Reviewer", f"#/queue/{second}", anew=True)
    desk.shows("night train")
    desk.press("e")
    desk.page.get_by_label("Text").fill("The night train to Vienna leaves at ten.")
    desk.page.evaluate("sessionStorage.setItem('remembrancer.refresh', 'spoilt')")
    desk.allow("status of 400")
    desk.page.clock.fast_forward(15 * 60 * 1000)
    expect(desk.page.get_by_text("Your session is over")).to_be_visible()
    expect(desk.page.get_by_label("Text")).to_have_value("The night train to Vienna leaves at ten.")
    desk.look("session-over")
    desk.button("Sign in again").click()
    desk.button(re.compile("Rita Reviewer")).click()
    desk.shows("night train")
