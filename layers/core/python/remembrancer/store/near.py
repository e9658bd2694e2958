"""The live memories around texts on their way in: one statement for all of them, filters inside the search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
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


def neighbours(
    unit: Unit, space_id: UUID, texts: Sequence[Vectors], contract: str, limit: int
) -> list[list[Row]]:
    """For each text, by the vectors of its passages, the live memories of the space nearest to any of them:
    {memory_id, version, content, valid_from, valid_to, cosine}, nearest first, at most `limit`.

    Cosine is the maximum over passages of both sides. `content` is what a reader of statements reads of it.
    """
    found: list[dict[UUID, Row]] = [{} for _ in texts]
    for owners, vectors in _portions(texts):
        for row in unit.rows(
            f"""
            select c.place, n.* from unnest(%(vectors)s::halfvec[]) with ordinality as c(vector, place)
            cross join lateral (
              select m.memory_id, v.version, left(m.content, {MAX_CHARACTERS}) as content, v.valid_from, v.valid_to,
                     1 - (p.embedding <=> c.vector) as cosine
              from passage p {visibility.JOIN}
              where p.tenant_id = %(tenant)s and p.space_id = %(space)s and p.contract = %(contract)s
                and {visibility.live()}
              order by p.embedding <=> c.vector limit %(limit)s
            ) n
            """,
            {
                "vectors": vectors,
                "tenant": unit.tenant_id,
                "space": space_id,
                "contract": contract,
                "limit": limit,
                **visibility.view(unit.principal.settings, unit.now),
            },
        ):
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
    for _, part in groupby(enumerate(every), key=lambda entry: entry[0] // VECTORS):
        pairs = [pair for _, pair in part]
        yield [number for number, _ in pairs], [vector for _, vector in pairs]
