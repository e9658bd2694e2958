"""Times, names and exclusions of a query that were once read wrongly."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from remembrancer.domain.periods import Period, find_periods
from remembrancer.domain.query import understand

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("after 2023", [Period(day(2024, 1, 1), None)]),
        ("after 7 May 2023", [Period(day(2023, 5, 8), None)]),
        ("after last May", [Period(day(2026, 6, 1), None)]),
        ("since 2023", [Period(day(2023, 1, 1), None)]),
        ("between 2019 and 2021", [Period(day(2019, 1, 1), day(2022, 1, 1))]),
        ("from 2019 to 2021", [Period(day(2019, 1, 1), day(2022, 1, 1))]),
        ("from May 2023 to July 2023", [Period(day(2023, 5, 1), day(2023, 8, 1))]),
        ("in 2019 and in 2021", [Period(day(y, 1, 1), day(y + 1, 1, 1)) for y in (2019, 2021)]),
        ("this May", [Period(day(2026, 5, 1), day(2026, 6, 1))]),
        ("do you think this may work?", []),
    ],
)
def test_times_of_a_query(query: str, expected: list[Period]) -> None:
    assert find_periods(query, NOW) == expected


def test_a_run_of_two_scripts_is_left_out_as_a_whole() -> None:
    asked = understand("内容 -Python编程 -第3章", NOW)
    assert asked.excluded == ()
    assert [form.terms for form in asked.excluded_phrases] == [("python", "编", "编程"), ("第", "3", "章")]
