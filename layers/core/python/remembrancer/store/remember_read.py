"""What an attempt reads before it asks the assessor, and again under the locks of its commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.digests import content_sha
from remembrancer.domain.remember_facts import Statement
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.vectors import vector_text

REGISTRY = 2_000
"""Predicates of a space that are ranked for an attempt; named ones are always among them."""

_LIVE_MEMORY = f"""
select m.memory_id, v.version, m.space_id, m.owner_id, m.content, m.dedup_key, m.admitted_by, v.valid_from, v.valid_to,
       v.expires_at
from memory m
join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id and v.superseded_by is null
where m.tenant_id = %(tenant)s and {visibility.live()}
"""


def _view(unit: Unit) -> dict[str, Any]:
    return {"tenant": unit.tenant_id, **visibility.view(unit.principal.settings, unit.now)}


def same_text(unit: Unit, space_id: UUID, owner_id: UUID, keys: Collection[bytes]) -> list[Row]:
    """Live memories of that owner and space under one of these keys, oldest first: {memory_id, version, content,
    dedup_key, ...}."""
    return unit.rows(
        _LIVE_MEMORY
        + " and m.dedup_key = any (%(keys)s) and m.space_id = %(space)s and m.owner_id = %(owner)s"
        + " order by m.memory_id",
        {**_view(unit), "keys": list(keys), "space": space_id, "owner": owner_id},
    )


def live_memories(unit: Unit, memory_ids: Collection[UUID]) -> dict[UUID, Row]:
    """Those of them that this reader is shown now."""
    if not memory_ids:
        return {}
    rows = unit.rows(
        _LIVE_MEMORY + " and m.memory_id = any (%(ids)s)", {**_view(unit), "ids": sorted(memory_ids)}
    )
    return {row["memory_id"]: row for row in rows}


def near(
    unit: Unit,
    space_id: UUID,
    owner_id: UUID,
    vectors: Sequence[Any],
    contract: str,
    floor: float,
    limit: int,
) -> list[Row]:
    """Live memories of that owner and space, at least `floor` (cosine) near to one of the passages, nearest first:
    {memory_id, version, content, cosine}."""
    found: dict[UUID, Row] = {}
    for vector in vectors:
        rows = unit.rows(
            f"""
            select * from (
              select m.memory_id, v.version, m.content, 1 - (p.embedding <=> %(vector)s::halfvec) as cosine
              from passage p {visibility.JOIN}
              where p.tenant_id = %(tenant)s and p.space_id = %(space)s and p.contract = %(contract)s
                and m.owner_id = %(owner)s and v.superseded_by is null and {visibility.live()}
              order by p.embedding <=> %(vector)s::halfvec limit %(limit)s
            ) as nearest where cosine >= %(floor)s
            """,
            {
                **_view(unit),
                "vector": vector_text(vector),
                "space": space_id,
                "owner": owner_id,
                "contract": contract,
                "floor": floor,
                "limit": limit,
            },
        )
        for row in rows:
            if row["memory_id"] not in found or row["cosine"] > found[row["memory_id"]]["cosine"]:
                found[row["memory_id"]] = row
    return sorted(found.values(), key=lambda row: (-row["cosine"], row["memory_id"]))[:limit]


def submissions(unit: Unit, memory_id: UUID) -> list[Row]:
    """The occurrences of a memory, oldest first, with what `/remember` was told of them (null on other paths)."""
    return unit.rows(
        """
        select o.occurrence_id, o.submitted_by, o.submitted_at, o.content as text, b.source_type, b.source,
               b.source_group, b.authority, coalesce(b.revision, o.revision) as revision, b.labels, b.observed_at
        from occurrence o
        left join submission b on b.tenant_id = o.tenant_id and b.occurrence_id = o.occurrence_id
        where o.tenant_id = %(tenant)s and o.memory_id = %(id)s
        order by o.submitted_at, o.occurrence_id limit 1000
        """,
        {"tenant": unit.tenant_id, "id": memory_id},
    )


def spans(unit: Unit, memory_ids: Collection[UUID]) -> dict[tuple[UUID, UUID, int], list[list[int]]]:
    """Where the text of a memory supports a relationship version, by memory, relationship and version: half-open, in
    code points. What a reuse said in other words has no place in it."""
    if not memory_ids:
        return {}
    found: dict[tuple[UUID, UUID, int], list[list[int]]] = {}
    for row in unit.rows(
        """
        select distinct s.memory_id, s.relationship_id, s.version, s.span_start, s.span_end
        from support s join occurrence o on o.tenant_id = s.tenant_id and o.occurrence_id = s.occurrence_id
        where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s) and s.span_start is not null
          and o.content is null
        order by s.memory_id, s.relationship_id, s.version, s.span_start, s.span_end
        """,
        {"tenant": unit.tenant_id, "ids": sorted(memory_ids)},
    ):
        key = (row["memory_id"], row["relationship_id"], row["version"])
        found.setdefault(key, []).append([row["span_start"], row["span_end"]])
    return found


def generation(unit: Unit, space_id: UUID) -> int:
    """Of a space of the principal's. Raises LookupError for another."""
    row = unit.row(
        "select generation from space where tenant_id = %(tenant)s and space_id = %(space)s",
        {"tenant": unit.tenant_id, "space": space_id},
    )
    if row is None:
        raise LookupError("no such space")
    current: int = row["generation"]
    return current


