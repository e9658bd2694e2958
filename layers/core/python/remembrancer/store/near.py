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


def neighbours(
    unit: Unit, space_id: UUID, texts: Sequence[Vectors], contract: str, limit: int
) -> list[list[Row]]:
    """For each text, by the vectors of its passages, the live memories of the space nearest to any of them:
    {memory_id, version, content, valid_from, valid_to, cosine}, nearest first, at most `limit`.

    Cosine is the maximum over passages of both sides. `content` is what a reader of statements reads of it.
    """
    found: list[dict[UUID, Row]] = [{} for _ in texts]
    for owners, vectors in _portions(texts):
        parameters = {
            "vectors": vectors,
            "tenant": unit.tenant_id,
            "space": space_id,
            "contract": contract,
            "limit": limit,
            **visibility.view(unit.principal.settings, unit.now),
        }
        for row in unit.rows(_EXACT if _is_small(unit, space_id) else _INDEXED, parameters):
            near = found[owners[row.pop("place") - 1]]
            best = near.get(row["memory_id"])
            if best is None or row["cosine"] > best["cosine"]:
                near[row["memory_id"]] = row
    return [
        sorted(near.values(), key=lambda row: (-row["cosine"], row["memory_id"]))[:limit] for near in found
    ]


# Looked up passage by passage: of rows that one transaction has just brought the planner knows nothing, and
# would compare all of them with all of them. `offset 0` keeps it from turning the lookup into a join.
_LIVE = f"""
from passage p cross join lateral (
  select m.memory_id, v.version, v.valid_from, v.valid_to from memory m
  join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
  where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id and v.memory_id = p.memory_id and {visibility.live()}
  offset 0
) l
where p.tenant_id = %(tenant)s and p.space_id = %(space)s and p.contract = %(contract)s
"""
_SHOWN = f"""
select n.place, n.memory_id, n.version, m.content, n.valid_from, n.valid_to, n.cosine
from near n cross join lateral (
  select left(content, {MAX_CHARACTERS}) as content from memory
  where tenant_id = %(tenant)s and memory_id = n.memory_id offset 0
) m
"""
# What is live is found once for all vectors.
_EXACT = f"""
with live as materialized (
  select l.*, p.embedding {_LIVE}
), near as (
  select c.place, x.* from unnest(%(vectors)s::halfvec[]) with ordinality as c (vector, place)
  cross join lateral (
    select memory_id, version, valid_from, valid_to, 1 - (embedding <=> c.vector) as cosine
    from live order by embedding <=> c.vector limit %(limit)s
  ) x
)
{_SHOWN}
"""
# Planned while sorting is off (`_is_small`), so that it is the index that gives the order, whatever the planner
# knows of rows that one transaction has just brought; run with sorting on again.
_INDEXED = f"""
with sorting as materialized (
  select set_config('enable_sort', 'on', true)
), near as (
  select c.place, x.* from sorting, unnest(%(vectors)s::halfvec[]) with ordinality as c (vector, place)
  cross join lateral (
    select l.*, 1 - (p.embedding <=> c.vector) as cosine
    {_LIVE} order by p.embedding <=> c.vector limit %(limit)s
  ) x
)
{_SHOWN}
"""


def _is_small(unit: Unit, space_id: UUID) -> bool:
    row = unit.row(
        f"""
        select counted.small, set_config('enable_sort', case when small then 'on' else 'off' end, true)
        from (select count(*) <= {EXACT_MAX} as small from (
          select from passage where tenant_id = %(tenant)s and space_id = %(space)s limit {EXACT_MAX + 1}) p) counted
        """,
        {"tenant": unit.tenant_id, "space": space_id},
    )
    assert row is not None
    small: bool = row["small"]
    return small


def _portions(texts: Sequence[Vectors]) -> Iterator[tuple[list[int], list[str]]]:
    """(number of the text, vector) of every passage, VECTORS at a time."""
    every = [(number, vector_text(vector)) for number, vectors in enumerate(texts) for vector in vectors]
    for start in range(0, len(every), VECTORS):
        part = every[start : start + VECTORS]
        yield [number for number, _ in part], [vector for _, vector in part]
