"""What of an ordered list is worth showing: no near-duplicates, nothing beyond the token budget or what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from remembrancer.domain.stopwords import is_negation
from remembrancer.domain.terms import WORD, text_terms

T = TypeVar("T")

ALIKE = 0.9
"""Jaccard likeness of the sets of terms from which two texts say the same."""
LONG = 20_000
"""Characters from which texts are compared as a whole alone: taking them apart would cost seconds."""
STORED_BYTES = 4_000_000
"""Stored text that is made ready for one answer, in UTF-8."""
SENT_BYTES = 5_500_000
"""Memories of one answer as they are sent: a function answers with 6 MiB at most, and more is never sent at all."""


def distinct(texts: Sequence[str], authors: Sequence[str | None], limit: int) -> list[int]:
    """Indexes of the first `limit` texts to keep, in order: a text goes when an earlier one by the same author has
    nearly the same words and exactly the same numbers, negations and names (capitalised words)."""
    kept: list[tuple[int, _Said | None]] = []
    for index, text in enumerate(texts):
        if len(kept) == limit:
            break
        said = _Said(text) if len(text) <= LONG else None
        alike = any(
            authors[other] == authors[index]
            and (text == texts[other] or (said is not None and theirs is not None and said.same(theirs)))
            for other, theirs in kept
        )
        if not alike:
            kept.append((index, said))
    return [index for index, _ in kept]


class _Said:
    """What a text says, for the comparison with others; its terms are worked out when all else is equal."""

    def __init__(self, text: str) -> None:
        self._text = text
        words = WORD.findall(text)
        folded = [word.casefold().replace("’", "'") for word in words]
        self._words = frozenset(folded)
        # The capitalised ones, folded as they are.
        self._names = frozenset(low for word, low in zip(words, folded, strict=True) if word[0].isupper())
        self._denials = sorted(
            "not" if word.endswith("n't") else word for word in folded if is_negation(word)
        )

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(text_terms(self._text).words)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(term for term in self._terms if any(c.isdigit() for c in term))

    def same(self, other: _Said) -> bool:
        return (
            self._denials == other._denials
            # A word that begins a sentence here and stands inside one there is no name of its own.
            and self._names <= other._words
            and other._names <= self._words
            and self._numbers == other._numbers
            and _likeness(self._terms, other._terms) >= ALIKE
        )


def pack(sizes: Sequence[int], budget: int | None) -> tuple[list[int], int]:
    """(indexes that fit, size used): in order, passing over what is too large for what is left."""
    chosen: list[int] = []
    used = 0
    for index, size in enumerate(sizes):
        if budget is None or used + size <= budget:
            chosen.append(index)
            used += size
    return chosen, used


def leading(items: Iterable[T], size: Callable[[T], int], most: int) -> list[T]:
    """The first of them, as many as stay within `most`, one in any case. What comes behind is not made."""
    chosen: list[T] = []
    used = 0
    for item in items:
        used += size(item)
        if chosen and used > most:
            break
        chosen.append(item)
    return chosen


def stored(text: str) -> int:
    """Bytes of a text."""
    return len(text.encode("utf-8", "surrogatepass"))


def sent(shown: Any) -> int:
    """Bytes of a part of an answer in what a function sends: JSON, as a string within JSON."""
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return stored(json.dumps(text, ensure_ascii=False))


def _likeness(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0