def sources(unit: Unit, space_id: UUID, owner_id: UUID, keys: Collection[str]) -> dict[str, Row]:
    """{source_id, revision} by key."""
    if not keys:
        return {}
    rows = unit.rows(
        """
        select source_key, source_id, revision from evidence_source
        where tenant_id = %(tenant)s and space_id = %(space)s and owner_id = %(owner)s
          and key_sha = any (%(keys)s)
        """,
        {
            "tenant": unit.tenant_id,
            "space": space_id,
            "owner": owner_id,
            "keys": [content_sha(key) for key in sorted(keys)],
        },
    )
    return {row["source_key"]: row for row in rows}


def bearers(unit: Unit, space_id: UUID, keys: Collection[str]) -> dict[str, list[Row]]:
    """The entities that bear each of these names, canonical bearers first: {entity_id, kind, named_kind, name,
    aliases}. What was merged into another is that other; `named_kind` is what it was under this name."""
    if not keys:
        return {}
    found: dict[str, list[Row]] = {}
    for row in unit.rows(
        """
        select distinct on (n.name_key, e.entity_id) n.name_key, e.entity_id, e.kind, n.kind as named_kind, c.name,
               array(select a.name from entity_name a where a.tenant_id = e.tenant_id and a.entity_id = e.entity_id
                     and not a.canonical order by a.name_key collate "C") as aliases
        from entity_name n
        join entity f on f.tenant_id = n.tenant_id and f.entity_id = n.entity_id
        join entity e on e.tenant_id = f.tenant_id and e.entity_id = coalesce(f.merged_into, f.entity_id)
        join entity_name c on c.tenant_id = e.tenant_id and c.entity_id = e.entity_id and c.canonical
        where n.tenant_id = %(tenant)s and n.space_id = %(space)s and n.name_key = any (%(keys)s)
        order by n.name_key, e.entity_id, n.canonical desc
        """,
        {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys)},
    ):
        found.setdefault(row["name_key"], []).append(row)
    return found


def entities(unit: Unit, space_id: UUID, entity_ids: Collection[UUID]) -> dict[UUID, Row]:
    """Entities of the space that are not part of another: {entity_id, kind, name, name_key, aliases}."""
    if not entity_ids:
        return {}
    rows = unit.rows(
        """
        select e.entity_id, e.kind, c.name, c.name_key,
               array(select a.name from entity_name a where a.tenant_id = e.tenant_id and a.entity_id = e.entity_id
                     and not a.canonical order by a.name_key collate "C") as aliases
        from entity e
        join entity_name c on c.tenant_id = e.tenant_id and c.entity_id = e.entity_id and c.canonical
        where e.tenant_id = %(tenant)s and e.space_id = %(space)s and e.entity_id = any (%(ids)s)
          and e.merged_into is null
        """,
        {"tenant": unit.tenant_id, "space": space_id, "ids": sorted(entity_ids)},
    )
    return {row["entity_id"]: row for row in rows}


