"""Numbers, dates and clock times read out of running text, and whether two of them can both hold.

A reading that could mean two things (03/04/2024, 1.200, 5:30) keeps both: two measures differ only when
no reading of the one agrees with any reading of the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "date", "time"]

_MONTH_NAMES = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
_WEEKDAY_NAMES = (
    ("monday", "mondays", "mon"),
    ("tuesday", "tuesdays", "tues", "tue"),
    ("wednesday", "wednesdays", "wed"),
    ("thursday", "thursdays", "thurs", "thu"),
    ("friday", "fridays", "fri"),
    ("saturday", "saturdays", "sat"),
    ("sunday", "sundays", "sun"),
)
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names}
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names}

_ONES = {
    word: number
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
            *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
            *("eighteen", "nineteen"),
        )
    )
}
_TENS = {
    word: number * 10
    for number, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "k": 1e3, "bn": 1e9}

_UNITS: dict[str, tuple[str, float]] = {
    word: (dimension, factor)
    for words, dimension, factor in (
        ("ms millisecond milliseconds", "duration", 0.001),
        ("s sec secs second seconds", "duration", 1.0),
        ("min mins minute minutes", "duration", 60.0),
        ("h hr hrs hour hours", "duration", 3600.0),
        ("day days", "duration", 86_400.0),
        ("week weeks", "duration", 604_800.0),
        ("month months", "months", 1.0),
        ("year years yr yrs", "months", 12.0),
        ("kb kib", "bytes", 1e3),
        ("mb mib", "bytes", 1e6),
        ("gb gib", "bytes", 1e9),
        ("tb tib", "bytes", 1e12),
        ("mm millimeter millimeters", "length", 0.001),
        ("cm centimeter centimeters", "length", 0.01),
        ("m meter meters metre metres", "length", 1.0),
        ("km kilometer kilometers kilometre kilometres", "length", 1000.0),
        ("mile miles mi", "length", 1609.344),
        ("ft foot feet", "length", 0.3048),
        ("inch inches", "length", 0.0254),
        ("g gram grams", "mass", 0.001),
        ("kg kilo kilos kilogram kilograms", "mass", 1.0),
        ("lb lbs pound pounds", "mass", 0.45359237),
        ("% percent pct", "percent", 1.0),
        ("$ usd dollar dollars", "usd", 1.0),
        ("€ eur euro euros", "eur", 1.0),
        ("£ gbp", "gbp", 1.0),
        ("¥ yen jpy", "jpy", 1.0),
    )
    for word in words.split()
}
# 1 GB is 1,000 MB to a disk and 1,024 to a memory bank: both count as equal.
_TOLERANCE = {"bytes": 0.1, "length": 0.005, "mass": 0.005}
_ROUGH = 0.1
_APPROXIMATE = frozenset(
    {"about", "around", "roughly", "approximately", "approx", "nearly", "almost", "circa", "ca", "~", "≈"}
)

Reading = tuple[int | None, int | None, int | None, int | None]
"""Year, month, day, weekday (Monday is 0); None where the text does not say."""


@dataclass(frozen=True)
class Number:
    """A quantity in the base unit of its dimension; `bound` is what the text limits it with (`at least`)."""

    readings: tuple[float, ...]
    dimension: str | None = None
    bound: str = ""


@dataclass(frozen=True)
class Date:
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class ClockTime:
    """Minutes of the day; `twelve_hour` when neither am/pm nor a 24-hour form settles the half."""

    minutes: int
    twelve_hour: bool = False


Measure = Number | Date | ClockTime


@dataclass(frozen=True)
class Found:
    """A measure and where it stands: a half-open range of code points."""

    measure: Measure
    start: int
    end: int


# Every measure begins like this; anything else is skipped without trying the patterns.
_START = re.compile(
    r"[$€£¥\d]|\b(?:noon|midnight|dozen|"
    + "|".join(sorted({name[:3] for name in (*MONTHS, *WEEKDAYS)} | {*_ONES, *_TENS}))
    + ")",
    re.IGNORECASE | re.ASCII,
)
_GAP = r"\s{1,4}"
_MONTH = "(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_WEEKDAY = "(?P<weekday>" + "|".join(sorted(WEEKDAYS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:1[5-9]|20|21)\d\d)"
_END = r"(?![\w@]|[.:/-]\d)"
_FLAGS = re.IGNORECASE | re.ASCII
_DATES = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\w-])",
        rf"{_DAY}\.(?P<month>1[0-2]|0?[1-9])\.{_YEAR}{_END}",
        rf"(?P<a>\d\d?)/(?P<b>\d\d?)/{_YEAR}{_END}",
        rf"(?:{_WEEKDAY},?{_GAP}(?:the{_GAP})?)?"
        rf"{_DAY}{_GAP}(?:of{_GAP})?{_MONTH}(?:,?{_GAP}{_YEAR})?{_END}",
        rf"(?:{_WEEKDAY},?{_GAP})?{_MONTH}{_GAP}{_DAY}(?:,?{_GAP}{_YEAR})?{_END}",
        rf"{_MONTH},?{_GAP}(?:of{_GAP})?{_YEAR}{_END}",
        rf"{_WEEKDAY}(?!\w)",
        rf"{_MONTH}(?!\w)",
        rf"{_YEAR}{_END}",
    )
)
_CLOCK = re.compile(
    r"(?P<hour>2[0-4]|1\d|0?\d):(?P<minute>[0-5]\d)(?:\s?(?P<half>[ap])\.?m\b\.?)?(?![\w:])"
    r"|(?P<hour2>1[0-2]|0?[1-9])\s?(?P<half2>[ap])\.?m\b\.?(?!\w)"
    r"|(?P<word>noon|midnight)\b"
    r"|(?P<hour3>1[0-2]|[1-9])\s?o'?clock\b",
    _FLAGS,
)
_FIGURE = re.compile(
    r"(?P<sign>[$€£¥]\s?)?(?P<digits>\d[\d,.]{0,30}\d|\d)(?!\d|[.,]\d)(?P<tail>%|[a-z]{1,3}(?!\w))?", _FLAGS
)
_WORD = re.compile(r"[a-z]{1,12}(?![a-z])|%", _FLAGS)
_AFTER_TENS = re.compile(r"[- ]([a-z]{3,5})\b", _FLAGS)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|until|till|from|by|before|after|during|of|year|to|through|between|early|mid|late|and"
    r"|summer|spring|autumn|fall|winter|around|circa|for)[ -]$",
    _FLAGS,
)
_BOUND_BEFORE = re.compile(
    r"((?:\b(?:about|around|roughly|approximately|approx|nearly|almost|over|under|above|below|up to|at least"
    r"|at most|(?:more|less|fewer|greater) than|circa|ca)\b|[~≈<>≥≤]))\.?\s{0,4}(?:the\s{1,4})?$",
    _FLAGS,
)
_ANGLO = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+\.\d+")
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})*(?:,\d+)?|\d+,\d+")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def find_measures(text: str, *, months_alone: bool = False) -> list[Found]:
    """Every measure in `text`, left to right, without overlaps.

    `months_alone` also reads a bare `May` or `March`, which without a day or a year may be a verb.
    """
    found: list[Found] = []
    position = 0
    while (start := _START.search(text, position)) is not None:
        position = start.start()
        hit = None if position and _joined(text, position) else _at(text, position, months_alone)
        if hit is None:
            position = _skip_word(text, position)
        else:
            found.append(hit)
            position = hit.end
    return found


def differ(a: Measure, b: Measure) -> bool | None:
    """True: both cannot hold. False: they agree. None: they cannot be compared."""
    if isinstance(a, Number) and isinstance(b, Number):
        return _numbers_differ(a, b)
    if isinstance(a, Date) and isinstance(b, Date):
        return _dates_differ(a, b)
    if isinstance(a, ClockTime) and isinstance(b, ClockTime):
        if a.twelve_hour != b.twelve_hour:
            return a.minutes % 720 != b.minutes % 720
        return a.minutes != b.minutes
    return None


def kind_of(measure: Measure) -> Kind:
    if isinstance(measure, Number):
        return "number"
    return "date" if isinstance(measure, Date) else "time"


def _joined(text: str, position: int) -> bool:
    """Whether `position` lies inside a word, an address or a version that began before it."""
    before, here = text[position - 1], text[position]
    if before.isalnum() or before in "_@#":
        return here.isalnum() or here in "_-./:@"
    return before in "-./:" and position > 1 and text[position - 2].isalnum() and here.isalnum()


def _skip_word(text: str, position: int) -> int:
    end = position + 1
    if text[position].isalnum():
        while end < len(text) and text[end].isalnum():
            end += 1
    return end


def _at(text: str, position: int, months_alone: bool) -> Found | None:
    return _date_at(text, position, months_alone) or _clock_at(text, position) or _number_at(text, position)


def _date_at(text: str, position: int, months_alone: bool) -> Found | None:
    for pattern in _DATES:
        match = pattern.match(text, position)
        if match is None:
            continue
        readings = _readings(text, match, months_alone)
        # 2048 MB, bare `may`, 31.02.2024: the shorter patterns would only misread it.
        return Found(Date(readings), match.start(), match.end()) if readings else None
    return None


def _readings(text: str, match: re.Match[str], months_alone: bool) -> tuple[Reading, ...]:
    groups = match.groupdict()
    year, day, month, weekday = (groups.get(name) for name in ("year", "day", "month", "weekday"))
    if "a" in groups:
        a, b, at = int(groups["a"]), int(groups["b"]), int(groups["year"])
        slashed: tuple[Reading, ...] = ((at, b, a, None), (at, a, b, None))
        return tuple(dict.fromkeys(reading for reading in slashed if _exists(reading)))
    if month and not day and not year and not months_alone:
        return ()
    if weekday and not day and len(weekday) < 5:
        return ()  # `sun` and `wed` are words; `Sun 3 March` is not
    if year and not month and not _is_year(text, match):
        return ()
    number = None if not month else int(month) if month.isdigit() else MONTHS[month.lower()]
    reading = (
        int(year) if year else None,
        number,
        int(day) if day else None,
        WEEKDAYS[weekday.lower()] if weekday else None,
    )
    return (reading,) if _exists(reading) else ()


def _is_year(text: str, match: re.Match[str]) -> bool:
    """Four digits alone are a year only behind a temporal word and not before a unit: `in 2012`."""
    if not _YEAR_BEFORE.search(text[max(0, match.start() - 9) : match.start()]):
        return False
    after = _WORD.match(text, match.end() + 1)
    return after is None or (after[0].lower() not in _UNITS and after[0].lower() not in _SCALES)


def _exists(reading: Reading) -> bool:
    year, month, day, _ = reading
    if month is not None and not 1 <= month <= 12:
        return False
    if day is None:
        return True
    longest = 31 if month is None else _LONGEST[month - 1]
    if month == 2 and year is not None and (year % 4 or (year % 100 == 0 and year % 400)):
        longest = 28
    return 1 <= day <= longest


def _clock_at(text: str, position: int) -> Found | None:
    match = _CLOCK.match(text, position)
    if match is None:
        return None
    if word := match["word"]:
        return Found(ClockTime(720 if word.lower() == "noon" else 0), match.start(), match.end())
    half = match["half"] or match["half2"]
    digits = match["hour"] or match["hour2"] or match["hour3"]
    hour, minute = int(digits), int(match["minute"] or 0)
    if half:
        if hour > 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    twelve = not half and 1 <= hour <= 12 and not digits.startswith("0")
    return Found(ClockTime(hour % 24 * 60 + minute, twelve), match.start(), match.end())


def _number_at(text: str, position: int) -> Found | None:
    match = _FIGURE.match(text, position)
    if match is not None:
        readings = _figures(match["digits"])
        tail = (match["tail"] or "").lower()
        if not readings or (tail and tail not in _UNITS and tail not in _SCALES):
            return None
        end = match.start("tail") if tail else match.end()
        if not tail and end < len(text) and (text[end].isalpha() or text[end] == "_"):
            return None
        numbers, end, dimension = _scaled(text, end, readings, (match["sign"] or "").strip())
    else:
        spelled = _spelled(text, position)
        if spelled is None:
            return None
        numbers, end, dimension = _scaled(text, spelled[1], (spelled[0],), "")
    limit = _BOUND_BEFORE.search(text[max(0, position - 24) : position])
    bound = limit[1].lower() if limit else ""
    if text.startswith("+", end):
        bound, end = "at least", end + 1
    return Found(Number(numbers, dimension, bound), position, end)


def _figures(digits: str) -> tuple[float, ...]:
    """The readings of `1,200.50`, `1.200,50`, `1.200`; none for versions, addresses, overlong runs."""
    if len(digits) > 24:
        return ()
    if digits.isdigit():
        return (float(digits),)
    readings = []
    if _ANGLO.fullmatch(digits):
        readings.append(float(digits.replace(",", "")))
    if _CONTINENTAL.fullmatch(digits):
        readings.append(float(digits.replace(".", "").replace(",", ".")))
    return tuple(dict.fromkeys(readings))


def _spelled(text: str, position: int) -> tuple[float, int] | None:
    """`three`, `twenty-five`, `dozen`; `one` only before a scale or a unit, elsewhere it is a pronoun."""
    match = _WORD.match(text, position)
    if match is None:
        return None
    word, end = match[0].lower(), match.end()
    if text[end : end + 1].isalnum():
        return None
    if word in _TENS:
        tail = _AFTER_TENS.match(text, end)
        unit = _ONES.get(tail[1].lower(), 0) if tail else 0
        if tail and 1 <= unit <= 9:
            return float(_TENS[word] + unit), tail.end()
        return float(_TENS[word]), end
    if word == "dozen":
        return 12.0, end
    if word not in _ONES or text[end : end + 1] == "-":
        return None
    if word == "one":
        after = _WORD.match(text, end + 1)
        if after is None or (after[0].lower() not in _SCALES and after[0].lower() not in _UNITS):
            return None
    return float(_ONES[word]), end


def _scaled(
    text: str, end: int, readings: tuple[float, ...], sign: str
) -> tuple[tuple[float, ...], int, str | None]:
    """Applies the scale words and the unit that follow at `end`."""
    dimension, factor = (_UNITS[sign][0], 1.0) if sign else (None, 1.0)
    for _ in range(3):
        gap = 1 if text[end : end + 1] in (" ", "-") else 0
        match = _WORD.match(text, end + gap)
        if match is None or text[match.end() : match.end() + 1].isalnum():
            break
        word = match[0].lower()
        if word in _SCALES or (word == "m" and sign):
            factor *= _SCALES.get(word, 1e6)
        elif word in _UNITS and dimension is None and not (word == "s" and gap):
            dimension, by = _UNITS[word]
            factor *= by
        else:
            break
        end = match.end()
    return tuple(reading * factor for reading in readings), end, dimension


def _numbers_differ(a: Number, b: Number) -> bool | None:
    if a.dimension != b.dimension:
        return None  # `3` beside `3 GB`: the unit may merely be left out
    slack = _ROUGH if {a.bound, b.bound} & _APPROXIMATE else _TOLERANCE.get(a.dimension or "", 1e-9)
    if any(_close(x, y, slack) for x in a.readings for y in b.readings):
        return False
    return True if a.bound == b.bound else None  # more than 100, and 150: both can hold


def _close(x: float, y: float, slack: float) -> bool:
    return abs(x - y) <= slack * max(abs(x), abs(y), 1e-9)


def _dates_differ(a: Date, b: Date) -> bool | None:
    verdicts = [_readings_differ(x, y) for x in a.readings for y in b.readings]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _readings_differ(x: Sequence[int | None], y: Sequence[int | None]) -> bool | None:
    shared = [(p, q) for p, q in zip(x, y, strict=True) if p is not None and q is not None]
    if not shared:
        return None
    return any(p != q for p, q in shared)
