"""Quotes stand for exact spans of whole words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.grounding import is_boundary, occurrences


@pytest.mark.parametrize(
    ("text", "quote", "places"),
    [
        ("the cat saw the cat", "the cat", [0, 12]),
        ("the cathedral of the cat", "cat", [21]),
        ("art, party, art", "art", [0, 12]),
        ("snake_case case", "case", [11]),
        ("it costs 250 and 2500", "250", [9]),
        ("no such thing", "thang", []),
        ("anything", "", []),
        ("ana ana ana", "ana ana", [0, 4]),
        ("東京に住んでいる", "東京", [0]),
        ("東京に住んでいる", "住んで", [3]),
        ("cafe\u0301 au lait", "cafe", []),
        ("cafe\u0301 au lait", "cafe\u0301", [0]),
        ("é", "e", []),
        ("a\nb", "a\nb", [0]),
        ("Ä ä", "ä", [2]),
    ],
)
def test_a_quote_is_found_as_whole_words_only(text: str, quote: str, places: list[int]) -> None:
    assert occurrences(text, quote) == places


@given(st.text(min_size=1, max_size=60), st.data())
def test_a_span_between_boundaries_is_found_again_by_its_quote(text: str, data: st.DataObject) -> None:
    places = [place for place in range(len(text) + 1) if is_boundary(text, place)]
    start = data.draw(st.sampled_from(places))
    end = data.draw(st.sampled_from(places))
    if start < end:
        found = occurrences(text, text[start:end])
        assert start in found and found == sorted(set(found))
        assert all(text[place : place + end - start] == text[start:end] for place in found)


@given(st.text(max_size=40))
def test_a_boundary_never_splits_a_character_that_is_seen_as_one(text: str) -> None:
    for place in range(1, len(text)):
        if unicodedata.combining(text[place]):
            assert not is_boundary(text, place)