def merged(unit: Unit, entity_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Which of these entities are there, and what each is now: itself, or what it was merged into."""
    if not entity_ids:
        return {}
    rows = unit.rows(
        "select entity_id, coalesce(merged_into, entity_id) as now from entity"
        " where tenant_id = %(tenant)s and entity_id = any (%(ids)s)",
        {"tenant": unit.tenant_id, "ids": sorted(entity_ids)},
    )
    return {row["entity_id"]: row["now"] for row in rows}


def predicates(unit: Unit, space_id: UUID, keys: Collection[str]) -> list[Row]:
    """The registry of the space: {predicate_key, kind, cardinality, subject_kinds, object_kinds, aliases}; of a
    long one the named (by key or alias) and the newest."""
    return unit.rows(
        """
        select p.predicate_key, p.kind, p.cardinality, p.subject_kinds, p.object_kinds,
               array(select distinct a.alias from predicate_alias a where a.tenant_id = p.tenant_id
                     and a.space_id = p.space_id and a.predicate_key = p.predicate_key order by a.alias) as aliases
        from predicate p
        where p.tenant_id = %(tenant)s and p.space_id = %(space)s
        order by p.predicate_key = any (%(keys)s) or exists (
                   select from predicate_alias a where a.tenant_id = p.tenant_id and a.space_id = p.space_id
                     and a.predicate_key = p.predicate_key and a.alias = any (%(keys)s)) desc,
                 p.created_at desc, p.predicate_key collate "C"
        limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys), "limit": REGISTRY},
    )


def kinds(unit: Unit, space_id: UUID, keys: Collection[str]) -> dict[str, tuple[str, str]]:
    """(kind, cardinality) of those of these predicates that are registered."""
    rows = unit.rows(
        """
        select predicate_key, kind, cardinality from predicate
        where tenant_id = %(tenant)s and space_id = %(space)s and predicate_key = any (%(keys)s)
        """,
        {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys)},
    )
    return {row["predicate_key"]: (row["kind"], row["cardinality"]) for row in rows}


_FACT = """relationship_id, version, owner_id, subject_id, predicate_key, object_id, value_type, value_canonical,
  value_original, value_unit, polarity, valid_from, valid_to"""


def relationships(unit: Unit, space_id: UUID, relationship_ids: Collection[UUID]) -> dict[UUID, Row]:
    """The current versions."""
    if not relationship_ids:
        return {}
    rows = unit.rows(
        f"""
        select {_FACT} from relationship
        where tenant_id = %(tenant)s and space_id = %(space)s and relationship_id = any (%(ids)s)
          and superseded_at is null
        """,
        {"tenant": unit.tenant_id, "space": space_id, "ids": sorted(relationship_ids)},
    )
    return {row["relationship_id"]: row for row in rows}


def facts(
    unit: Unit,
    space_id: UUID,
    statements: Collection[Statement],
    single: Collection[str],
    relationship_ids: Collection[UUID],
) -> list[Row]:
    """All owners' current facts that may bear on these statements, in a fixed order: those with the same object, of
    `single` predicates all of the subject; and the named relationships."""
    wanted = [
        {
            "subject_id": str(said.subject_id),
            "predicate_key": said.predicate,
            "object_id": None if said.object_id is None else str(said.object_id),
            "value_canonical": None if said.value is None else said.value.canonical,
            "whole": said.predicate in single,
        }
        for said in statements
    ]
    return unit.rows(
        f"""
        with wanted as (
          select * from jsonb_to_recordset(%(wanted)s)
            as w (subject_id uuid, predicate_key text, object_id uuid, value_canonical text, whole boolean)
        )
        select {_FACT} from relationship r
        where r.tenant_id = %(tenant)s and r.space_id = %(space)s and r.superseded_at is null
          and (r.relationship_id = any (%(ids)s) or (r.relationship_id, r.version) in (
            select f.relationship_id, f.version from wanted w
            join relationship f on f.tenant_id = %(tenant)s and f.space_id = %(space)s and f.superseded_at is null
              and f.subject_id = w.subject_id and f.predicate_key = w.predicate_key
              and (w.whole or f.object_id = w.object_id or f.value_canonical = w.value_canonical)))
        order by r.relationship_id
        """,
        {
            "tenant": unit.tenant_id,
            "space": space_id,
            "ids": sorted(relationship_ids),
            "wanted": Jsonb(wanted),
        },
    )
