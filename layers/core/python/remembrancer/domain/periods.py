"""The stretches of time that a query names: `last May`, `in 2023`, `before 7 May 2023`, `three weeks ago`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from remembrancer.domain.measures import Date, find_measures

MAX_CHARACTERS = 2_000

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_COUNTS = {
    w: n
    for n, w in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}
_NAMED = re.compile(
    r"\b(?:(?P<day>today|yesterday)|(?P<which>last|this|past) (?:(?P<unit>week|month|year)"
    rf"|(?P<month>{'|'.join(_MONTHS)})"
    r"|(?P<season>spring|summer|autumn|fall|winter))"
    rf"|(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)}|a|an|a few|several) (?P<ago>day|week|month|year)s? ago)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:in|during|of|since|before|after|until|from|by) ((?:19|20)\d\d)\b", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|until|till|up to|by|prior to)(?: the)?$", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|from|as of)(?: the)?$", re.IGNORECASE)
_AFTER = re.compile(r"\bafter(?: the)?$", re.IGNORECASE)
_RANGE = re.compile(r"\b(?:between|from)(?: the)?$", re.IGNORECASE)
_TO = re.compile(r"\s*(?:and|to|until|till|through|-|–)\s*", re.IGNORECASE)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_EVENT = re.compile(
    r"\b(?P<side>before|after|since|until|prior to)\s+"
    r"(?P<event>(?:(?:the|my|our|his|her|their|moving|starting|getting|buying|joining)\b|[^\W\d_]{1,40}['’]s\b)"
    r"[^?.!,;]{2,80})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Period:
    """Half-open [begin, end) of UTC instants; None is an open bound, never both."""

    begin: datetime | None
    end: datetime | None

    def holds(self, instant: datetime) -> bool:
        return (self.begin is None or self.begin <= instant) and (self.end is None or instant < self.end)


@dataclass(frozen=True)
class EventBound:
    """`before the move`: a bound whose date is that of another memory."""

    before: bool
    event: str


def find_periods(query: str, now: datetime) -> list[Period]:
    """What the query names, in order; nothing for a date without a year or with two readings."""
    text = query[:MAX_CHARACTERS]
    found: list[tuple[int, int, datetime, datetime]] = []
    for measure in find_measures(text):
        if isinstance(measure.measure, Date) and len(measure.measure.readings) == 1:
            year, month, day, _ = measure.measure.readings[0]
            if year is not None and 1 <= year < 9999:
                found.append((measure.start, measure.end, *_calendar(year, month, day)))
    for match in _YEAR.finditer(text):
        found.append((match.start(1), match.end(1), *_calendar(int(match[1]), None, None)))
    found.extend(_relative(text, now.astimezone(UTC)))
    periods: list[Period] = []
    reached = 0
    opened: datetime | None = None  # where a range of two dates began
    for start, end, begin, finish in sorted(found, key=lambda hit: (hit[0], -hit[1])):
        if start < reached:
            continue
        lead, between = text[:start].rstrip(), text[reached:start]
        reached = end
        if opened is not None and opened < finish and _TO.fullmatch(between):
            periods[-1] = Period(opened, finish)
            opened = None
            continue
        opened = begin if _RANGE.search(lead) else None
        if _BEFORE.search(lead):
            periods.append(Period(None, begin))
        elif _SINCE.search(lead):
            periods.append(Period(begin, None))
        elif _AFTER.search(lead):
            periods.append(Period(finish, None))
        else:
            periods.append(Period(begin, finish))
    return periods


def event_bound(query: str) -> EventBound | None:
    """The event before or after which the query asks, when it names no date there."""
    match = _EVENT.search(query[:MAX_CHARACTERS])
    if match is None or any(character.isdigit() for character in match["event"]):
        return None
    return EventBound(match["side"].lower() in ("before", "until", "prior to"), match["event"].strip())


def _calendar(year: int, month: int | None, day: int | None) -> tuple[datetime, datetime]:
    if month is None:
        return _utc(year, 1, 1), _utc(year + 1, 1, 1)
    if day is None:
        return _utc(year, month, 1), _utc(year + month // 12, month % 12 + 1, 1)
    begin = _utc(year, month, day)
    return begin, begin + timedelta(days=1)


def _relative(text: str, now: datetime) -> Iterator[tuple[int, int, datetime, datetime]]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _NAMED.finditer(text):
        if match[0] in ("this may", "this march"):
            continue  # a verb as likely as a month
        try:
            yield (match.start(), match.end(), *_stretch(match, today))
        except (ValueError, OverflowError):
            continue  # before the year 1


def _stretch(match: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    day = timedelta(days=1)
    if named := match["day"]:
        begin = today if named.lower() == "today" else today - day
        return begin, begin + day
    if ago := match["ago"]:
        word = match["count"].lower()
        count = int(word) if word.isdigit() else _COUNTS.get(word, 1 if word in ("a", "an") else 3)
        length = {"day": 1, "week": 7, "month": 30, "year": 365}[ago.lower()]
        # A week ago is a week's width around that day: nobody counts exactly.
        middle = today - count * length * day
        return middle - (length // 2) * day, middle + (length // 2 + 1) * day
    back = 0 if match["which"].lower() == "this" else 1
    if unit := match["unit"]:
        if unit.lower() == "week":
            monday = today - timedelta(days=today.weekday() + 7 * back)
            return monday, monday + 7 * day
        if unit.lower() == "year":
            return _utc(today.year - back, 1, 1), _utc(today.year - back + 1, 1, 1)
        months = today.year * 12 + today.month - 1 - back
        return _month(months), _month(months + 1)
    if season := match["season"]:
        first = today.year * 12 + _SEASONS[season.lower()] - 1
        if first > today.year * 12 + today.month - 1 or (
            back and first + 2 >= today.year * 12 + today.month - 1
        ):
            first -= 12
        return _month(first), _month(first + 3)
    months = today.year * 12 + _MONTHS.index(match["month"].lower())
    if back and months >= today.year * 12 + today.month - 1:
        months -= 12
    return _month(months), _month(months + 1)


def _month(months: int) -> datetime:
    return _utc(months // 12, months % 12 + 1, 1)


def _utc(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
