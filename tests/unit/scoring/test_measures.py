"""Numbers, dates and times are read the same however they are written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.measures import Measure, differ, find_measures


def one(text: str) -> Measure:
    (found,) = find_measures(text)
    return found.measure


SAME = [
    ("3", "three"),
    ("25", "twenty-five"),
    ("1,000", "1000"),
    ("1.200,50", "1,200.50"),
    ("2 million", "2,000,000"),
    ("$2m", "2 million dollars"),
    ("10k", "10,000"),
    ("10%", "10 percent"),
    ("90 minutes", "1.5 hours"),
    ("one hour", "60 min"),
    ("2 GB", "2048 MB"),
    ("1 km", "1000 meters"),
    ("500 g", "0.5 kg"),
    ("two years", "24 months"),
    ("about 100", "105"),
    ("5 May 2024", "2024-05-05"),
    ("5 May 2024", "May 5th, 2024"),
    ("5.5.2024", "May 5, 2024"),
    ("03/04/2024", "3 April 2024"),
    ("03/04/2024", "March 4, 2024"),
    ("May 2024", "12 May 2024"),
    ("Monday", "on Mondays"),
    ("5 pm", "17:00"),
    ("5:00", "5 pm"),
    ("noon", "12:00"),
    ("midnight", "00:00"),
]
OTHER = [
    ("3", "4"),
    ("3 GB", "4 GB"),
    ("at least 12", "at least 16"),
    ("5 May 2024", "6 May 2024"),
    ("5 May", "5 June"),
    ("in 2012", "in 2013"),
    ("Monday", "Tuesday"),
    ("17:00", "18:00"),
    ("5 am", "5 pm"),
    ("03/04/2024", "5 May 2024"),
]
APART = [
    ("3", "3 GB"),
    ("5 May", "in 2024"),
    ("Monday", "5 May"),
    ("over 100", "150"),
    ("5 pm", "5"),
    ("3 km", "3 kg"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_measure_in_two_forms(a: str, b: str) -> None:
    assert differ(one(a), one(b)) is False
    assert differ(one(b), one(a)) is False


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_two_measures(a: str, b: str) -> None:
    assert differ(one(a), one(b)) is True
    assert differ(one(b), one(a)) is True


@pytest.mark.parametrize(("a", "b"), APART)
def test_measures_that_cannot_be_compared(a: str, b: str) -> None:
    assert differ(one(a), one(b)) is None


@pytest.mark.parametrize(
    "text",
    [
        "v1.2.3",
        "10.0.0.1",
        "a1b2",
        "HTTP/2",
        "x86_64",
        "one of them",
        "may",
        "sun",
        "wed",
        "#12",
        "user@2.example",
        "1" * 40,
    ],
)
def test_what_is_no_measure(text: str) -> None:
    assert find_measures(text) == []


@given(st.text(max_size=200))
def test_places_are_in_order_and_apart(text: str) -> None:
    end = 0
    for found in find_measures(text):
        assert end <= found.start < found.end <= len(text)
        end = found.end


@pytest.mark.parametrize(
    "unit", ["1", "1,", "1.", "May ", "twenty ", "$", "five-", "3 May of ", "12:", "a1 "]
)
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    started = time.process_time()
    find_measures(unit * (100_000 // len(unit)))
    assert time.process_time() - started < 5
