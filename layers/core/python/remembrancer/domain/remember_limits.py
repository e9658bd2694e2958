"""The limits of one attempt. Deadlines are absolute, anchored at its entry; an earlier one of the caller wins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

MAX_TURNS = 3
"""Model calls of one attempt."""
TOTAL = timedelta(seconds=180)
ASSESSMENT = timedelta(seconds=160)
EMBEDDING_ENDS = timedelta(seconds=170)
EMBEDDING = timedelta(seconds=10)
COMMIT = timedelta(seconds=10)
DUPLICATE_FLOOR = 0.75
"""The least cosine at which stored evidence is offered to the assessor as a duplicate: of the paraphrases of
bench/corpus/conflicts.jsonl 96 % are offered, of unrelated texts 0.3 % (0.70: 100 %, 0.80: 86 %)."""
LEASE = timedelta(seconds=190)
"""Of the key, from entry, never renewed: longer than any work may last, so an expired one has no living owner."""


@dataclass(frozen=True)
class Deadlines:
    """`total` is entry + TOTAL or the caller's own deadline, whichever is earlier."""

    entered_at: datetime
    total: datetime

    @property
    def assessment(self) -> datetime:
        return min(self.entered_at + ASSESSMENT, self.total)

    def embedding(self, begun: datetime) -> datetime:
        """The end of an embedding phase that begins now."""
        return min(begun + EMBEDDING, self.entered_at + EMBEDDING_ENDS, self.total)

    def commit(self, begun: datetime) -> datetime:
        return min(begun + COMMIT, self.total)


def deadline(entered_at: datetime, asked: datetime | None) -> datetime:
    """The whole attempt's, given the caller's own."""
    latest = entered_at + TOTAL
    return latest if asked is None else min(latest, asked)
