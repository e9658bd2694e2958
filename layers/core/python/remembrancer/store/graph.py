"""Entities, predicates, relationships and their supports: idempotent upserts on the lifecycle paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.canonical import digest
from remembrancer.domain.names import name_key
from remembrancer.domain.requests import EntityIn, RelationIn
from remembrancer.domain.time_rules import Window
from remembrancer.domain.units import as_kept
from remembrancer.domain.values import canonical_value
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.locks import lock


@dataclass(frozen=True)
class Supported:
    """The memory and occurrence that the relations came with, and where they belong."""

    space_id: UUID
    owner_id: UUID
    memory_id: UUID
    occurrence_id: UUID
    exclusive: bool = False
    """The caller holds the space alone: nothing finer is locked."""


@dataclass(frozen=True)
class Brought:
    """What one memory brings to the graph."""

    by: Supported
    entities: Sequence[EntityIn]
    relations: Sequence[RelationIn]


def upsert(
    unit: Unit, by: Supported, entities: Sequence[EntityIn], relations: Sequence[RelationIn]
) -> list[UUID]:
    """`upsert_many` for one memory: the relationship ids in order."""
    [ids] = upsert_many(unit, [Brought(by, entities, relations)])
    return ids


def upsert_many(unit: Unit, brought: Sequence[Brought]) -> list[list[UUID]]:
    """Register what is new, correct what changed its window, support all of it, in order; the ids of each one's
    relationships.

    An unchanged window is a no-op. A changed window that overlaps is a correction: the old version closes in
    transaction time at the instant the new one opens. Disjoint windows coexist. The statements are as many for
    thousands of relations as for one.
    """
    found: list[list[UUID]] = [[] for _ in brought]
    for space_id in sorted({one.by.space_id for one in brought if one.entities or one.relations}):
        places = [place for place, one in enumerate(brought) if one.by.space_id == space_id]
        for place, ids in zip(places, _upsert(unit, space_id, [brought[n] for n in places]), strict=True):
            found[place] = ids
    return found


def _upsert(unit: Unit, space_id: UUID, brought: Sequence[Brought]) -> list[list[UUID]]:
    wanted = [_mentions(one.entities, one.relations) for one in brought]
    locked = [
        space_id.bytes + key.encode()
        for one, mentions in zip(brought, wanted, strict=True)
        if not one.by.exclusive
        for _, key, _ in mentions
    ]
    if locked:
        lock(unit, "entity", locked)
    keys = {key for mentions in wanted for _, key, _ in mentions}
    aliases = {name_key(alias) for one in brought for entity in one.entities for alias in entity.aliases}
    known = _Entities(unit, space_id, keys | aliases)
    for one, mentions in zip(brought, wanted, strict=True):
        # What is introduced with its aliases comes first: a relation may speak of it by one of them.
        introduced = {name_key(entity.name) for entity in one.entities}
        for name, key, kind in mentions:
            if key in introduced:
                known.mention(one.by, known.resolve(name, key, kind), key)
        for entity in one.entities:
            known.add_aliases(one.by, entity)
        for name, key, kind in mentions:
            if key not in introduced:
                known.mention(one.by, known.resolve(name, key, kind), key)
    known.write()
    _register_predicates(unit, space_id, {r.predicate for one in brought for r in one.relations})
    edges = [[(one.by, _Edge.of(relation, known)) for relation in one.relations] for one in brought]
    return _upsert_edges(unit, edges)


def _mentions(
    entities: Sequence[EntityIn], relations: Sequence[RelationIn]
) -> list[tuple[str, str, str | None]]:
    """(name, key, kind) of every mention, the ones with a kind first: two mentions of a new name are one entity."""
    mentions: dict[tuple[str, str | None], str] = {}
    for entity in entities:
        mentions.setdefault((name_key(entity.name), entity.kind), entity.name)
    for relation in relations:
        mentions.setdefault((name_key(relation.subject), relation.subject_kind), relation.subject)
        if relation.object is not None:
            mentions.setdefault((name_key(relation.object), relation.object_kind), relation.object)
    return sorted(
        ((name, key, kind) for (key, kind), name in mentions.items()),
        key=lambda m: (m[1], m[2] is None, m[2] == "other", m[2] or ""),
    )


@dataclass(frozen=True)
class _Bearer:
    """What was merged into another kept the kind of its names: it is of that kind and of its whole's."""

    entity_id: UUID
    kinds: frozenset[str]


