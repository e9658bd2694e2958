"""What a query asks for, read from its words alone: deterministic, never an error whatever the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice

from remembrancer.domain.names import fold
from remembrancer.domain.periods import Period, find_periods
from remembrancer.domain.terms import (
    LETTERS,
    MARKS,
    UNSPACED,
    Asked,
    Phrase,
    excluding_terms,
    is_unspaced,
    phrase_terms,
    query_terms,
)

MAX_WORDS = 48
"""Distinct words of a query that are looked up; what follows only repeats or pads."""
MAX_PHRASES = 4
MAX_EXCLUDED = 8
MAX_NAME_WORDS = 6
MAX_UNSPACED, MAX_UNSPACED_NAME = 128, 8
"""Characters of a query in which names without spaces around them are looked for, and of such a name."""

# Not the inches of 5"; scripts without spaces have their letters right beside the marks.
_LETTER = rf"[^\W{UNSPACED}]"
_PHRASE = re.compile(
    rf'(?<!{_LETTER})(-?)["“„«「『＂]([^"“”„«»「」『』＂]{{1,200}})["”“»」』＂](?!{_LETTER})'
)
# A minus sign before a letter, behind a space: `-draft`, `-notes.md`, `-std::list`, not `well-known`, `- item` or `-5`.
_EXCLUDED = re.compile(rf"(?<!\S)-([^\W\d_](?:[\w'’{MARKS}]|[._/:@#?=&%+~-]{{1,3}}(?=\w)){{0,199}})")
_WHEN = re.compile(
    r"^\W*(?:when|how long|since when|what (?:date|day|year|month|time)|which (?:day|year|month))\b", re.I
)
_CAPITALISED = re.compile(rf"[^\W\d_][\w'’{MARKS}-]*")
_POSSESSIVE = re.compile(r"['’]s?$")
_MARKS = re.compile(r"[^\w\s]{1,2}")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_WORDS = re.compile(rf"{LETTERS}(?:['’.&-]{LETTERS})*")


@dataclass(frozen=True)
class Question:
    text: str
    """What is embedded: the query without its operators."""
    words: tuple[Asked, ...]
    phrases: tuple[tuple[Phrase, ...], ...]
    """Each must be in a hit, in the form that its language gives it."""
    excluded: tuple[str, ...]
    """Terms of which no hit may have one."""
    excluded_phrases: tuple[Phrase, ...]
    """None of which a hit may hold."""
    name_words: frozenset[str]
    """Folded words that may be part of a person's name."""
    asks_when: bool
    periods: tuple[Period, ...]


def understand(query: str, now: datetime, *, operators: bool = True) -> Question:
    """`now` is the instant that `last May` counts from, timezone-aware. Without `operators` quotes and hyphens are
    marks of the text like any other: a claim is no search expression."""
    phrases: list[tuple[Phrase, ...]] = []
    excluded: dict[str, None] = {}
    excluded_phrases: list[tuple[Phrase, ...]] = []

    def phrase(match: re.Match[str]) -> str:
        forms = tuple(phrase_terms(match[2]))
        kept, most = (excluded_phrases, MAX_EXCLUDED) if match[1] else (phrases, MAX_PHRASES)
        if forms and len(kept) < most:
            kept.append(forms)
        return " " if match[1] else f" {match[2]} "

    def leave_out(match: re.Match[str]) -> str:
        terms = excluding_terms(match[1])
        excluded.update(dict.fromkeys(terms))
        if not terms and len(excluded_phrases) < MAX_EXCLUDED:
            excluded_phrases.append(tuple(phrase_terms(match[1])))
        return " "

    def without_operators() -> Iterator[str]:
        end = 0
        for quoted in _PHRASE.finditer(query):
            # A hyphen inside a phrase is a mark of it.
            yield _EXCLUDED.sub(leave_out, query[end : quoted.start()])
            yield phrase(quoted)
            end = quoted.end()
        yield _EXCLUDED.sub(leave_out, query[end:])

    query = unicodedata.normalize("NFC", query)
    plain = "".join(without_operators()) if operators else query
    words = tuple(query_terms(plain)[:MAX_WORDS])
    if not words and not phrases:
        # Nothing but exclusions or marks: what was typed is what is looked for.
        excluded.clear()
        excluded_phrases.clear()
        plain, words = query, tuple(query_terms(query)[:MAX_WORDS])
    return Question(
        text=" ".join(plain.split()) or query,
        words=words,
        phrases=tuple(phrases),
        excluded=tuple(excluded)[: MAX_EXCLUDED * 8],
        excluded_phrases=tuple(form for forms in excluded_phrases for form in forms),
        name_words=_name_words(plain),
        asks_when=_WHEN.search(plain) is not None,
        periods=tuple(find_periods(plain, now)),
    )


def mentions(name_words: Collection[str], author: str | None) -> bool:
    """Whether the query names this author: by any word of the name that is not a mere initial. Where no spaces are
    written, a name stands inside a longer run."""
    return any(
        word in name_words or (is_unspaced(word) and any(word in run for run in name_words))
        for word in _author_words(author)
    )


def name_candidates(text: str) -> list[str]:
    """Folded runs of one to six words of the query, which may be the name of an entity: the words, and the run as it is
    written, with up to two marks behind it (`acme, inc.`, `c++`). Of a script without spaces any short part."""
    folded = fold(text)
    places = list(islice(_WORDS.finditer(folded), 64))
    words = [_POSSESSIVE.sub("", place[0]) for place in places]
    found: dict[str, None] = {}
    for length in range(1, MAX_NAME_WORDS + 1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            found[" ".join(run)] = None
            begin, end = places[start].start(), places[start + length - 1].end()
            found[folded[begin : end - len(places[start + length - 1][0]) + len(run[-1])]] = None
            marks = _MARKS.match(folded, end)
            for more in range(1, len(marks[0]) + 1) if marks else ():
                found[folded[begin : end + more]] = None
    for run_without_spaces in _UNSPACED.findall(folded[:MAX_UNSPACED]):
        for length in range(2, MAX_UNSPACED_NAME + 1):
            for start in range(len(run_without_spaces) - length + 1):
                found[run_without_spaces[start : start + length]] = None
    return list(found)


@lru_cache(maxsize=10_000)
def _author_words(author: str | None) -> tuple[str, ...]:
    return tuple(word for word in fold(author or "").split() if len(word) > 1)


def _name_words(text: str) -> frozenset[str]:
    """Capitalised words; all words of a query that has no capitals."""
    words = [_POSSESSIVE.sub("", match[0]) for match in _CAPITALISED.finditer(text)]
    capitalised = [word for word in words if not word[0].islower()]
    return frozenset(fold(word) for word in (capitalised if text != text.lower() else words))
