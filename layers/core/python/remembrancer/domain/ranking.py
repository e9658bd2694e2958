"""From the candidates of the legs to an order: a linear score of what each passage is, says and stands beside.

The weights are few, fitted by bench/fit_recall.py and committed as data in `recall_weights`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import mul
from typing import Any
from uuid import UUID

from remembrancer.domain.query import Question, mentions
from remembrancer.domain.recall_weights import RANKING

OFFSETS = (1, -1, 2, -2)
"""Neighbours in the source with a weight of their own: what follows an answer, what it answers."""
WIDE = (3, -3)
"""Neighbours that count together: whether the talk is about it."""
REACH = max(WIDE)

FEATURES = (
    "cosine",
    "bm25",
    *(f"{leg}{offset:+d}" for offset in OFFSETS for leg in ("cosine", "bm25")),
    "around",
    "author_named",
    "length",
    "asks",
    "after_question",
    "time_asked_and_named",
    "in_period",
    "graph",
)
UNFITTED: Mapping[str, float] = {"in_period": 3.0, "graph": 3.0}
"""Set by hand: the fitting data has neither dates in its questions nor a graph. About the weight of an author."""
_WEIGHTS = [RANKING.get(name, UNFITTED.get(name, 0.0)) for name in FEATURES]


@dataclass(frozen=True)
class Candidate:
    """A passage that a leg found or that lies beside one; scores of the legs as they came."""

    passage_id: UUID
    memory_id: UUID
    ordinal: int
    source_key: int | None
    sequence: int | None
    cosine: float
    bm25: float
    held: Sequence[int] | None
    """How often it holds each form of the query's words; None when it holds none."""
    words: int
    asks: bool
    dated: bool
    author: str | None
    happened: datetime
    graph: float = 0.0
    """What the graph leg gives its memory, 0..1."""

    @classmethod
    def of(cls, row: Mapping[str, Any], graph: float) -> Candidate:
        """From a row of `store.search`."""
        return cls(
            passage_id=row["passage_id"],
            memory_id=row["memory_id"],
            ordinal=row["ordinal"],
            source_key=row["source_key"],
            sequence=row["sequence"],
            cosine=float(row["cosine"]),
            bm25=float(row["bm25"]),
            held=row["tf"],
            words=row["words"],
            asks=row["asks"],
            dated=row["dated"],
            author=row["author"],
            happened=row["happened"],
            graph=graph,
        )


def chains(candidates: Sequence[Candidate]) -> list[list[int]]:
    """The indexes of the candidates of each source, in their order there."""
    found: dict[int, list[int]] = {}
    for index, candidate in enumerate(candidates):
        if candidate.source_key is not None and candidate.sequence is not None:
            found.setdefault(candidate.source_key, []).append(index)
    for chain in found.values():
        chain.sort(key=lambda i: (candidates[i].sequence, candidates[i].memory_id.int, candidates[i].ordinal))
    return list(found.values())


def features(question: Question, candidates: Sequence[Candidate]) -> list[list[float]]:
    """One row a candidate, in the order of FEATURES. Leg scores are shares of the best of their leg."""
    near = _shares([candidate.cosine for candidate in candidates])
    said = _shares([candidate.bm25 for candidate in candidates])
    beside, after_question = _beside(candidates, near, said)
    named = {a: float(mentions(question.name_words, a)) for a in {c.author for c in candidates}}
    rows = []
    for index, candidate in enumerate(candidates):
        in_period = any(period.holds(candidate.happened) for period in question.periods)
        rows.append(
            [
                near[index],
                said[index],
                *beside[index],
                named[candidate.author],
                math.log1p(candidate.words),
                float(candidate.asks),
                after_question[index],
                float(question.asks_when and candidate.dated),
                float(in_period),
                candidate.graph,
            ]
        )
    return rows


def _beside(
    candidates: Sequence[Candidate], near: Sequence[float], said: Sequence[float]
) -> tuple[list[Sequence[float]], list[float]]:
    """What stands beside each candidate in its source: the leg scores at OFFSETS and the sum of those at WIDE;
    and whether a question stands before it."""
    alone: Sequence[float] = (0.0,) * (2 * len(OFFSETS) + 1)
    scores = [alone] * len(candidates)
    asked = [0.0] * len(candidates)
    edge = [0.0] * REACH
    for chain in chains(candidates):
        n = [*edge, *(near[i] for i in chain), *edge]
        s = [*edge, *(said[i] for i in chain), *edge]
        for place, index in enumerate(chain, start=REACH):
            row = [leg[place + offset] for offset in OFFSETS for leg in (n, s)]
            row.append(sum([n[place + offset] + s[place + offset] for offset in WIDE]) / 2)
            scores[index] = row
        for before, index in pairwise(chain):
            asked[index] = float(candidates[before].asks)
    return scores, asked


def scores(rows: Sequence[Sequence[float]]) -> list[float]:
    """The linear score of each row of `features`."""
    return [sum(map(mul, _WEIGHTS, row)) for row in rows]


def order(candidates: Sequence[Candidate], given: Sequence[float]) -> list[int]:
    """Best score first; of equals the newer, then by id."""
    return sorted(
        range(len(candidates)),
        key=lambda i: (
            -round(given[i], 9),
            -candidates[i].happened.timestamp(),
            candidates[i].memory_id,
            candidates[i].ordinal,
        ),
    )


def contributions(row: Sequence[float]) -> dict[str, float]:
    """What each feature that is not nothing adds to the score."""
    return {name: w * x for name, w, x in zip(FEATURES, _WEIGHTS, row, strict=True) if w * x}


def _shares(values: Sequence[float]) -> list[float]:
    best = max(values, default=0.0)
    return [max(0.0, value / best) if best > 0 else 0.0 for value in values]
