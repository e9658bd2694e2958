"""Entities, predicates, relationships and their supports: idempotent upserts on the lifecycle paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from remembrancer.domain.canonical import digest
from remembrancer.domain.names import name_key
from remembrancer.domain.requests import EntityIn, RelationIn
from remembrancer.domain.time_rules import Window
from remembrancer.domain.values import canonical_value
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


def upsert(
    unit: Unit, by: Supported, entities: Sequence[EntityIn], relations: Sequence[RelationIn]
) -> list[UUID]:
    """Register what is new, correct what changed its window, support all of it; the relationship ids in order.

    An unchanged window is a no-op. A changed window that overlaps is a correction: the old version closes in
    transaction time at the instant the new one opens. Disjoint windows coexist.
    """
    if not entities and not relations:
        return []
    wanted = _mentions(entities, relations)
    if not by.exclusive:
        lock(unit, "entity", [by.space_id.bytes + key.encode() for _, key, _ in wanted])
    known = _Entities(unit, by.space_id, {key for _, key, _ in wanted})
    for name, key, kind in wanted:
        known.mention(by.memory_id, known.resolve(name, key, kind), key)
    for entity in entities:
        known.add_aliases(by.memory_id, entity)
    _register_predicates(unit, by.space_id, {r.predicate for r in relations})
    edges = [_Edge.of(relation, known) for relation in relations]
    if not by.exclusive:
        lock(unit, "relationship", [by.owner_id.bytes + edge.identity for edge in edges])
    return [_upsert_edge(unit, by, edge) for edge in edges]


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


class _Entities:
    """The entities of a space behind a set of name keys, and those made on the way."""

    def __init__(self, unit: Unit, space_id: UUID, keys: set[str]) -> None:
        self._unit = unit
        self._space_id = space_id
        self._rows = unit.rows(
            """
            select coalesce(e.merged_into, n.entity_id) as entity_id, n.kind, n.name_key, n.canonical
            from entity_name n join entity e on e.tenant_id = n.tenant_id and e.entity_id = n.entity_id
            where n.tenant_id = %(tenant)s and n.space_id = %(space)s and n.name_key = any (%(keys)s)
            order by n.canonical desc, n.entity_id
            """,
            {"tenant": unit.tenant_id, "space": space_id, "keys": sorted(keys)},
        )

    def find(self, key: str, kind: str | None) -> UUID | None:
        """The canonical bearer of the name before an alias, then the oldest; of that kind when one is given.

        `other` is no kind of its own: who says it means any bearer, and its bearer may be of any kind.
        """
        bearers = [row for row in self._rows if row["name_key"] == key]
        for wanted in (kind, "other") if kind not in (None, "other") else (None,):
            for row in bearers:
                if wanted is None or row["kind"] == wanted:
                    found: UUID = row["entity_id"]
                    return found
        return None

    def resolve(self, name: str, key: str, kind: str | None) -> UUID:
        found = self.find(key, kind)
        if found is not None:
            return found
        entity_id = self._unit.new_id()
        self._unit.run(
            "insert into entity (tenant_id, entity_id, space_id, kind, created_at)"
            " values (%(tenant)s, %(id)s, %(space)s, %(kind)s, %(now)s)",
            {
                "tenant": self._unit.tenant_id,
                "id": entity_id,
                "space": self._space_id,
                "kind": kind or "other",
                "now": self._unit.now,
            },
        )
        self._name(entity_id, kind or "other", name, key, canonical=True)
        return entity_id

    def add_aliases(self, memory_id: UUID, entity: EntityIn) -> None:
        entity_id = self.resolve(entity.name, name_key(entity.name), entity.kind)
        for alias in entity.aliases:
            self._name(entity_id, entity.kind, alias, name_key(alias), canonical=False)
            self.mention(memory_id, entity_id, name_key(alias))

    def mention(self, memory_id: UUID, entity_id: UUID, key: str) -> None:
        """The memory brought this name; erasing the last memory that did erases the name."""
        self._unit.run(
            """
            insert into mention (tenant_id, space_id, memory_id, entity_id, name_key)
            values (%(tenant)s, %(space)s, %(memory)s, %(entity)s, %(key)s) on conflict do nothing
            """,
            {
                "tenant": self._unit.tenant_id,
                "space": self._space_id,
                "memory": memory_id,
                "entity": entity_id,
                "key": key,
            },
        )

    def _name(self, entity_id: UUID, kind: str, name: str, key: str, *, canonical: bool) -> None:
        self._unit.run(
            """
            insert into entity_name (tenant_id, entity_id, space_id, kind, name, name_key, canonical)
            values (%(tenant)s, %(id)s, %(space)s, %(kind)s, %(name)s, %(key)s, %(canonical)s)
            on conflict (tenant_id, entity_id, name_key) do nothing
            """,
            {
                "tenant": self._unit.tenant_id,
                "id": entity_id,
                "space": self._space_id,
                "kind": kind,
                "name": name,
                "key": key,
                "canonical": canonical,
            },
        )
        self._rows.append({"entity_id": entity_id, "kind": kind, "name_key": key, "canonical": canonical})


def _register_predicates(unit: Unit, space_id: UUID, keys: set[str]) -> None:
    """A predicate nobody registered is a state of cardinality many."""
    unit.run_many(
        """
        insert into predicate (tenant_id, space_id, predicate_key, kind, cardinality, created_at)
        values (%(tenant)s, %(space)s, %(key)s, 'state', 'many', %(now)s)
        on conflict (tenant_id, space_id, predicate_key) do nothing
        """,
        [{"tenant": unit.tenant_id, "space": space_id, "key": key, "now": unit.now} for key in sorted(keys)],
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
        target = None
        if relation.object is not None:
            target = known.find(name_key(relation.object), relation.object_kind)
        return cls(
            subject_id=subject,
            predicate=relation.predicate,
            object_id=target,
            value_type=None if value is None else value.type,
            value_canonical=None if value is None else canonical_value(value.type, value.value),
            value_original=None if value is None else str(value.value),
            value_unit=None if value is None else value.unit,
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


def _upsert_edge(unit: Unit, by: Supported, edge: _Edge) -> UUID:
    current = unit.rows(
        """
        select relationship_id, version, valid_from, valid_to from relationship
        where tenant_id = %(tenant)s and space_id = %(space)s and owner_id = %(owner)s and subject_id = %(subject)s
          and predicate_key = %(predicate)s and object_id is not distinct from %(object)s
          and value_type is not distinct from %(value_type)s
          and value_canonical is not distinct from %(value)s and value_unit is not distinct from %(unit)s
          and polarity = %(polarity)s and superseded_at is null
        order by relationship_id
        """,
        {
            "tenant": unit.tenant_id,
            "space": by.space_id,
            "owner": by.owner_id,
            "subject": edge.subject_id,
            "predicate": edge.predicate,
            "object": edge.object_id,
            "value_type": edge.value_type,
            "value": edge.value_canonical,
            "unit": edge.value_unit,
            "polarity": edge.polarity,
        },
    )
    relationship_id: UUID
    met = [row for row in current if edge.window.overlaps(Window(row["valid_from"], row["valid_to"]))]
    if any(edge.window == Window(row["valid_from"], row["valid_to"]) for row in met):
        [same] = met  # current windows of one statement are disjoint
        relationship_id, version = same["relationship_id"], same["version"]
    else:
        relationship_id, version = unit.new_id(), 1
        if met:
            relationship_id, version = met[0]["relationship_id"], met[0]["version"] + 1
        for row in met:
            close(unit, row["relationship_id"], row["version"], superseded_by=relationship_id)
        _insert(unit, by, edge, relationship_id, version)
    unit.run(
        """
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id)
        values (%(tenant)s, %(id)s, %(space)s, %(relationship)s, %(version)s, %(memory)s, %(occurrence)s)
        on conflict do nothing
        """,
        {
            "tenant": unit.tenant_id,
            "id": unit.new_id(),
            "space": by.space_id,
            "relationship": relationship_id,
            "version": version,
            "memory": by.memory_id,
            "occurrence": by.occurrence_id,
        },
    )
    return relationship_id


def close(unit: Unit, relationship_id: UUID, version: int, *, superseded_by: UUID) -> None:
    """Close a version in transaction time; it stays verbatim."""
    unit.run(
        """
        update relationship set superseded_at = %(now)s, superseded_by = %(by)s
        where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        """,
        {
            "now": unit.now,
            "by": superseded_by,
            "tenant": unit.tenant_id,
            "id": relationship_id,
            "version": version,
        },
    )


def _insert(unit: Unit, by: Supported, edge: _Edge, relationship_id: UUID, version: int) -> None:
    unit.run(
        """
        insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id, predicate_key,
          object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from, valid_to,
          created_at)
        values (%(tenant)s, %(id)s, %(version)s, %(space)s, %(owner)s, %(subject)s, %(predicate)s, %(object)s,
          %(value_type)s, %(value)s, %(original)s, %(unit)s, %(polarity)s, %(from)s, %(to)s, %(now)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": relationship_id,
            "version": version,
            "space": by.space_id,
            "owner": by.owner_id,
            "subject": edge.subject_id,
            "predicate": edge.predicate,
            "object": edge.object_id,
            "value_type": edge.value_type,
            "value": edge.value_canonical,
            "original": edge.value_original,
            "unit": edge.value_unit,
            "polarity": edge.polarity,
            "from": edge.window.start,
            "to": edge.window.end,
            "now": unit.now,
        },
    )


def supported_by(unit: Unit, memory_ids: list[UUID]) -> dict[UUID, list[Row]]:
    """The current relationships that each memory supports: subject, predicate, object or value, window."""
    rows = unit.rows(
        """
        select distinct s.memory_id, r.relationship_id, r.version, r.predicate_key, r.polarity, r.valid_from,
               r.valid_to, subject.name as subject, object.name as object, r.value_type,
               r.value_canonical, r.value_unit
        from support s
        join relationship r on r.tenant_id = s.tenant_id and r.relationship_id = s.relationship_id
                           and r.version = s.version and r.superseded_at is null
        join entity_name subject on subject.tenant_id = r.tenant_id and subject.entity_id = r.subject_id
                                and subject.canonical
        left join entity_name object on object.tenant_id = r.tenant_id and object.entity_id = r.object_id
                                    and object.canonical
        where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s)
        order by r.relationship_id
        """,
        {"tenant": unit.tenant_id, "ids": memory_ids},
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
