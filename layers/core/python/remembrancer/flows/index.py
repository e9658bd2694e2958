"""From a text to its passages and vectors, before any transaction is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remembrancer.domain.memory import Passages, PassageText
from remembrancer.domain.passages import MAX_BYTES, cut, prefix, render
from remembrancer.domain.ports import Embedder
from remembrancer.domain.problems import Problem

MAX_PASSAGES = 64
"""What one request may carry synchronously."""


@dataclass(frozen=True)
class Text:
    """What is cut and embedded: the content with its author and the day it was said."""

    content: str
    author: str | None
    observed_at: datetime | None


def passages_of(embedder: Embedder, text: Text) -> Passages:
    """Cut, render with author and date, embed. Raises Problem input_budget_exceeded beyond MAX_PASSAGES."""
    [passages] = passages_of_many(embedder, [text])
    return passages


def passages_of_many(embedder: Embedder, texts: Sequence[Text]) -> list[Passages]:
    """The same for several texts, embedded in one batch."""
    cuts = [cut_text(embedder, text) for text in texts]
    if any(len(pieces) > MAX_PASSAGES for pieces in cuts):
        raise Problem("input_budget_exceeded")
    return embedded(embedder, cuts)


def cut_few(embedder: Embedder, texts: Sequence[Text]) -> list[tuple[PassageText, ...]] | None:
    """The passages of each, or None when they are more than MAX_PASSAGES; no more is cut than it takes to know."""
    size = sum(len(text.content.encode()) for text in texts)
    if len(texts) > MAX_PASSAGES or size > MAX_PASSAGES * MAX_BYTES:
        return None
    cuts: list[tuple[PassageText, ...]] = []
    left = MAX_PASSAGES
    for text in texts:
        cuts.append(cut_text(embedder, text))
        left -= len(cuts[-1])
        if left < 0:
            return None
    return cuts


def embedded(embedder: Embedder, cuts: Sequence[tuple[PassageText, ...]]) -> list[Passages]:
    """The passages of several texts with their vectors, embedded in one batch."""
    vectors = embedder.embed([piece.rendered for pieces in cuts for piece in pieces])
    found = []
    start = 0
    for pieces in cuts:
        found.append(Passages(pieces, vectors[start : start + len(pieces)], embedder.contract))
        start += len(pieces)
    return found


def cut_text(embedder: Embedder, text: Text) -> tuple[PassageText, ...]:
    """Cut and rendered, however many there are."""
    day = None if text.observed_at is None else text.observed_at.date()
    pieces = cut(text.content, embedder.count_tokens, lead=prefix(text.author, day))
    return tuple(PassageText(p.start, p.end, render(p.text, text.author, day)) for p in pieces)
