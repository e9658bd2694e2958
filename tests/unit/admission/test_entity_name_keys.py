"""Spellings of one entity name meet on one key, different names do not."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.names import fold, name_key

SAME = [
    ("José", unicodedata.normalize("NFD", "José")),
    ("ACME", "ＡＣＭＥ"),
    ("Acme Corp", "acme  corp"),
    ("Acme Corp", "\tAcme\u00a0Corp \n"),
    ("straße", "STRASSE"),
    ("ISTANBUL", "istanbul"),
    ("İstanbul", "istanbul"),
    ("ıstanbul", "ISTANBUL"),
    ("O’Neil", "O'Neil"),
    ("Jean‑Luc", "Jean-Luc"),
    ("ac\u200bme", "acme"),
    ("\ufeffAcme", "Acme"),
    ("ﬁnance", "finance"),
    ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
]
DIFFERENT = [("José", "Jose"), ("Anna", "Hannah"), ("Acme 1", "Acme 11"), ("C", "C++"), ("Bach", "Bäch")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_meet(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_stay_apart(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize("name", ["", "   ", "\u200b\u200e", "\x00\x01", "\ud800"])
def test_a_name_without_a_visible_character_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="visible"):
        name_key(name)


@given(st.text(max_size=80))
def test_folding_is_stable(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert fold(unicodedata.normalize("NFD", text)) == once