class _Entities:
    """The entities of a space behind a set of name keys, and those made on the way until `write`."""

    def __init__(self, unit: Unit, space_id: UUID, keys: set[str]) -> None:
        self._unit = unit
        self._space_id = space_id
        self._bearers: dict[str, list[_Bearer]] = {}
        self._made: list[dict[str, Any]] = []
        self._names: dict[tuple[UUID, str], dict[str, Any]] = {}
        self._mentions: dict[tuple[UUID, UUID, UUID, str], None] = {}
        rows = unit.rows(
            """
            select w.entity_id, n.kind, w.kind as whole_kind, n.name_key, n.entity_id as bears
            from entity_name n join entity e on e.tenant_id = n.tenant_id and e.entity_id = n.entity_id
            join entity w on w.tenant_id = e.tenant_id and w.entity_id = coalesce(e.merged_into, e.entity_id)
            where n.tenant_id = %(tenant)s and n.space_id = %(space)s and n.name_key = any (%(keys)s)
            order by n.canonical desc, n.entity_id
            """,
            {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys)},
        )
        self._stored = {(row["bears"], row["name_key"]) for row in rows}
        for row in rows:
            bearer = _Bearer(row["entity_id"], frozenset({row["kind"], row["whole_kind"]}))
            self._bearers.setdefault(row["name_key"], []).append(bearer)

    def find(self, key: str, kind: str | None) -> UUID | None:
        """The canonical bearer of the name before an alias, then the oldest; of that kind when one is given.

        `other` is no kind of its own: who says it means any bearer, and its bearer may be of any kind.
        """
        for wanted in (kind, "other") if kind not in (None, "other") else (None,):
            for bearer in self._bearers.get(key, ()):
                if wanted is None or wanted in bearer.kinds:
                    return bearer.entity_id
        return None

    def resolve(self, name: str, key: str, kind: str | None) -> UUID:
        found = self.find(key, kind)
        if found is not None:
            return found
        entity_id = self._unit.new_id()
        self._made.append({"entity_id": str(entity_id), "kind": kind or "other"})
        self._name(entity_id, kind or "other", name, key, canonical=True)
        return entity_id

    def add_aliases(self, by: Supported, entity: EntityIn) -> None:
        entity_id = self.resolve(entity.name, name_key(entity.name), entity.kind)
        for alias in entity.aliases:
            self._name(entity_id, entity.kind, alias, name_key(alias), canonical=False)
            self.mention(by, entity_id, name_key(alias))

    def mention(self, by: Supported, entity_id: UUID, key: str) -> None:
        """That submission of the memory brought this name; erasing the last one that did erases the name."""
        self._mentions[by.memory_id, by.occurrence_id, entity_id, key] = None

    def write(self) -> None:
        """What is new of all this, in one statement."""
        self._unit.run(
            """
            with e as (
              insert into entity (tenant_id, entity_id, space_id, kind, created_at)
              select %(tenant)s, entity_id, %(space)s, kind, %(now)s
              from jsonb_to_recordset(%(entities)s) as r (entity_id uuid, kind text)
            ), n as (
              insert into entity_name (tenant_id, entity_id, space_id, kind, name, name_key, canonical)
              select %(tenant)s, entity_id, %(space)s, kind, name, name_key, canonical
              from jsonb_to_recordset(%(names)s)
                as r (entity_id uuid, kind text, name text, name_key text, canonical boolean)
              on conflict (tenant_id, entity_id, name_key) do nothing
            )
            insert into mention (tenant_id, space_id, memory_id, occurrence_id, entity_id, name_key)
            select %(tenant)s, %(space)s, memory_id, occurrence_id, entity_id, name_key
            from jsonb_to_recordset(%(mentions)s)
              as r (memory_id uuid, occurrence_id uuid, entity_id uuid, name_key text)
            on conflict do nothing
            """,
            {
                "tenant": self._unit.tenant_id,
                "space": self._space_id,
                "now": self._unit.now,
                "entities": Jsonb(self._made),
                "names": Jsonb(list(self._names.values())),
                "mentions": Jsonb(
                    [
                        {
                            "memory_id": str(memory_id),
                            "occurrence_id": str(occurrence_id),
                            "entity_id": str(entity_id),
                            "name_key": key,
                        }
                        for memory_id, occurrence_id, entity_id, key in self._mentions
                    ]
                ),
            },
        )

    def _name(self, entity_id: UUID, kind: str, name: str, key: str, *, canonical: bool) -> None:
        if (entity_id, key) in self._stored or (entity_id, key) in self._names:
            return
        self._names[entity_id, key] = {
            "entity_id": str(entity_id),
            "kind": kind,
            "name": name,
            "name_key": key,
            "canonical": canonical,
        }
        self._bearers.setdefault(key, []).append(_Bearer(entity_id, frozenset({kind})))


