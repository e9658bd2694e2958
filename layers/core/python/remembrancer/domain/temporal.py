"""When a statement holds, read from its words. Deterministic; what is not sure yields nothing.

Half-open intervals of UTC instants. `until 2020` and `from 2015 to 2020` end where 2020 begins,
`through 2020` where it ends, `in 2020` spans it. A four-digit number is a year only behind a temporal word.
The date of an event (`founded in 1998`) is not the validity of the fact and yields nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from remembrancer.domain.measures import Date, Reading, find_measures

MAX_CHARACTERS = 20_000


@dataclass(frozen=True)
class Interval:
    """Half-open [valid_from, valid_to), UTC; None is an open bound, never both."""

    valid_from: datetime | None
    valid_to: datetime | None


Window = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class _Period:
    """A named stretch of time and where the text names it."""

    begin: datetime
    finish: datetime
    start: int
    end: int
    absolute: bool


_INSTANT = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)(?!\w)", re.ASCII
)
_RELATIVE = re.compile(
    r"\b(?:(?P<day>today|yesterday|tomorrow)|(?P<which>last|this|next) (?P<unit>week|month|year)"
    r"|(?P<count>\d{1,3}|one|two|three|four|five|six|seven) (?P<ago>days?|weeks?) ago)\b",
    re.IGNORECASE | re.ASCII,
)
_RANGE = re.compile(
    r"(?:\(|\b[Ff]rom )(?P<first>(?:19|20)\d\d)\s?[-–—]\s?(?P<second>(?:19|20)\d\d|present|now|today)\b"
)
_COUNTS = {word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six", "seven"), start=1)}

_SINCE = re.compile(r"\b(?:since|ever since|as of|as from|effective(?: from| as of)?|beginning(?: in)?)$")
_STARTING = re.compile(r"\bstarting(?: in| on| from)?$")
_FROM = re.compile(r"(?<!away )\bfrom$")
_UNTIL = re.compile(r"\b(?:until|till|up to|up until)$")
_THROUGH = re.compile(r"\b(?:through|thru)$")
_BETWEEN = re.compile(r"\bbetween$")
_WITHIN = re.compile(r"\b(?:in|during|throughout|on|all through|for all of|in the year)$")
_DASHED = re.compile(r"\s?[-–—]\s?\d")
_ONWARD = re.compile(r"\s*(?:on|onwards?|forward)\b")
_PRESENT = re.compile(r"\s*(?:to|until|till|through|[-–—])\s*(?:the )?(?:present|now|today|date)\b")

_ENDED = re.compile(
    r"\b(?:no longer|not|never|no more|stopped|hasn't|haven't|isn't|aren't|doesn't|don't)\b|n't\b"
)
_ANY_NEGATION = re.compile(r"\b(?:no|not|never|none|nobody|nothing|without)\b|n't\b")
_USED_TO = re.compile(r"\b(?:used to|formerly|previously)\b")
_UNSURE = re.compile(
    r"\b(?:if|unless|whether|when|may|might|could|would|should|perhaps|maybe|probably|possibly|plans?|planned"
    r"|planning|hopes?|expects?|expected|wants?|about|around|roughly|approximately|circa|early|mid|late"
    r"|before|after|sometime|by|forecast|predicts?|targets?|estimated?|fiction|novel"
    r"|except|excepting|bce?|true|false|further notice|den(?:y|ies|ied)"
    # what is said, feigned or nearly so
    r"|alleged(?:ly)?|reportedly|supposed(?:ly)?|rumou?r(?:s|ed)?|claim(?:s|ed)?|pretend(?:s|ed)?|said|says?"
    r"|wish(?:es|ed)?|falsely|wrong(?:ly)?|contrary|almost|nearly|hardly|barely|scarcely|rarely|seldom|few"
    r"|fail(?:s|ed)|refuse[sd]?|neither|nor|or|was to|were to|going to|at least|at the (?:latest|earliest)|inclusive"
    # what has ended: is the date of the thing or of its end?
    r"|ceased?|ceases|former|ex|expire[sd]?|ended|ends|discontinued|repealed|abolished|terminated|cancell?ed"
    r"|revoked|quit"
    # what is compared, and what is said of another in a clause of its own
    r"|than|as \w+ as|who|whom|whose|which)\b"
)
_STATE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|worked|works|lived|lives|served|serves|studied|led|owned|managed|taught"
    r"|had|has|held|ran|resided|stayed|played|belonged|cost|headed|chaired|employed)\b|'s\b"
)
# Behind a form of be: something happened, so the date is the event's and not the fact's.
_EVENT = re.compile(
    r"\b(?:is|are|was|were|be|been|got|being)(?: \w+ly)?(?: \w+)?? (?!based\b|located\b|employed\b|married\b"
    r"|called\b|named\b|situated\b|used\b|retired\b|stationed\b|headquartered\b|assigned\b)"
    r"(?:\w{2,}ed|born|built|written|held|made|sold|bought|won|lost|found|sent|paid|taken|given|begun|shown"
    r"|hit|cut|put|set)\b"
)
_ARTEFACT = re.compile(
    r"\b(?:pages?|records?|distance|range|degrees?|houses?|letters?|photos?|pictures?|data|reports?|e-?mails?|mails?|messages?|invoices?|receipts?|songs?|films?"
    r"|movies?|books?|articles?|versions?|drafts?|notes?|wines?|documents?|quotes?|recordings?|posts?|figures?"
    r"|numbers?|results?|minutes|entry|entries|logs?|papers?|models?|editions?|memo|memos|contracts?|offers?"
    r"|prices?|statistics|images?|files?|copy|copies|releases?|tickets?|orders?|vintages?|cars?)\b(?: \S+){0,3} $"
)
_MOVED = re.compile(
    r"\b(?:moved|postponed|rescheduled|shifted|raised|rose|grew|fell|changed|increased|decreased|dropped)\b.*\bfrom$"
)
_BOUNDED = re.compile(r"\s*(?:to|until|till|up to|through|thru)\b")
# `since her divorce in 2019`, `until joining Acme in 2020`: the date is that of what bounds the fact.
_BY_EVENT = re.compile(
    r"\b(?:since|until|till|from|as of) (?:(?!in |on |during )\S+ ){1,8}(?:in|on|during)$"
    r"|\b(?:is|are|was|were|be|been|up|down) from$"
)
_POSSESSIVE = re.compile("['’]s\\b")
_SINCE_THEN = re.compile(r"\bsince\W*$")
_FINITE = re.compile(
    r"\b(?:am|is|are|was|were|has|have|had|lives|works|serves|owns|leads|runs|plays|holds|studies)\b"
    r"|(?<!\bhas )(?<!\bhave )(?<!\bhad )\b(?:lived|worked|served|owned|led|studied|managed|played)\b"
)
_JOINED = re.compile(r"\b(?:and|but|while|whereas|that)\b|,")
_ADDRESS_AFTER = re.compile(
    r" (?:[A-Z]\w+ ){0,2}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Drive|Square)\b"
)
_COUNTED_AFTER = re.compile(
    r" (?:(?!was\b|is\b|has\b|as\b|does\b|his\b|its\b|this\b|us\b|plus\b)[a-z]+s|people|feet)\b"
)
_SENTENCE = re.compile(r"[^.!?;\n]+(?:\.(?=\d)[^.!?;\n]+)*[.!?;\n]?")


def extract_interval(text: str, reference: datetime) -> Interval | None:
    """The one interval that `text` states, or None when it states none, several, or an unsure one.

    `reference` is the instant from which yesterday and last year count, timezone-aware (ValueError if not).
    Only the first 20,000 code points are read.
    """
    if reference.tzinfo is None:
        raise ValueError("the reference instant has no timezone")
    return _only(text, reference.astimezone(UTC), relative=True)


def explicit_interval(text: str) -> Interval | None:
    """The same from absolute dates alone, for texts of unknown age."""
    return _only(text, datetime(2000, 1, 1, tzinfo=UTC), relative=False)


def sentences(text: str) -> list[str]:
    """What is read of `text`, cut where a statement ends. Headings state nothing."""
    found = (match[0].strip() for match in _SENTENCE.finditer(text[:MAX_CHARACTERS]))
    return [
        sentence for sentence in found if any(map(str.isalnum, sentence)) and not sentence.startswith("#")
    ]


def denies(text: str) -> bool:
    """Whether it says that something has ended or is not so: the interval of what it says is then that of what was."""
    return _ENDED.search(text.lower()) is not None or _USED_TO.search(text.lower()) is not None


def overlap(a: Window, b: Window) -> bool:
    """Whether two half-open windows share an instant."""
    starts = [at for at in (a[0], b[0]) if at is not None]
    ends = [at for at in (a[1], b[1]) if at is not None]
    return not starts or not ends or max(starts) < min(ends)


def _only(text: str, reference: datetime, *, relative: bool) -> Interval | None:
    found: set[Interval] = set()
    for match in _SENTENCE.finditer(text[:MAX_CHARACTERS]):
        sentence = match[0]
        if sentence.endswith("?"):
            continue
        periods = list(_periods(sentence, reference, relative))
        if not periods:
            continue
        interval = _of_sentence(sentence, periods)
        if interval is None:
            return None
        found.add(interval)
    return found.pop() if len(found) == 1 else None


def _of_sentence(sentence: str, periods: list[_Period]) -> Interval | None:
    # Blanked out, so that the month of May is no doubt and no `on` inside a date is read.
    lower = sentence.lower() if len(sentence.lower()) == len(sentence) else sentence
    for period in periods:
        lower = lower[: period.start] + " " * (period.end - period.start) + lower[period.end :]
    if len(periods) == 2:
        window = _pair(sentence, lower, *periods)
    elif len(periods) == 1:
        window = _single(sentence, lower, periods[0])
    else:
        window = None
    if window is None or window == (None, None) or _UNSURE.search(lower) or _says_two_things(lower):
        return None
    if window[0] is not None and window[1] is not None and window[0] >= window[1]:
        return None
    return Interval(*window)


def _says_two_things(lower: str) -> bool:
    """Whether the date may be that of the other of two statements: `Anna is CEO, Bob was CEO in 2012`."""
    return _JOINED.search(lower) is not None and len(_FINITE.findall(lower)) > 1


def _pair(sentence: str, lower: str, first: _Period, second: _Period) -> Window | None:
    """`from P to Q`, `between P and Q`, `P - Q` behind from, since or in brackets."""
    before = lower[: first.start].rstrip()
    between = lower[first.end : second.start].strip()
    if _ANY_NEGATION.search(lower) or not second.absolute:
        return None
    if any(_counted(sentence, period) for period in (first, second)) or _MOVED.search(before):
        return None
    if (match := _FROM.search(before)) and _ARTEFACT.search(before[: match.start()]):
        return None
    if _FROM.search(before) or _SINCE.search(before) or before.endswith("("):
        if between in ("to", "until", "till", "-", "–", "—"):
            return (first.begin, second.begin)
        if between in ("through", "thru"):
            return (first.begin, second.finish)
    if _BETWEEN.search(before) and between == "and":
        return (first.begin, second.begin)
    return None


def _single(sentence: str, lower: str, period: _Period) -> Window | None:
    before, after = lower[: period.start].rstrip(), lower[period.end :]
    if _counted(sentence, period) or _DASHED.match(after) or _BY_EVENT.search(before):
        return None
    if _POSSESSIVE.match(after) or _SINCE_THEN.search(after):
        return None
    if _BOUNDED.match(after) and not _PRESENT.match(after):
        return None  # until when, it does not say as a date
    ended = _ENDED.findall(before)
    if len(ended) > 1:
        return None  # who never stopped has not ended
    negated = _ANY_NEGATION.search(lower) is not None
    formerly = _USED_TO.search(lower) is not None
    if _SINCE.search(before) or _STARTING.search(before):
        if formerly:
            return None
        if ended:
            return (None, period.begin)
        return None if negated else (period.begin, None)
    if negated:
        return None
    if _UNTIL.search(before):
        return (None, period.begin)
    if _THROUGH.search(before):
        return (None, period.finish)
    if match := _FROM.search(before):
        if formerly or _ARTEFACT.search(before[: match.start()]) or _EVENT.search(lower):
            return None
        return (period.begin, None)
    if _WITHIN.search(before) or not period.absolute:
        if _EVENT.search(lower) or not (_STATE.search(lower) or formerly):
            return None
        if _ONWARD.match(after) or _PRESENT.match(after):
            return None
        return (period.begin, period.finish)
    return None


def _counted(sentence: str, period: _Period) -> bool:
    """Whether a bare year is really a house number or a count: `in 2000 steps`."""
    if not sentence[period.start : period.end].isdigit():
        return False
    after = sentence[period.end : period.end + 60]
    return _ADDRESS_AFTER.match(after) is not None or _COUNTED_AFTER.match(after) is not None


def _periods(sentence: str, reference: datetime, relative: bool) -> Iterator[_Period]:
    found = [*_instants(sentence), *_bracketed(sentence)]
    for hit in find_measures(sentence):
        if isinstance(hit.measure, Date):
            period = _calendar(hit.measure.readings, hit.start, hit.end)
            if period is not None:
                found.append(period)
    if relative:
        found.extend(_relatives(sentence, reference))
    end = 0
    for period in sorted(found, key=lambda p: (p.start, -p.end)):
        if period.start >= end:
            yield period
            end = period.end


def _instants(sentence: str) -> Iterator[_Period]:
    for match in _INSTANT.finditer(sentence):
        try:
            at = datetime.fromisoformat(match[0]).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
        yield _Period(at, at, match.start(), match.end(), True)


def _bracketed(sentence: str) -> Iterator[_Period]:
    """The years of `(2015-2018)` and `from 2015 - 2018`, of which one stands behind no temporal word."""
    for match in _RANGE.finditer(sentence):
        for name in ("first", "second"):
            if match[name].isdigit():
                year = int(match[name])
                yield _Period(
                    datetime(year, 1, 1, tzinfo=UTC),
                    datetime(year + 1, 1, 1, tzinfo=UTC),
                    match.start(name),
                    match.end(name),
                    True,
                )


def _calendar(readings: tuple[Reading, ...], start: int, end: int) -> _Period | None:
    """A day, a month or a year; nothing for a date without a year or with two readings."""
    if len(readings) != 1:
        return None
    year, month, day, _ = readings[0]
    if year is None or not 1 <= year < 9999:
        return None
    if month is None:
        return _Period(_utc(year, 1, 1), _utc(year + 1, 1, 1), start, end, True)
    if day is None:
        following = _utc(year + month // 12, month % 12 + 1, 1)
        return _Period(_utc(year, month, 1), following, start, end, True)
    begin = _utc(year, month, day)
    return _Period(begin, begin + timedelta(days=1), start, end, True)


def _relatives(sentence: str, reference: datetime) -> Iterator[_Period]:
    today = reference.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _RELATIVE.finditer(sentence):
        try:
            window = _relative(match, today)
        except (OverflowError, ValueError):
            continue  # beyond the calendar's ends
        if window is not None:
            yield _Period(*window, match.start(), match.end(), False)


def _relative(match: re.Match[str], today: datetime) -> tuple[datetime, datetime] | None:
    day = timedelta(days=1)
    if name := match["day"]:
        begin = today + {"today": 0, "yesterday": -1, "tomorrow": 1}[name.lower()] * day
        return begin, begin + day
    if match["ago"]:
        if match["ago"].lower().startswith("week"):
            return None  # which day of that week is anyone's guess
        count = match["count"].lower()
        begin = today - (int(count) if count.isdigit() else _COUNTS[count]) * day
        return begin, begin + day
    return _shifted(today, match["unit"].lower(), match["which"].lower())


def _shifted(today: datetime, unit: str, which: str) -> tuple[datetime, datetime]:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "week":
        monday = today - timedelta(days=today.weekday() - 7 * step)
        return monday, monday + timedelta(days=7)
    if unit == "month":
        months = today.year * 12 + today.month - 1 + step
        return _utc(months // 12, months % 12 + 1, 1), _utc((months + 1) // 12, (months + 1) % 12 + 1, 1)
    return _utc(today.year + step, 1, 1), _utc(today.year + step + 1, 1, 1)


def _utc(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
