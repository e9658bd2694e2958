"""Phrases and the interval they state: a wrong interval is worse than none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.temporal import Interval, explicit_interval, extract_interval, overlap

REFERENCE = datetime(2024, 6, 15, 14, 30, 12, 345678, tzinfo=UTC)  # a Saturday


def at(text: str) -> datetime | None:
    """`2020`, `2020-03` or `2020-03-05` at midnight UTC; empty for an open bound."""
    if not text:
        return None
    parts = [int(part) for part in text.split("-")] + [1, 1]
    return datetime(parts[0], parts[1], parts[2], tzinfo=UTC)


STATED = [
    # since and its kin: open to the future
    ("Anna has worked at Acme since 2019", "2019", ""),
    ("Anna works at Acme since March 2019", "2019-03", ""),
    ("Anna works at Acme since 5 March 2019", "2019-03-05", ""),
    ("Anna works at Acme since March 5, 2019", "2019-03-05", ""),
    ("Anna works at Acme since March 5th, 2019.", "2019-03-05", ""),
    ("Anna works at Acme since the 5th of March 2019".replace("the ", ""), "2019-03-05", ""),
    ("Since 2019 Anna works at Acme", "2019", ""),
    ("The policy holds since 2021-07-01", "2021-07-01", ""),
    ("ever since 2015 she has lived in Rome", "2015", ""),
    ("CEO since 1998", "1998", ""),
    ("as of 2023 the office is in Bonn", "2023", ""),
    ("As of May 2024, the team has 12 members", "2024-05", ""),
    ("as of 5 May 2024 the rate is 3 percent", "2024-05-05", ""),
    ("The fee is 10 euros as of 1 January 2025", "2025-01-01", ""),
    ("The new address is valid effective 1 July 2024", "2024-07-01", ""),
    ("effective from June 2024 the limit is 20", "2024-06", ""),
    ("starting in 2022 the shop is open daily", "2022", ""),
    ("starting March 2022 the shop is open daily", "2022-03", ""),
    ("starting on 2 March 2022 the shop is open daily", "2022-03-02", ""),
    ("beginning in 2022 the shop is open daily", "2022", ""),
    ("Tom is at Globex from 2024", "2024", ""),
    ("Tom is at Globex from January 2024 on", "2024-01", ""),
    ("Tom is at Globex from 2 January 2024 onwards", "2024-01-02", ""),
    ("Acme from 2019", "2019", ""),
    ("from 2019 to the present he works at Acme", "2019", ""),
    ("He works there from 2019 to present", "2019", ""),
    ("since 12.05.2021 she is the lead", "2021-05-12", ""),
    ("since 25/12/2021 she is the lead", "2021-12-25", ""),
    ("SINCE 2019 ANNA WORKS AT ACME", "2019", ""),
    # until and its kin: open to the past
    ("Anna worked at Acme until 2020", "", "2020"),
    ("Anna worked at Acme until March 2020", "", "2020-03"),
    ("Anna worked at Acme till 2020", "", "2020"),
    ("Anna worked at Acme up to 2020", "", "2020"),
    ("The offer is valid until 31 December 2024", "", "2024-12-31"),
    ("The offer is valid until December 31, 2024", "", "2024-12-31"),
    ("The offer is valid until 2024-12-31", "", "2024-12-31"),
    ("Anna worked at Acme through 2020", "", "2021"),
    ("Anna worked at Acme through March 2020", "", "2020-04"),
    ("The pass is valid through 31 December 2024", "", "2025-01-01"),
    ("used to be CEO until 2012", "", "2012"),
    # ended
    ("no longer at Acme since 2020", "", "2020"),
    ("Bob is no longer at Acme since March 2020", "", "2020-03"),
    ("Bob has not worked at Acme since 2020", "", "2020"),
    ("Bob hasn't worked at Acme since 2020", "", "2020"),
    ("Bob isn't CEO as of May 2024", "", "2024-05"),
    # bounded
    ("Anna worked at Acme from 2015 to 2018", "2015", "2018"),
    ("From 2015 to 2018 Anna worked at Acme", "2015", "2018"),
    ("Anna worked at Acme from March 2015 to June 2018", "2015-03", "2018-06"),
    ("Anna worked at Acme from 3 May 2015 until 4 June 2018", "2015-05-03", "2018-06-04"),
    ("Anna worked at Acme from 2015 till 2018", "2015", "2018"),
    ("Anna worked at Acme from 2015 through 2018", "2015", "2019"),
    ("Anna worked at Acme from January 2024 through March 2024", "2024-01", "2024-04"),
    ("Anna worked at Acme from 2015-03-01 to 2015-04-01", "2015-03-01", "2015-04-01"),
    ("Anna lived in Rome between 2015 and 2018", "2015", "2018"),
    ("between March 2015 and May 2016 the shop was open", "2015-03", "2016-05"),
    ("CEO of Acme (2015-2018)", "2015", "2018"),
    ("CEO of Acme (2015 – 2018)", "2015", "2018"),
    ("CEO of Acme from 2015 - 2018", "2015", "2018"),
    # within
    ("used to be CEO in 2012", "2012", "2013"),
    ("She was CEO in 2012", "2012", "2013"),
    ("In 2012 she was CEO", "2012", "2013"),
    ("In March 2012 she was CEO", "2012-03", "2012-04"),
    ("During 2012 she lived in Rome", "2012", "2013"),
    ("She lived in Rome in December 2012", "2012-12", "2013-01"),
    ("The price was 10 euros on 5 May 2024", "2024-05-05", "2024-05-06"),
    ("The team had five members in 2018", "2018", "2019"),
    ("She was based in Rome in 2012", "2012", "2013"),
    ("He was on leave on 29 February 2024", "2024-02-29", "2024-03-01"),
    # relative to the reference
    ("Anna was ill yesterday", "2024-06-14", "2024-06-15"),
    ("Anna is ill today", "2024-06-15", "2024-06-16"),
    ("Anna is off tomorrow", "2024-06-16", "2024-06-17"),
    ("Anna was ill last week", "2024-06-03", "2024-06-10"),
    ("Anna is on call this week", "2024-06-10", "2024-06-17"),
    ("Anna is on call next week", "2024-06-17", "2024-06-24"),
    ("Anna was the lead last month", "2024-05-01", "2024-06-01"),
    ("Anna is the lead next month", "2024-07-01", "2024-08-01"),
    ("Anna was the lead last year", "2023", "2024"),
    ("Anna is the lead this year", "2024", "2025"),
    ("since yesterday the office is closed", "2024-06-14", ""),
    ("Anna is ill since last week", "2024-06-03", ""),
    ("the office is closed until tomorrow", "", "2024-06-16"),
    ("Anna was ill three days ago", "2024-06-12", "2024-06-13"),
    ("Anna is ill since 2 days ago", "2024-06-13", ""),
]

SILENT = [
    # numbers that are no years
    "invoice total 1234 in Berlin",
    "invoice 2019 in Berlin",
    "The total is 2020",
    "room 2012 is free",
    "There are 2019 items in stock",
    "in 2000 steps",
    "He lived at 1984 Main Street",
    "The shop is in 2000 Main Street",
    "since 1234 the castle stands",
    "model 2021 in red",
    "Windows 2019 was installed in Berlin",
    "It was 2000 euros",
    "flight 1999 from Berlin",
    "He had 2015 points in 2016 games",
    # events are not validity
    "Acme was founded in 1998",
    "Elena was born on 14 July 1990",
    "The invoice was paid on 5 May 2024",
    "The bridge was built in 1932",
    "The contract was signed on 3 March 2022",
    "The house was sold in 2012",
    "The book was written in 1949",
    "Paul graduated in 2012",
    "Carla joined Initech in 2017",
    # no time at all
    "",
    "Anna works at Acme",
    "no longer at Acme",
    "used to be CEO",
    "since Acme moved",
    "until further notice",
    "from Berlin to Munich",
    "between you and me",
    # unsure
    "Anna might join in 2025",
    "If Anna was CEO in 2025",
    "Was Anna CEO in 2012?",
    "Anna plans to be in Rome from 2025",
    "Anna was CEO around 2012",
    "Anna was CEO in early 2012",
    "Anna was CEO before 2012",
    "Anna was CEO after 2012",
    "The work should be done by 2030",
    "Anna was CEO sometime in 2012",
    "She was CEO since the 1990s",
    "since March she is the lead",
    "on 5 May she was ill",
    "until Friday the office is closed",
    "Anna was ill two weeks ago",
    "since 03/04/2021 she is the lead",
    "Anna was not CEO in 2012",
    "Nobody was CEO in 2012",
    "Anna no longer worked there in 2012",
    "used to be CEO since 2012",
    "Anna did not work there from 2012 to 2014",
    # a negation of a negation, or of the whole
    "He never stopped working at Acme since 2015",
    "He hasn't stopped smoking since 2015",
    "It is not true that he works there since 2020",
    "It is false that he works there since 2020",
    "He denies that he is the owner since 2020",
    # bounds that are none
    "He works there since 1999, except 2005",
    "Since 2020 BC the wall stands",
    "closed until further notice from 2020",
    # contradictory or several
    "from 2018 to 2015 she lived in Rome",
    "She lived in Rome in 2012 and in Bonn in 2014",
    "She was CEO in 2012. He was CEO in 2014.",
    "since 31 February 2021 she is the lead",
    # artefacts of a time
    "a letter from 2019",
    "photos from 5 May 2020 are in the album",
    "The data are from 2019",
    "the invoice 1234 from 2020 is open",
    "He drank a wine from 1998",
]


def test_the_tables_are_as_large_as_promised() -> None:
    assert len(STATED) + len(SILENT) >= 120


@pytest.mark.parametrize(("text", "start", "end"), STATED)
def test_a_stated_interval(text: str, start: str, end: str) -> None:
    assert extract_interval(text, REFERENCE) == Interval(at(start), at(end))


@pytest.mark.parametrize("text", SILENT)
def test_nothing_is_stated(text: str) -> None:
    assert extract_interval(text, REFERENCE) is None


def test_an_instant_is_kept_to_the_microsecond_in_utc() -> None:
    interval = extract_interval("valid since 2024-05-06T10:00:00.000001+02:00", REFERENCE)
    assert interval == Interval(datetime(2024, 5, 6, 8, 0, 0, 1, tzinfo=UTC), None)


def test_the_reference_counts_in_utc() -> None:
    late = datetime(2024, 6, 15, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert extract_interval("Anna is ill today", late) == Interval(at("2024-06-16"), at("2024-06-17"))


def test_a_naive_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="timezone"):
        extract_interval("today", datetime(2024, 1, 1))


def test_without_a_reference_relative_words_say_nothing() -> None:
    assert explicit_interval("Anna was ill yesterday") is None
    assert explicit_interval("Anna was CEO in 2012") == Interval(at("2012"), at("2013"))


def test_windows_are_half_open() -> None:
    assert not overlap((at("2015"), at("2018")), (at("2018"), None))
    assert overlap((at("2015"), at("2018")), (at("2017"), None))
    assert overlap((None, None), (None, at("1900")))


@given(st.text(max_size=200))
def test_any_text_is_survived_and_no_interval_is_empty(text: str) -> None:
    interval = extract_interval(text, REFERENCE)
    if interval is not None and interval.valid_from is not None and interval.valid_to is not None:
        assert interval.valid_from < interval.valid_to


WORDS = [
    "since",
    "until",
    "from",
    "to",
    "in",
    "2012",
    "May",
    "5",
    "2024",
    "not",
    "last",
    "year",
    "was",
    "(",
    "-",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_order_of_its_own_words_is_survived(words: list[str]) -> None:
    interval = extract_interval(" ".join(words), REFERENCE)
    if interval is not None:
        assert (interval.valid_from, interval.valid_to) != (None, None)


@pytest.mark.parametrize(
    "unit", ["since ", "2012 ", "from 2012 to ", "\x00", "5 May 2024 ", "(2015-", "a" * 50 + " "]
)
def test_a_megabyte_is_read_in_bounded_time(unit: str) -> None:
    extract_interval(unit * (1_000_000 // len(unit)), REFERENCE)


def test_the_years_at_the_ends_of_the_calendar_are_survived() -> None:
    assert extract_interval("Anna is ill tomorrow", datetime(9999, 12, 31, tzinfo=UTC)) is None
    assert extract_interval("Anna was ill yesterday", datetime(1, 1, 1, tzinfo=UTC)) is None