def _register_predicates(unit: Unit, space_id: UUID, keys: set[str]) -> None:
    """A predicate nobody registered is a state of cardinality many."""
    if not keys:
        return
    unit.run(
        """
        insert into predicate (tenant_id, space_id, predicate_key, kind, cardinality, created_at)
        select %(tenant)s, %(space)s, key, 'state', 'many', %(now)s from unnest(%(keys)s::text[]) as key
        on conflict (tenant_id, space_id, predicate_key) do nothing
        """,
        {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys), "now": unit.now},
    )


@dataclass(frozen=True)
class _Edge:
    subject_id: UUID
    predicate: str
    object_id: UUID | None
    value_type: str | None
    value_canonical: str | None
    value_original: str | None
    value_unit: str | None
    polarity: str
    window: Window

    @classmethod
    def of(cls, relation: RelationIn, known: _Entities) -> _Edge:
        subject = known.find(name_key(relation.subject), relation.subject_kind)
        assert subject is not None
        value = relation.value
        canonical, original, measure = None, None, None
        if value is not None:
            canonical = canonical_value(value.type, value.value)
            original, measure = str(value.value), value.unit
            if value.type == "number":
                canonical, measure, original = as_kept(canonical, original, measure)
        target = None
        if relation.object is not None:
            target = known.find(name_key(relation.object), relation.object_kind)
        return cls(
            subject_id=subject,
            predicate=relation.predicate,
            object_id=target,
            value_type=None if value is None else value.type,
            value_canonical=canonical,
            value_original=original,
            value_unit=measure,
            polarity=relation.polarity,
            window=Window(relation.valid_from, relation.valid_to),
        )

    @property
    def identity(self) -> bytes:
        """Two writers of one statement of one owner meet on this."""
        return digest(
            {
                "subject": self.subject_id.bytes,
                "predicate": self.predicate,
                "object": None if self.object_id is None else self.object_id.bytes,
                "value": [self.value_type, self.value_canonical, self.value_unit],
                "polarity": self.polarity,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The columns that say what is stated."""
        return {
            "subject_id": str(self.subject_id),
            "predicate_key": self.predicate,
            "object_id": None if self.object_id is None else str(self.object_id),
            "value_type": self.value_type,
            "value_canonical": self.value_canonical,
            "value_unit": self.value_unit,
            "polarity": self.polarity,
        }


@dataclass
class _Current:
    """A current version of a statement, as stored or about to be: `row` is what will be inserted."""

    relationship_id: UUID
    version: int
    window: Window
    created_at: datetime
    row: dict[str, Any] | None = None


_Key = tuple[UUID, bytes]
"""Owner and identity of a statement."""


def _upsert_edges(unit: Unit, edges: Sequence[Sequence[tuple[Supported, _Edge]]]) -> list[list[UUID]]:
    every: dict[_Key, tuple[Supported, _Edge]] = {}
    keyed: list[list[tuple[_Key, Supported, _Edge]]] = []
    for brought in edges:
        keyed.append([((by.owner_id, edge.identity), by, edge) for by, edge in brought])
        every |= {key: (by, edge) for key, by, edge in keyed[-1]}
    if not every:
        return [[] for _ in edges]
    # A place, as `/remember` does: whoever names its ends otherwise meets no other lock of ours.
    locked = [
        by.space_id.bytes + edge.subject_id.bytes + edge.predicate.encode()
        for by, edge in every.values()
        if not by.exclusive
    ]
    if locked:
        lock(unit, "relationship", locked)
    current = _current(unit, every)
    inserted: list[dict[str, Any]] = []
    closed: list[dict[str, Any]] = []
    supports: list[dict[str, Any]] = []
    found = []
    for group in keyed:
        ids = []
        for key, by, edge in group:
            held = current.setdefault(key, [])
            version = _stated(unit, by, edge, held, inserted, closed)
            supports.append(_support(unit, by, version))
            ids.append(version.relationship_id)
        found.append(ids)
    _write_edges(unit, inserted, closed, supports)
    return found


def _current(unit: Unit, wanted: Mapping[_Key, tuple[Supported, _Edge]]) -> dict[_Key, list[_Current]]:
    keys = list(wanted)
    rows = unit.rows(
        """
        select w.place, r.relationship_id, r.version, r.valid_from, r.valid_to, r.created_at
        from jsonb_to_recordset(%(wanted)s) as w (place int, space_id uuid, owner_id uuid, subject_id uuid,
          predicate_key text, object_id uuid, value_type text, value_canonical text, value_unit text, polarity text)
        cross join lateral (select * from relationship r
          where r.tenant_id = %(tenant)s and r.subject_id = w.subject_id
            and r.predicate_key = w.predicate_key and r.space_id = w.space_id and r.owner_id = w.owner_id
            and r.object_id is not distinct from w.object_id and r.value_type is not distinct from w.value_type
            and r.value_canonical is not distinct from w.value_canonical
            and r.value_unit is not distinct from w.value_unit and r.polarity = w.polarity
            and r.superseded_at is null offset 0) r
        order by w.place, r.relationship_id
        """,
        {
            "tenant": unit.tenant_id,
            "wanted": Jsonb(
                [
                    {
                        "place": place,
                        "space_id": str(by.space_id),
                        "owner_id": str(by.owner_id),
                        **edge.to_dict(),
                    }
                    for place, (by, edge) in enumerate(wanted.values())
                ]
            ),
        },
    )
    found: dict[_Key, list[_Current]] = {}
    for row in rows:
        window = Window(row["valid_from"], row["valid_to"])
        found.setdefault(keys[row["place"]], []).append(
            _Current(row["relationship_id"], row["version"], window, row["created_at"])
        )
    return found


def _stated(
    unit: Unit,
    by: Supported,
    edge: _Edge,
    held: list[_Current],
    inserted: list[dict[str, Any]],
    closed: list[dict[str, Any]],
) -> _Current:
    """The version that states the edge: one of `held`, the current ones, or a new one in their place.

    Another window is a correction, but none at all corrects no window that holds now: who says `works at` does not
    say that the start was wrong.
    """
    met = [one for one in held if edge.window.overlaps(one.window)]
    for one in met:
        if edge.window == one.window or (edge.window == Window() and one.window.contains(unit.now)):
            return one
    relationship_id = met[0].relationship_id if met else unit.new_id()
    version = met[0].version + 1 if met else 1
    # A writer that began later may have come first: what it wrote is not closed before it was opened.
    instant = max([unit.now, *(one.created_at for one in met)])
    for one in met:
        if one.row is None:
            closed.append(
                {
                    "relationship_id": str(one.relationship_id),
                    "version": one.version,
                    "superseded_at": str(instant),
                    "superseded_by": str(relationship_id),
                }
            )
        else:  # stated in this very transaction: it is born closed
            one.row |= {"superseded_at": str(instant), "superseded_by": str(relationship_id)}
        held.remove(one)
    row = {
        "relationship_id": str(relationship_id),
        "version": version,
        "space_id": str(by.space_id),
        "owner_id": str(by.owner_id),
        **edge.to_dict(),
        "value_original": edge.value_original,
        "valid_from": None if edge.window.start is None else str(edge.window.start),
        "valid_to": None if edge.window.end is None else str(edge.window.end),
        "created_at": str(instant),
    }
    inserted.append(row)
    made = _Current(relationship_id, version, edge.window, instant, row)
    held.append(made)
    return made


def _support(unit: Unit, by: Supported, version: _Current) -> dict[str, Any]:
    return {
        "support_id": str(unit.new_id()),
        "space_id": str(by.space_id),
        "relationship_id": str(version.relationship_id),
        "version": version.version,
        "memory_id": str(by.memory_id),
        "occurrence_id": str(by.occurrence_id),
    }


def _write_edges(
    unit: Unit,
    inserted: Sequence[dict[str, Any]],
    closed: Sequence[dict[str, Any]],
    supports: Sequence[dict[str, Any]],
) -> None:
    if closed:  # before their successors come: a relationship has one current version
        unit.run(
            """
            update relationship r set superseded_at = c.superseded_at, superseded_by = c.superseded_by
            from jsonb_to_recordset(%(closed)s) as c (relationship_id uuid, version int, superseded_at timestamptz,
              superseded_by uuid)
            where r.tenant_id = %(tenant)s and r.relationship_id = c.relationship_id and r.version = c.version
            """,
            {"tenant": unit.tenant_id, "closed": Jsonb(closed)},
        )
    unit.run(
        """
        with r as (
          insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id, predicate_key,
            object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from, valid_to,
            created_at, superseded_at, superseded_by)
          select %(tenant)s, relationship_id, version, space_id, owner_id, subject_id, predicate_key, object_id,
            value_type, value_canonical, value_original, value_unit, polarity, valid_from, valid_to, created_at,
            superseded_at, superseded_by
          from jsonb_to_recordset(%(inserted)s) as i (relationship_id uuid, version int, space_id uuid,
            owner_id uuid, subject_id uuid, predicate_key text, object_id uuid, value_type text,
            value_canonical text, value_original text, value_unit text, polarity text, valid_from timestamptz,
            valid_to timestamptz, created_at timestamptz, superseded_at timestamptz, superseded_by uuid)
        )
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id)
        select %(tenant)s, support_id, space_id, relationship_id, version, memory_id, occurrence_id
        from jsonb_to_recordset(%(supports)s) as s (support_id uuid, space_id uuid, relationship_id uuid, version int,
          memory_id uuid, occurrence_id uuid)
        on conflict do nothing
        """,
        {
            "tenant": unit.tenant_id,
            "inserted": Jsonb(inserted),
            "supports": Jsonb(supports),
        },
    )


def supported_by(
    unit: Unit,
    memory_ids: list[UUID],
    believed: str = "r.superseded_at is null",
    view: Mapping[str, Any] | None = None,
) -> dict[UUID, list[Row]]:
    """The relationships that each memory supports: subject, predicate, object or value, window. Without another
    predicate (of `visibility.live_edge`, with its view) all that are believed now, whenever they hold."""
    # Lookups one after the other (`offset 0`): a join would be planned on what is known of the tables before a
    # large import, and compare all with all.
    rows = unit.rows(
        f"""
        select distinct s.memory_id, r.relationship_id, r.version, r.predicate_key, r.polarity, r.valid_from,
               r.valid_to, {visibility.called("r.subject_id")} as subject,
               {visibility.called("r.object_id")} as object, r.value_type,
               r.value_canonical, r.value_unit
        from unnest(%(ids)s::uuid[]) as w (memory_id)
        cross join lateral (select memory_id, relationship_id, version from support
          where tenant_id = %(tenant)s and memory_id = w.memory_id offset 0) s
        cross join lateral (select * from relationship r
          where tenant_id = %(tenant)s and relationship_id = s.relationship_id and version = s.version
            and {believed} offset 0) r
        order by r.relationship_id
        """,
        {"tenant": unit.tenant_id, "ids": memory_ids, **(view or {})},
    )
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row["memory_id"], []).append(row)
    return found


def single_valued(unit: Unit, space_id: UUID) -> set[str]:
    """Predicates of which a subject has one at a time."""
    return {
        row["predicate_key"]
        for row in unit.rows(
            "select predicate_key from predicate"
            " where tenant_id = %(tenant)s and space_id = %(space)s and cardinality = 'one'",
            {"tenant": unit.tenant_id, "space": space_id},
        )
    }
