"""What in a tenant's memory asks for a second look: near-duplicates, open conflicts, entities that look alike."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit


def recent(unit: Unit, spaces: Sequence[UUID], settings: TenantSettings, limit: int) -> list[Row]:
    """The newest passages of live memories: {passage_id, memory_id, space_id}. New text is what repeats old."""
    return unit.rows(
        f"""
        select p.passage_id, p.memory_id, p.space_id from passage p {visibility.JOIN}
        where p.tenant_id = %(tenant)s and p.space_id = any (%(spaces)s) and {visibility.live()}
        order by m.created_at desc, p.passage_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "limit": limit,
            **visibility.view(settings, unit.now),
        },
    )


def near_duplicates(
    unit: Unit, passages: Sequence[Row], settings: TenantSettings, at_least: float, limit: int
) -> list[Row]:
    """Pairs of live memories of one space with passages at least so near: {memory_id, other_id, cosine}, nearest
    first. Each of `passages` is compared with its nearest few through the index."""
    return unit.rows(
        f"""
        select least(q.memory_id, near.memory_id) as memory_id, greatest(q.memory_id, near.memory_id) as other_id,
               max(near.cosine) as cosine
        from unnest(%(ids)s::uuid[]) as asked(passage_id)
        join passage q on q.tenant_id = %(tenant)s and q.passage_id = asked.passage_id
        cross join lateral (
          select p.memory_id, 1 - (p.embedding <=> q.embedding) as cosine
          from passage p {visibility.JOIN}
          where p.tenant_id = q.tenant_id and p.space_id = q.space_id and p.contract = q.contract
            and p.memory_id <> q.memory_id and {visibility.live()}
          order by p.embedding <=> q.embedding limit 3) as near
        where near.cosine >= %(at_least)s
        group by 1, 2 order by 3 desc, 1, 2 limit %(limit)s
        """,
        {
            "ids": [row["passage_id"] for row in passages],
            "tenant": unit.tenant_id,
            "at_least": at_least,
            "limit": limit,
            **visibility.view(settings, unit.now),
        },
    )


def open_conflicts(unit: Unit, spaces: Sequence[UUID], limit: int) -> list[Row]:
    """{conflict_id, memory_id, other_id, reason}, oldest first."""
    return unit.rows(
        """
        select conflict_id, memory_id, other_id, reason from conflict
        where tenant_id = %(tenant)s and space_id = any (%(spaces)s) and status = 'open'
        order by conflict_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "spaces": list(spaces), "limit": limit},
    )


def shared_names(unit: Unit, spaces: Sequence[UUID], settings: TenantSettings, limit: int) -> list[Row]:
    """Entities of one space that bear the same name: {entity_id, other_id, score 1.0}."""
    return unit.rows(
        f"""
        select distinct a.entity_id, b.entity_id as other_id, 1.0::float8 as score
        from entity_name a
        join entity_name b on b.tenant_id = a.tenant_id and b.space_id = a.space_id and b.name_key = a.name_key
                          and b.entity_id > a.entity_id
        join entity e on e.tenant_id = a.tenant_id and e.entity_id = a.entity_id and e.merged_into is null
        join entity f on f.tenant_id = b.tenant_id and f.entity_id = b.entity_id and f.merged_into is null
        where a.tenant_id = %(tenant)s and a.space_id = any (%(spaces)s) and {visibility.mentioned("e")}
          and {visibility.mentioned("f")}
        order by 1, 2 limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "limit": limit,
            **visibility.view(settings, unit.now),
        },
    )


def names(unit: Unit, spaces: Sequence[UUID], settings: TenantSettings, limit: int) -> list[Row]:
    """{entity_id, space_id, name_key} of canonical names, in the order of the keys."""
    return unit.rows(
        f"""
        select n.entity_id, n.space_id, n.name_key from entity_name n
        join entity e on e.tenant_id = n.tenant_id and e.entity_id = n.entity_id and e.merged_into is null
        where n.tenant_id = %(tenant)s and n.space_id = any (%(spaces)s) and n.canonical and {visibility.mentioned("e")}
        order by n.name_key collate "C", n.entity_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "limit": limit,
            **visibility.view(settings, unit.now),
        },
    )
