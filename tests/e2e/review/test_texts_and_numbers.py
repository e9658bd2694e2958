"""Hostile texts are shown as texts; five hundred proposals stay smooth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.review.desk import DESKTOP, PHONE, SCREENSHOTS, Desk
from tests.e2e.review.live import Live

pytestmark = pytest.mark.slow

FRAME_MS = 100

MARKUP = "<b>bold</b> <img src=x onerror=\"document.title='owned'\"> &lt;script&gt; {{7*7}} ${7*7}"
BIDI = "The account is \u202e4321\u202c now, and \u2066this\u2069 too."
INVISIBLE = "pay\u200b\u200bment ze\u00adro \u2060joins, a\u200d\u200db, flag \U0001f3f4\U000e0067\U000e0062"
LONG = "x" * 2_000
EMOJI = "\U0001f469\u200d\U0001f680 Ada \u2764\ufe0f flies \U0001f1e6\U0001f1f9 \U0001f44d\U0001f3fd " * 20
RTL = (
    "\u05e2\u05d3\u05d4 \u05d2\u05e8\u05d4 \u05d1\u05dc\u05d5\u05e0\u05d3\u05d5\u05df, 42 Main Street. "
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629"
)
COMBINING = "Z" + "\u0301\u0302\u0303" * 60 + "algo"


TEXTS = {
    "markup": MARKUP,
    "bidi": BIDI,
    "invisible": INVISIBLE,
    "long": LONG,
    "emoji": EMOJI,
    "rtl": RTL,
    "combining": COMBINING,
}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_is_text(desk: Desk, live: Live, name: str) -> None:
    text = TEXTS[name]
    proposal = live.propose("Ada keeps bees.")
    # Past the screen and the cleaning of captures: the page trusts neither.
    for field in ("content", "title", "author"):
        live.sql(
            "update proposal set body = jsonb_set(body, %s, to_jsonb(%s::text))",
            [field],
            text if field == "content" else text[:200],
        )
    live.sql("update proposal set source_prompt = %s", text)
    desk.sign_in("Robin Reviewer")
    expect(desk.detail).to_be_visible()
    assert desk.page.title() == "Queue · Remembrancer"
    assert desk.page.locator("main :is(img, script, b, iframe)").count() == 0
    shown = live.shown(proposal)
    read = desk.page.evaluate(_READ)
    for character in "\u202e\u202c\u2066\u2069\u200b\u2060\u00ad":
        assert character not in read, f"U+{ord(character):04X} reaches the screen unmarked"
    if not any(ord(c) in _LABELLED for c in shown["content"]):
        assert shown["content"].strip()[:50] in read
    if shown["screen"]["verdict"] != "clean":
        assert "nothing suspicious" not in read
    desk.look(f"hostile-{name}", (DESKTOP, PHONE))


_READ = "document.querySelector('.detail').textContent"
_LABELLED = {0x200B, 0x202E, 0x202C, 0x2066, 0x2069, 0x2060, 0xAD, 0x200D, *range(0xE0000, 0xE0080)}


def test_five_hundred_proposals_stay_smooth(desk: Desk, live: Live, browser: Browser) -> None:
    live.multiply(live.propose("Ada keeps bees on the roof of the library."), 499)
    desk.sign_in("Rita Reviewer")
    expect(desk.rows).to_have_count(50)
    expect(desk.page.get_by_role("link", name="Queue 50+")).to_be_visible()
    box = desk.page.locator(".list")
    for loaded in range(100, 501, 50):
        box.evaluate("e => e.scrollTop = e.scrollHeight")
        expect(desk.rows).to_have_count(loaded)
    expect(desk.page.get_by_role("link", name="Queue 500")).to_be_visible()

    browser.start_tracing(page=desk.page, categories=["toplevel", "devtools.timeline"])
    box.evaluate("e => e.scrollTop = 0")
    desk.page.evaluate(_SCROLL)
    for _ in range(15):
        desk.press("j")
    desk.rows.nth(250).get_by_role("button").click()
    desk.press("x", "k")
    with desk.page.expect_response("**/v1/stats/review"):
        desk.refresh()
    expect(desk.page.get_by_role("group", name="Selected proposals")).to_contain_text("1 selected")
    desk.page.evaluate("new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")
    longest = longest_task_ms(json.loads(browser.stop_tracing()), desk.page.url)
    assert desk.rows.nth(249).get_attribute("class") == "focused"
    expect(desk.rows).to_have_count(500)
    top, bottom = box.evaluate("e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")
    row = desk.rows.nth(249).bounding_box()
    assert row is not None and top <= row["y"] and row["y"] + row["height"] <= bottom + 1
    desk.page.screenshot(path=SCREENSHOTS / "five-hundred.png")
    assert 0 < longest < FRAME_MS, f"{longest:.0f} ms"


def longest_task_ms(trace: dict[str, Any], url: str) -> float:
    """The longest task of the page's main thread, by the processor time that it took: a frame waits for it, and
    the time does not depend on what else the machine does."""
    events = trace["traceEvents"]
    pages = {
        event["pid"]
        for event in events
        if url.split("#")[0] in json.dumps(event.get("args", {})) and event["name"] != "ResourceSendRequest"
    }
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name"
        and event["args"]["name"] == "CrRendererMain"
        and event["pid"] in pages
    }
    tasks = [
        event["tdur"] / 1_000
        for event in events
        if event["name"] in ("RunTask", "ThreadControllerImpl::RunTask")
        and (event["pid"], event["tid"]) in mains
        and "tdur" in event
    ]
    return max(tasks, default=0)


_SCROLL = """
async () => {
  const list = document.querySelector(".list");
  for (let at = 0; at < list.scrollHeight; at += 1500) {
    list.scrollTop = at;
    await new Promise((next) => requestAnimationFrame(next));
  }
}
"""
