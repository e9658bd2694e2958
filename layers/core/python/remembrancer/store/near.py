"""The live memories around texts on their way in: one statement for all of them, filters inside the search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from remembrancer.domain.clauses import MAX_CHARACTERS
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.vectors import vector_text

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors

VECTORS = 256
"""Of one statement: a text of a million characters has thousands of passages."""
EXACT_MAX = 100
"""Up to so many passages of the space every one is compared; above, the index of vectors is asked."""


_NEAR = """
select * from memory_near(%(space)s, %(contract)s, %(vectors)s::halfvec[], %(limit)s, %(exact)s, %(at)s, %(retention)s,
                          %(characters)s)
"""


def neighbours(
    unit: Unit, space_id: UUID, texts: Sequence[Vectors], contract: str, limit: int
) -> list[list[Row]]:
    """For each text, by the vectors of its passages, the live memories of the space nearest to any of them:
    {memory_id, version, content, valid_from, valid_to, cosine, related}, nearest first, at most `limit`.

    Cosine is the maximum over passages of both sides. `content` is what a reader of statements reads of it;
    `related` says whether relations rest on it.
    """
    found: list[dict[UUID, Row]] = [{} for _ in texts]
    for owners, vectors in _portions(texts):
        parameters = {
            "vectors": vectors,
            "exact": EXACT_MAX,
            "characters": MAX_CHARACTERS,
            "space": space_id,
            "contract": contract,
            "limit": limit,
            **visibility.view(unit.principal.settings, unit.now),
        }
        for row in unit.rows(_NEAR, parameters):
            near = found[owners[row.pop("place") - 1]]
            best = near.get(row["memory_id"])
            if best is None or row["cosine"] > best["cosine"]:
                near[row["memory_id"]] = row
    return [
        sorted(near.values(), key=lambda row: (-row["cosine"], row["memory_id"]))[:limit] for near in found
    ]


def _portions(texts: Sequence[Vectors]) -> Iterator[tuple[list[int], list[str]]]:
    """(number of the text, vector) of every passage, VECTORS at a time."""
    every = [(number, vector_text(vector)) for number, vectors in enumerate(texts) for vector in vectors]
    for start in range(0, len(every), VECTORS):
        part = every[start : start + VECTORS]
        yield [number for number, _ in part], [vector for _, vector in part]
