"""From a text to its passages and vectors, before any transaction is opened."""

from __future__ import annotations

from datetime import datetime

from remembrancer.domain.memory import Passages, PassageText
from remembrancer.domain.passages import cut, prefix, render
from remembrancer.domain.ports import Embedder
from remembrancer.domain.problems import Problem

MAX_PASSAGES = 64
"""What one request may carry synchronously."""


def passages_of(
    embedder: Embedder, content: str, author: str | None, observed_at: datetime | None
) -> Passages:
    """Cut, render with author and date, embed. Raises Problem input_budget_exceeded beyond MAX_PASSAGES."""
    day = None if observed_at is None else observed_at.date()
    pieces = cut(content, embedder.count_tokens, lead=prefix(author, day))
    if len(pieces) > MAX_PASSAGES:
        raise Problem("input_budget_exceeded")
    texts = tuple(PassageText(p.start, p.end, render(p.text, author, day)) for p in pieces)
    return Passages(texts, embedder.embed([text.rendered for text in texts]), embedder.contract)
