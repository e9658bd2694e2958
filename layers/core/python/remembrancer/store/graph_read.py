"""Reading the graph: entities a query names, the edges around them, one entity, one relationship's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit

MAX_ENTITIES = 16
MAX_EDGES = 2_000

_EDGE = f"""r.relationship_id, r.version, r.subject_id, r.object_id, r.predicate_key, r.polarity, r.valid_from,
  r.valid_to, r.created_at, r.superseded_at, r.superseded_by, r.value_type, r.value_canonical, r.value_unit,
  {visibility.called("r.subject_id")} as subject, {visibility.called("r.object_id")} as object"""


def _supported(known_at: datetime | None) -> str:
    """A relationship is shown as long as a memory that may be shown supports it."""
    return f"""exists (select from support s
      join memory m on m.tenant_id = s.tenant_id and m.memory_id = s.memory_id
      join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
      where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id and s.version = r.version
        and {visibility.live(known_at=known_at)})"""


def named(
    unit: Unit,
    spaces: Sequence[UUID],
    keys: Sequence[str],
    view: Mapping[str, Any],
    *,
    known_at: datetime | None = None,
    decayed: bool = False,
) -> list[UUID]:
    """The entities that bear one of these folded names in these spaces in the asked view, longest name first, at most
    MAX_ENTITIES.

    What was merged into another is that other now, which bears its names and has its edges; a view of what was
    known before still finds it as it was.
    """
    rows = unit.rows(
        f"""
        select n.entity_id, max(length(n.name_key)) as long
        from entity_name n join entity e on e.tenant_id = n.tenant_id and e.entity_id = n.entity_id
        where n.tenant_id = %(tenant)s and n.space_id = any (%(spaces)s::uuid[]) and n.name_key = any (%(keys)s)
          and (e.merged_into is null or e.merged_at > %(known_at)s::timestamptz)
          and {visibility.mentioned("n", named=True, known_at=known_at, decayed=decayed)}
        group by n.entity_id order by long desc, n.entity_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "keys": list(keys),
            "limit": MAX_ENTITIES,
            **view,
        },
    )
    return [row["entity_id"] for row in rows]


def around(
    unit: Unit,
    spaces: Sequence[UUID],
    seeds: Sequence[UUID],
    view: Mapping[str, Any],
    *,
    known_at: datetime | None = None,
    decayed: bool = False,
) -> list[Row]:
    """The live edges within two steps of the seeds, each with a memory it rests on that a recall of this view may
    bring: {subject_id, object_id, memory_id}, at most MAX_EDGES. A value edge has no object."""
    live = visibility.live_edge(known_at=known_at)
    # Key by key, of few edges: what stands apart is not planned as a join of whole tables.
    visible = visibility.recallable(known_at=known_at, decayed=decayed)
    rests = f"""cross join lateral (select memory_id from support
        where tenant_id = %(tenant)s and relationship_id = r.relationship_id and version = r.version offset 0) s
      cross join lateral {visibility.seen("s.memory_id", "true", visible)} seen"""
    return unit.rows(
        f"""
        with first as (
          select r.subject_id, r.object_id from relationship r {rests}
          where r.tenant_id = %(tenant)s and r.space_id = any (%(spaces)s::uuid[]) and {live}
            and (r.subject_id = any (%(seeds)s::uuid[]) or r.object_id = any (%(seeds)s::uuid[]))
          order by r.relationship_id limit %(limit)s
        ), reached as (
          select unnest(%(seeds)s::uuid[]) as entity_id
          union select subject_id from first union select object_id from first
        )
        select distinct r.relationship_id, r.subject_id, r.object_id, s.memory_id from relationship r {rests}
        where r.tenant_id = %(tenant)s and r.space_id = any (%(spaces)s::uuid[]) and {live}
          and (r.subject_id in (select entity_id from reached) or r.object_id in (select entity_id from reached))
        order by r.relationship_id, s.memory_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": list(spaces),
            "seeds": list(seeds),
            "limit": MAX_EDGES,
            "known_at": known_at,
            **view,
        },
    )


def by_name(unit: Unit, key: str, limit: int, at: datetime | None, known_at: datetime | None) -> list[Row]:
    """Entities with this folded name in the asked view, canonical bearers first: {entity_id, space_id, kind, names}.
    What was merged into another is found as that other, which bears its names; as of `known_at` as it was."""
    return unit.rows(
        f"""
        select e.entity_id, e.space_id, e.kind, e.created_at,
               array(select n.name from entity_name n where n.tenant_id = e.tenant_id and n.entity_id = e.entity_id
                     and {visibility.mentioned("n", named=True, known_at=known_at)}
                       order by n.canonical desc, n.name_key collate "C") as names
        from entity e join entity_name k on k.tenant_id = e.tenant_id and k.entity_id = e.entity_id
        where e.tenant_id = %(tenant)s and e.space_id = any (rem_spaces()) and k.name_key = %(key)s
          and (e.merged_into is null or e.merged_at > %(known_at)s::timestamptz)
            and {visibility.mentioned("k", named=True, known_at=known_at)}
        order by k.canonical desc, e.entity_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "key": key, "limit": limit, **_view(unit, at, known_at)},
    )


def _view(unit: Unit, at: datetime | None = None, known_at: datetime | None = None) -> dict[str, Any]:
    return visibility.view(unit.principal.settings, unit.now, at=at, known_at=known_at)


