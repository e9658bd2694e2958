"""What of an ordered list is worth showing: no near-duplicates, nothing beyond the token budget."""

from __future__ import annotations

from collections.abc import Sequence

from remembrancer.domain.terms import text_terms

ALIKE = 0.9
"""Jaccard likeness of the sets of terms from which two texts say the same."""


def distinct(texts: Sequence[str], authors: Sequence[str | None], limit: int) -> list[int]:
    """Indexes of the first `limit` texts to keep, in order: a text goes when an earlier one by the same author has
    nearly the same words and exactly the same numbers."""
    kept: list[tuple[int, frozenset[str], frozenset[str]]] = []
    for index, text in enumerate(texts):
        if len(kept) == limit:
            break
        words = frozenset(text_terms(text).words)
        numbers = frozenset(word for word in words if any(c.isdigit() for c in word))
        alike = any(
            authors[other] == authors[index]
            and numbers == their_numbers
            and (text == texts[other] or _likeness(words, theirs) >= ALIKE)
            for other, theirs, their_numbers in kept
        )
        if not alike:
            kept.append((index, words, numbers))
    return [index for index, _, _ in kept]


def pack(sizes: Sequence[int], budget: int | None) -> tuple[list[int], int]:
    """(indexes that fit, tokens used): in order, passing over what is too large for what is left."""
    chosen: list[int] = []
    used = 0
    for index, size in enumerate(sizes):
        if budget is None or used + size <= budget:
            chosen.append(index)
            used += size
    return chosen, used


def _likeness(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0
