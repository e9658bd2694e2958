"""Whether a text says a claim, with spans in code points of the text as stored."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.verifying import match, verdict


@pytest.mark.parametrize(
    ("claim", "text", "kind"),
    [
        ("moved to Lisbon", "😀 Maria moved to Lisbon in May.", "exact"),
        ("maria  MOVED to lisbon.", "😀 Maria moved\nto Lisbon in May.", "normalized"),
        ("ｍaria moved", "Maria moved", "normalized"),
        ("cafe\u0301 opens", "The café opens early", "normalized"),
        ("Maria moved to Lisbon in May", "In May of that year, Maria finally moved to Lisbon.", "tokens"),
    ],
)
def test_matches_and_their_spans(claim: str, text: str, kind: str) -> None:
    found = match(claim, text)
    assert found is not None and found.kind == kind
    start, end = found.span
    assert 0 <= start < end <= len(text)
    if kind == "exact":
        assert text[start:end] == claim


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The budget is 55000 dollars", "The budget is 40000 dollars"),
        ("Maria moved to Lisbon", "Maria never moved to Lisbon"),
        ("cat", "concatenate"),
        ("Maria moved to Lisbon", "Tom plays chess on Sundays"),
        ("the of", "nothing here"),
    ],
)
def test_no_support(claim: str, text: str) -> None:
    assert verdict([match(claim, text)]) == "unsupported"


def test_part_of_a_claim_is_partial_support() -> None:
    found = match("Maria moved to Lisbon with her brother Jorge", "Maria moved to Lisbon")
    assert verdict([None, found]) == "partially_supported"
    assert verdict([]) == "unsupported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Ben gave Ana the book", "Ana gave Ben the book"),
        ("Maria moved to Lisbon", "It is not true that Maria moved to Lisbon."),
        ("maria moved to LISBON", "Nobody says that Maria moved to Lisbon."),
        ("Maria zog nach Lissabon", "Es stimmt nicht, dass Maria zog nach Lissabon"),
    ],
)
def test_the_same_words_that_say_something_else_support_in_part_at_most(claim: str, text: str) -> None:
    assert verdict([match(claim, text)]) != "supported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Maria moved to Lisbon", "That is not all. Maria, with her brother, finally moved to Lisbon."),
        ("Maria moved to Lisbon", "No, wait! Maria moved to Lisbon."),
        ("Ben gave Ana the book", "Ana gave Ben the book. Then Ben gave Ana, his sister, the book back."),
        ("Maria did not move", "Maria did not move"),
    ],
)
def test_other_words_around_it_take_no_support_away(claim: str, text: str) -> None:
    assert verdict([match(claim, text)]) == "supported"


@given(st.text(max_size=200), st.text(max_size=200))
def test_spans_lie_in_the_text(claim: str, text: str) -> None:
    found = match(claim, text)
    if found is not None:
        assert 0 <= found.span[0] <= found.span[1] <= len(text)


def test_repetitions_cost_no_more_than_another_text() -> None:
    # Of this process alone, so that a busy machine fails nothing; the quadratic way takes minutes.
    began = time.process_time()
    match("ab " * 600, "abab" * 50_000)
    match("A" * 2_000, "a" * 200_000)
    assert time.process_time() - began < 5
