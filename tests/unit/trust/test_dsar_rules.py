"""Deadlines of the jurisdictions, the root over tombstones, and the page that people read."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.dsar import (
    PERIODS,
    WARNINGS,
    Jurisdiction,
    certificate_digest,
    deadline,
    tombstone_root,
    warnings_due,
)
from remembrancer.domain.dsar_page import to_html

INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("received", "jurisdiction", "due"),
    [
        ("2026-05-04", "gdpr", "2026-06-04"),
        ("2026-01-31", "gdpr", "2026-02-28"),
        ("2028-01-30", "uk_gdpr", "2028-02-29"),
        ("2026-12-15", "gdpr", "2027-01-15"),
        ("2026-05-04", "ccpa", "2026-06-18"),
        ("2026-05-04", "us_state", "2026-06-18"),
        ("2026-05-04", "lgpd", "2026-05-19"),
        ("2026-05-04", "other", "2026-06-03"),
    ],
)
def test_when_an_answer_is_due(received: str, jurisdiction: Jurisdiction, due: str) -> None:
    def noon(day: str) -> datetime:
        return datetime.fromisoformat(f"{day}T12:00:00Z")

    assert deadline(noon(received), jurisdiction) == noon(due)


@given(INSTANTS, st.sampled_from(get_args(Jurisdiction)))
def test_every_jurisdiction_gives_between_15_and_45_days(received: datetime, where: Jurisdiction) -> None:
    assert timedelta(days=15) <= deadline(received, where) - received <= timedelta(days=45)
    assert PERIODS[where].law


@given(INSTANTS, st.integers(-20 * 86_400, 86_400))
def test_warnings_come_due_one_after_the_other(due: datetime, seconds: int) -> None:
    now = due + timedelta(seconds=seconds)
    told = warnings_due(now, due)
    assert told == sum(now >= due - before for before in WARNINGS)
    assert warnings_due(now + timedelta(hours=1), due) >= told
    assert (told == len(WARNINGS)) == (now >= due)


def test_the_root_is_that_of_the_rfc() -> None:
    """The tree of RFC 9162 over three leaves: the pair on the left, the single one on the right."""

    def leaf(mac: bytes) -> bytes:
        return hashlib.sha256(b"\x00" + mac).digest()

    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"\x01" + left + right).digest()

    a, b, c = b"a" * 32, b"b" * 32, b"c" * 32
    assert tombstone_root([]) == hashlib.sha256(b"").hexdigest()
    assert tombstone_root([a]) == leaf(a).hex()
    assert tombstone_root([c, a, b]) == node(node(leaf(a), leaf(b)), leaf(c)).hex()


@given(st.lists(st.binary(min_size=32, max_size=32), unique=True, max_size=40), st.randoms())
def test_the_root_does_not_depend_on_the_order_but_on_every_tombstone(macs: list[bytes], random: Any) -> None:
    shuffled = list(macs)
    random.shuffle(shuffled)
    assert tombstone_root(shuffled) == tombstone_root(macs)
    if macs:
        assert tombstone_root(macs[1:]) != tombstone_root(macs)
        assert tombstone_root([bytes(32 - 1) + b"\xfe", *macs[1:]]) != tombstone_root(macs)


def test_a_certificate_has_one_digest_however_it_is_stored() -> None:
    assert certificate_digest({"b": 1, "a": [2, None]}) == certificate_digest({"a": [2, None], "b": 1})
    assert certificate_digest({"a": 1}) != certificate_digest({"a": 2})


class _Page(HTMLParser):
    """What a browser would build: elements and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def bundle(text: str) -> dict[str, Any]:
    record = {
        "memory_id": "mem_1",
        "text": text,
        "title": text,
        "data_subjects": [text],
        "claimed": {text: text},
    }
    return {
        "format": "remembrancer-dsar-1", "dsar_id": "dsr_1", "memories": [record], "submissions": [],
        "proposals": [{"proposal_id": "prop_1", "text": text, "decision": None}], "attempts": [], "staged": [],
    }  # fmt: skip


OURS = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "article", "pre", "dl", "dt", "dd",
    "ul", "li",
}  # fmt: skip


@given(st.text(max_size=60))
@pytest.mark.parametrize(
    "hostile",
    [
        "", "</pre><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><svg/onload=x>", "&lt;&#60;",
        "\u202egnp.exe\u200b", "<!--", "]]>", "<style>*{}</style>",
    ],
)  # fmt: skip
def test_no_text_becomes_an_element_of_the_page(hostile: str, text: str) -> None:
    page = _Page()
    html = to_html(bundle(hostile + text))
    page.feed(html)
    page.close()
    assert page.elements <= OURS
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name"}
    assert html.count("<script") == 0 and "default-src 'none'" in html


def test_what_cannot_be_seen_is_shown_by_its_number_and_the_rest_as_it_is() -> None:
    page = _Page()
    page.feed(to_html(bundle("Zoë says <b>hi</b> & \u202ebye\u200b")))
    words = "".join(page.words)
    assert "Zoë says <b>hi</b> & [U+202E]bye[U+200B]" in words


def test_what_lies_within_a_record_is_shown() -> None:
    page = _Page()
    within = {
        "submitted": [{"text": "said again", "metadata": {"place": "Delft"}, "labels": []}],
        "claimed": {},
    }
    page.feed(to_html({**bundle("x"), "memories": [{"text": "x", **within}]}))
    words = "".join(page.words)
    assert "said again" in words and "place" in words and "Delft" in words and words.count("–") == 3
