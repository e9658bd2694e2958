"""What a query asks for, read from its words alone: deterministic, never an error whatever the text."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice

from remembrancer.domain.names import fold
from remembrancer.domain.periods import Period, find_periods
from remembrancer.domain.terms import UNSPACED, Asked, excluding_terms, is_unspaced, phrase_terms, query_terms

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
# A minus sign before a letter, behind a space: `-draft`, `-notes.md`, not `well-known`, `- item` or `-5`.
_EXCLUDED = re.compile(r"(?<!\S)-([^\W\d_](?:[\w'’]|[._/:@#-](?=\w)){0,63})")
_WHEN = re.compile(
    r"^\W*(?:when|how long|since when|what (?:date|day|year|month|time)|which (?:day|year|month))\b", re.I
)
_CAPITALISED = re.compile(r"[^\W\d_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’]s?$")
_MARKS = re.compile(r"[^\w\s]{1,2}")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_WORDS = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")


@dataclass(frozen=True)
class Question:
    text: str
    """What is embedded: the query without its operators."""
    words: tuple[Asked, ...]
    phrases: tuple[tuple[tuple[str, ...], ...], ...]
    """Each must be in a hit: the sequences of terms, any of which is the phrase."""
    excluded: tuple[str, ...]
    """Terms of which no hit may have one."""
    excluded_phrases: tuple[tuple[str, ...], ...]
    """Sequences of two terms or more of which no hit may hold one."""
    name_words: frozenset[str]
    """Folded words that may be part of a person's name."""
    asks_when: bool
    periods: tuple[Period, ...]


def understand(query: str, now: datetime, *, operators: bool = True) -> Question:
    """`now` is the instant that `last May` counts from, timezone-aware. Without `operators` quotes and hyphens are
    marks of the text like any other: a claim is no search expression."""
    phrases: list[tuple[tuple[str, ...], ...]] = []
    excluded: dict[str, None] = {}
    excluded_phrases: dict[tuple[str, ...], None] = {}

    left_out = 0

    def exclude(sequences: Sequence[tuple[str, ...]]) -> None:
        nonlocal left_out
        excluded.update((s[0], None) for s in sequences if len(s) == 1)
        longer = [s for s in sequences if len(s) > 1]
        # Of each phrase the sequences of all languages, or of the first phrases alone some would be left.
        if longer and left_out < MAX_EXCLUDED:
            left_out += 1
            excluded_phrases.update((s, None) for s in longer)

    def phrase(match: re.Match[str]) -> str:
        sequences = tuple(phrase_terms(match[2]))
        if match[1]:
            exclude(sequences)
            return " "
        if sequences and len(phrases) < MAX_PHRASES:
            phrases.append(sequences)
        return f" {match[2]} "

    def leave_out(match: re.Match[str]) -> str:
        if _UNSPACED.search(match[1]):
            # The run itself, not every pair of its characters, nor each number in it.
            exclude(phrase_terms(match[1]))
        else:
            exclude([(term,) for term in excluding_terms(match[1])])
        return " "

    plain = _EXCLUDED.sub(leave_out, _PHRASE.sub(phrase, query)) if operators else query
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
        excluded_phrases=tuple(excluded_phrases),
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
