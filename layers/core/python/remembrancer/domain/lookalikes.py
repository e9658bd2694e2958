"""Names that may mean one thing: the same letters, or one letter apart. Linear in the length of all names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")

MIN_LETTERS = 5
"""Shorter names are one letter apart by chance: Ann and Anna, Mark and Mary."""
MAX_LETTERS = 60
MAX_BUCKET = 50
"""Names that share one variant; a larger crowd is a pattern and no accident of spelling."""

SAME_LETTERS = 0.95
ONE_APART = 0.85


def lookalikes(names: Mapping[K, str]) -> Iterator[tuple[K, K, float]]:
    """Pairs of entities whose name keys look alike, with a score; each pair once, in the order of `names`.

    Names that differ in a digit are different on purpose: versions, years, room numbers.
    """
    letters = {key: "".join(c for c in name if c.isalnum())[:MAX_LETTERS] for key, name in names.items()}
    buckets: dict[str, list[K]] = {}
    for key, word in letters.items():
        if len(word) >= MIN_LETTERS:
            for variant in {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}:
                buckets.setdefault(variant, []).append(key)
    order = {key: position for position, key in enumerate(names)}
    seen: set[tuple[K, K]] = set()
    for bucket in buckets.values():
        if not 1 < len(bucket) <= MAX_BUCKET:
            continue
        for i, first in enumerate(bucket):
            for second in bucket[i + 1 :]:
                pair = (first, second) if order[first] < order[second] else (second, first)
                if pair in seen:
                    continue
                seen.add(pair)
                score = _score(letters[first], letters[second])
                if score is not None:
                    yield (*pair, score)


def _score(first: str, second: str) -> float | None:
    if first == second:
        return SAME_LETTERS
    if _digits(first) != _digits(second):
        return None
    return ONE_APART


def _digits(word: str) -> str:
    return "".join(c for c in word if c.isdigit())
