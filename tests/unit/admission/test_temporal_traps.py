"""Phrases in which a date is not the validity of what is stated: silent, since wrong is worse."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from remembrancer.domain.temporal import extract_interval

SILENT = [
    "Anna has lived in Rome since her divorce in 2019",
    "Since joining Acme in 2020 she has lived in Rome",
    "Until joining Acme in 2020 she lived in Rome",
    "Anna met Bob in 2019 and has lived with him since",
    "She lived in Rome in 2012 or 2013",
    "Neither Anna nor Bob was CEO in 2019",
    "Hardly anyone was there in 2019",
    "Anna rarely works at Acme since 2019",
    "Anna barely worked there until 2019",
    "Anna was almost CEO in 2019",
    "Anna failed to be CEO in 2019",
    "Anna was supposed to be CEO in 2019",
    "Anna was to be CEO in 2019",
    "Allegedly Anna is CEO since 2019",
    "Anna claims to have been CEO since 2019",
    "Anna falsely says she is CEO since 2019",
    "Anna is said to be CEO since 2019",
    "Rumour has it that she is CEO since 2019",
    "Contrary to reports that Anna is CEO since 2019",
    "Anna is CEO since 2019 - wrong",
    "She said she was CEO in 2012",
    "Anna ceased to be CEO as of 2020",
    "Anna is the former CEO since 2020",
    "Anna is an ex-CEO since 2020",
    "Anna quit Acme since 2020",
    "Membership ended as of 2020",
    "The rule is repealed as of 1 January 2020",
    "The service was discontinued as of 2020",
    "Anna was CEO from 2019 until she left",
    "Anna was CEO from 2015 to 18",
    "Anna was CEO from 2015 to 2018 inclusive",
    "Anna was CEO until 2019 at least",
    "Anna is CEO until 2025 at the latest",
    "The range is from 1900 to 2000 meters",
    "from 1500 to 2000 people were there",
    "The photos from 2010 to 2012 are in the album",
    "Records from 2010 to 2012 are archived",
    "Pages from 1990 to 2010 are missing",
    "The meeting was moved from 5 May 2024 to 7 May 2024",
    "The price rose from 2010 to 2012",
    "The price is higher than in 2012",
    "She is as fit as in 2012",
    "He is older than Anna was in 2012",
    "Anna's house is from 2012",
    "Anna has a degree from 2012",
    "Anna knows Bob, who was CEO in 2012",
    "Anna lives in a house which Bob owned until 2012",
    "Anna is CEO, Bob was CEO in 2012",
    "Anna is CEO and Bob has been CFO since 2012",
    "Anna lives in Rome and Bob lived in Oslo until 2012",
    "today's menu is soup",
    "Last week's report is ready",
    "Sales are up from last year",
]


@pytest.mark.parametrize("text", SILENT)
def test_nothing_is_stated(text: str) -> None:
    assert extract_interval(text, datetime(2024, 6, 15, 14, 30, tzinfo=UTC)) is None
