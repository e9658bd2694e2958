"""Names that look alike are found once, in linear time; names that differ on purpose are not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.lookalikes import MIN_LETTERS, lookalikes


def pairs(*names: str) -> set[frozenset[str]]:
    return {frozenset((a, b)) for a, b, _ in lookalikes({name: name for name in names})}


@pytest.mark.parametrize(
    "alike",
    [
        ("jonathan meyer", "jonathan mayer"),
        ("globex", "globexx"),
        ("acme-corp", "acme corp"),
        ("o'neill", "oneill"),
    ],
)
def test_one_letter_or_only_punctuation_apart(alike: tuple[str, str]) -> None:
    assert pairs(*alike) == {frozenset(alike)}


@pytest.mark.parametrize(
    "different",
    [
        ("release 2024", "release 2025"),
        ("room 12 north", "room 13 north"),
        ("ana", "ani"),
        ("berlin", "lisbon"),
    ],
)
def test_digits_short_names_and_other_words_are_different(different: tuple[str, str]) -> None:
    assert pairs(*different) == set()


@given(st.lists(st.text(alphabet="abc1 -", max_size=8), max_size=12, unique=True))
def test_each_pair_once_and_never_oneself(names: list[str]) -> None:
    found = [(a, b) for a, b, _ in lookalikes({name: name for name in names})]
    assert len({frozenset(pair) for pair in found}) == len(found)
    assert all(a != b for a, b in found)
    assert all(len("".join(filter(str.isalnum, n))) >= MIN_LETTERS - 1 for pair in found for n in pair)


def test_a_crowd_of_like_names_takes_no_quadratic_time() -> None:
    names = {n: "prefix" + "x" * 40 + chr(97 + n % 26) + chr(97 + n // 26 % 26) for n in range(3_000)}
    began = time.process_time()
    list(lookalikes(names))
    assert time.process_time() - began < 5
