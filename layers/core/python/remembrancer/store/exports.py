"""Live memories in the order of their ids, for bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit


def page(
    unit: Unit,
    spaces: Sequence[UUID],
    domains: Sequence[str] | None,
    kinds: Sequence[str] | None,
    after: UUID | None,
    limit: int,
) -> list[Row]:
    """What is believed now, with the version each has: also of what holds at another time, which would be lost; of
    what was succeeded only what still holds."""
    return unit.rows(
        f"""
        select m.*, v.version, v.valid_from, v.valid_to, v.created_at as version_created_at, v.superseded_at,
               v.superseded_by, v.expires_at
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
        where m.tenant_id = %(tenant)s and m.space_id = any (%(spaces)s) and {visibility.kept()}
          and (%(domains)s::text[] is null or m.domain = any (%(domains)s))
          and (%(kinds)s::text[] is null or m.kind = any (%(kinds)s))
          and (%(after)s::uuid is null or m.memory_id > %(after)s)
        order by m.memory_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "domains": None if domains is None else list(domains),
            "kinds": None if kinds is None else list(kinds),
            "after": after,
            "limit": limit,
            **visibility.view(unit.principal.settings, unit.now),
        },
    )


@dataclass(frozen=True)
class Graph:
    """By memory: entities {name, kind, aliases} and the edges it supports, with the kinds of their ends."""

    entities: dict[UUID, list[Row]]
    edges: dict[UUID, list[Row]]


def graph_of(unit: Unit, memory_ids: Sequence[UUID]) -> Graph:
    """What the memories brought to the graph, in a fixed order; what several owners state is said once, as the first
    of its spellings."""
    scope = {"tenant": unit.tenant_id, "ids": list(memory_ids)}
    entities = unit.rows(
        """
        select t.memory_id, c.name, e.kind,
               coalesce(array_agg(n.name order by n.name_key collate "C") filter (where not n.canonical), '{}')
                 as aliases
        from (select distinct tenant_id, memory_id, entity_id, name_key from mention
              where tenant_id = %(tenant)s and memory_id = any (%(ids)s)) t
        join entity e on e.tenant_id = t.tenant_id and e.entity_id = t.entity_id and e.merged_into is null
        join entity_name n on n.tenant_id = t.tenant_id and n.entity_id = t.entity_id and n.name_key = t.name_key
        join entity_name c on c.tenant_id = t.tenant_id and c.entity_id = t.entity_id and c.canonical
        where t.tenant_id = %(tenant)s and t.memory_id = any (%(ids)s)
        group by t.memory_id, t.entity_id, c.name, e.kind, c.name_key
        order by t.memory_id, c.name_key collate "C", e.kind
        """,
        scope,
    )
    edges = unit.rows(
        """
        select distinct on (s.memory_id, r.predicate_key, subject.name, object.name, r.value_canonical, r.polarity,
                            r.valid_from, r.valid_to, a.kind, b.kind, r.value_type, r.value_unit)
               s.memory_id, r.predicate_key, r.polarity, r.valid_from, r.valid_to, r.value_type,
               r.value_canonical, r.value_original, r.value_unit, subject.name as subject, a.kind as subject_kind,
               object.name as object, b.kind as object_kind
        from support s
        join relationship r on r.tenant_id = s.tenant_id and r.relationship_id = s.relationship_id
                           and r.version = s.version and r.superseded_at is null
        join entity_name subject on subject.tenant_id = r.tenant_id and subject.entity_id = r.subject_id
                                and subject.canonical
        join entity a on a.tenant_id = r.tenant_id and a.entity_id = r.subject_id
        left join entity_name object on object.tenant_id = r.tenant_id and object.entity_id = r.object_id
                                    and object.canonical
        left join entity b on b.tenant_id = r.tenant_id and b.entity_id = r.object_id
        where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s)
        order by s.memory_id, r.predicate_key, subject.name, object.name, r.value_canonical, r.polarity,
                 r.valid_from, r.valid_to, a.kind, b.kind, r.value_type, r.value_unit,
                 r.value_original collate "C"
        """,
        scope,
    )
    return Graph(by_memory(entities), by_memory(edges))


def by_memory(rows: Sequence[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row.pop("memory_id"), []).append(row)
    return found
