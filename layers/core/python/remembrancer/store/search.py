"""The retrieval legs and the neighbours of a candidate: filters inside the search, visibility written once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.memories import vector_text

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors


def neighbours(unit: Unit, space_id: UUID, vectors: Vectors, contract: str, limit: int) -> list[Row]:
    """The live memories of one space nearest to any of the passages: {memory_id, version, content, valid_from,
    valid_to, cosine}, nearest first, at most `limit`. Cosine is the maximum over passages of both sides."""
    found: dict[UUID, Row] = {}
    for vector in vectors:
        for row in unit.rows(
            f"""
            select m.memory_id, v.version, m.content, m.title, v.valid_from, v.valid_to,
                   1 - (p.embedding <=> %(vector)s::halfvec) as cosine
            from passage p {visibility.JOIN}
            where p.tenant_id = %(tenant)s and p.space_id = %(space)s and p.contract = %(contract)s
              and {visibility.live()}
            order by p.embedding <=> %(vector)s::halfvec limit %(limit)s
            """,
            {
                "vector": vector_text(vector),
                "tenant": unit.tenant_id,
                "space": space_id,
                "contract": contract,
                "limit": limit,
                **visibility.view(unit.principal.settings, unit.now),
            },
        ):
            best = found.get(row["memory_id"])
            if best is None or row["cosine"] > best["cosine"]:
                found[row["memory_id"]] = row
    return sorted(found.values(), key=lambda row: (-row["cosine"], row["memory_id"]))[:limit]


_FILTERS = """
and (%(spaces)s::uuid[] is null or p.space_id = any (%(spaces)s))
and (%(domains)s::text[] is null or m.domain = any (%(domains)s))
and (%(kinds)s::text[] is null or m.kind = any (%(kinds)s))
and (%(sources)s::text[] is null or m.source = any (%(sources)s))
and (%(since)s::timestamptz is null or coalesce(m.observed_at, m.created_at) >= %(since)s)
"""


def vector_leg(unit: Unit, vector: Any, contract: str, filters: Mapping[str, Any], limit: int) -> list[Row]:
    """{passage_id, memory_id, version, score} by cosine, best first."""
    return unit.rows(
        f"""
        select p.passage_id, p.memory_id, v.version, 1 - (p.embedding <=> %(vector)s::halfvec) as score
        from passage p {visibility.JOIN}
        where p.tenant_id = %(tenant)s and p.space_id = any (rem_spaces()) and p.contract = %(contract)s
          and {visibility.live(known_at=filters["known_at"])} {_FILTERS}
        order by p.embedding <=> %(vector)s::halfvec limit %(limit)s
        """,
        {
            "vector": vector_text(vector),
            "tenant": unit.tenant_id,
            "contract": contract,
            "limit": limit,
            **filters,
        },
    )


def lexical_leg(unit: Unit, terms: list[int], filters: Mapping[str, Any], limit: int) -> list[Row]:
    """{passage_id, memory_id, version, score} by shared terms, best first."""
    return unit.rows(
        f"""
        select p.passage_id, p.memory_id, v.version,
               (select count(*) from unnest(%(terms)s::bigint[]) as t(term) where t.term = any (p.terms)) as score
        from passage p {visibility.JOIN}
        where p.tenant_id = %(tenant)s and p.space_id = any (rem_spaces()) and p.terms && %(terms)s::bigint[]
          and {visibility.live(known_at=filters["known_at"])} {_FILTERS}
        order by score desc, p.passage_id limit %(limit)s
        """,
        {"terms": terms, "tenant": unit.tenant_id, "limit": limit, **filters},
    )


def hydrate(unit: Unit, passage_ids: list[UUID], versions: list[int]) -> list[Row]:
    """Everything a hit shows, for passages found by the legs, with the version each was found under."""
    return unit.rows(
        """
        select p.passage_id, p.span_start, p.span_end, m.*, v.version, v.valid_from, v.valid_to, v.expires_at,
               v.created_at as version_created_at, v.superseded_at, v.superseded_by
        from unnest(%(passages)s::uuid[], %(versions)s::int[]) as wanted(passage_id, version)
        join passage p on p.tenant_id = %(tenant)s and p.passage_id = wanted.passage_id
        join memory m on m.tenant_id = p.tenant_id and m.memory_id = p.memory_id
        join memory_version v on v.tenant_id = p.tenant_id and v.memory_id = p.memory_id and v.version = wanted.version
        """,
        {"tenant": unit.tenant_id, "passages": passage_ids, "versions": versions},
    )