def entity(unit: Unit, entity_id: UUID, at: datetime | None, known_at: datetime | None) -> Row | None:
    """One entity with its names, or what it was merged into (as of `known_at` itself); None when this reader may
    not know of it."""
    return unit.row(
        f"""
        select e.entity_id, e.space_id, e.kind, e.created_at,
               array(select n.name from entity_name n where n.tenant_id = e.tenant_id and n.entity_id = e.entity_id
                     and {visibility.mentioned("n", named=True, known_at=known_at)}
                       order by n.canonical desc, n.name_key collate "C") as names
        from entity e
        where e.tenant_id = %(tenant)s and e.space_id = any (rem_spaces())
          and {visibility.mentioned("e", known_at=known_at)}
          and e.entity_id = (select case when asked.merged_at > %(known_at)s::timestamptz
                                      then asked.entity_id else coalesce(asked.merged_into, asked.entity_id) end
                             from entity asked where asked.tenant_id = %(tenant)s and asked.entity_id = %(id)s)
        """,
        {"tenant": unit.tenant_id, "id": entity_id, **_view(unit, at, known_at)},
    )


def edges_of(
    unit: Unit, entity_id: UUID, limit: int, at: datetime | None, known_at: datetime | None
) -> list[Row]:
    """The relationships of an entity in the asked view, in both directions, the first `limit` of `matching`."""
    return unit.rows(
        f"""
        select {_EDGE}, count(*) over () as matching from relationship r
        where r.tenant_id = %(tenant)s and r.space_id = any (rem_spaces())
          and (r.subject_id = %(id)s or r.object_id = %(id)s) and {visibility.live_edge(known_at=known_at)}
          and {_supported(known_at)}
        order by r.relationship_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "id": entity_id, "limit": limit, **_view(unit, at, known_at)},
    )


def versions(unit: Unit, relationship_id: UUID) -> list[Row]:
    """Every version of a relationship that has ever been supported by a memory that is not held, oldest first."""
    return unit.rows(
        f"""
        select {_EDGE} from relationship r
        where r.tenant_id = %(tenant)s and r.space_id = any (rem_spaces()) and r.relationship_id = %(id)s
          and exists (select from support s join memory m on m.tenant_id = s.tenant_id and m.memory_id = s.memory_id
                      where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id
                        and s.version = r.version and {visibility.NOT_HELD})
        order by r.version
        """,
        {"tenant": unit.tenant_id, "id": relationship_id},
    )


def supports(unit: Unit, relationship_id: UUID) -> dict[int, list[Row]]:
    """By version, what it rests on: {memory_id, occurrence_id, span_start, span_end}, of memories that are not held.
    A span lies in the text that was submitted, which a reuse may have in other words than the memory."""
    found: dict[int, list[Row]] = {}
    for row in unit.rows(
        f"""
        select s.version, s.memory_id, s.occurrence_id, s.span_start, s.span_end
        from support s join memory m on m.tenant_id = s.tenant_id and m.memory_id = s.memory_id
        where s.tenant_id = %(tenant)s and s.space_id = any (rem_spaces()) and s.relationship_id = %(id)s
          and {visibility.NOT_HELD}
        order by s.version, s.memory_id, s.occurrence_id, s.span_start
        """,
        {"tenant": unit.tenant_id, "id": relationship_id},
    ):
        found.setdefault(row["version"], []).append(row)
    return found


def predicates(unit: Unit) -> list[Row]:
    """The registry of the reader's spaces: {space_id, predicate_key, kind, cardinality, subject_kinds, object_kinds,
    aliases}. No kinds: any."""
    return unit.rows(
        """
        select p.space_id, p.predicate_key, p.kind, p.cardinality, p.subject_kinds, p.object_kinds,
               array(select distinct a.alias from predicate_alias a where a.tenant_id = p.tenant_id
                     and a.space_id = p.space_id and a.predicate_key = p.predicate_key order by a.alias) as aliases
        from predicate p
        where p.tenant_id = %(tenant)s and p.space_id = any (rem_spaces())
        order by predicate_key collate "C", space_id limit 1000
        """,
        {"tenant": unit.tenant_id},
    )


def about(unit: Unit, keys: Sequence[str]) -> list[Row]:
    """The live, supported relationships whose subject bears one of these folded names, with the memories they
    rest on and the names by which the subject was asked for (`called`): what a claim may contradict."""
    return unit.rows(
        f"""
        select {_EDGE}, r.space_id, array(select distinct s.memory_id from support s
            join memory m on m.tenant_id = s.tenant_id and m.memory_id = s.memory_id
            join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
            where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id and s.version = r.version
              and {visibility.live()} order by s.memory_id) as memories,
            array(select k.name from entity_name k where k.tenant_id = r.tenant_id and k.entity_id = r.subject_id
              and k.name_key = any (%(keys)s) and {visibility.mentioned("k", named=True)}
                order by k.name_key collate "C") as called
        from relationship r
        where r.tenant_id = %(tenant)s and r.space_id = any (rem_spaces())
          and r.subject_id in (select entity_id from entity_name k where k.tenant_id = %(tenant)s
                               and k.space_id = any (rem_spaces()) and k.name_key = any (%(keys)s)
                               and {visibility.mentioned("k", named=True)})
          and {visibility.live_edge()} and {_supported(None)}
        order by r.relationship_id limit 200
        """,
        {"tenant": unit.tenant_id, "keys": list(keys), **_view(unit)},
    )
