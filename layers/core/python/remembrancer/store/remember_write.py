"""What a commit of `/remember` writes beside the memories themselves: submissions, sources, the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.assessment import Register
from remembrancer.domain.digests import content_sha
from remembrancer.domain.remember_facts import Contradiction, Fact, Value
from remembrancer.domain.remember_requests import EvidenceIn
from remembrancer.domain.time_rules import Window
from remembrancer.store.database import Row, Unit


def read_clock(unit: Unit) -> None:
    """The instant of the decision is after every lock was taken: a transaction that began earlier and waited would
    close what it waited for before it was opened."""
    row = unit.row("select clock_timestamp() - transaction_timestamp() as waited")
    assert row is not None
    unit.now += row["waited"]


@dataclass(frozen=True)
class Submission:
    """One item of the batch and the memory that it is a submission of."""

    item: int
    memory_id: UUID
    occurrence_id: UUID
    evidence: EvidenceIn
    source_id: UUID | None


@dataclass(frozen=True)
class Reuse:
    """One more occurrence of a stored memory; `content` is the submitted text when its bytes differ."""

    memory_id: UUID
    content: str | None
    source: str
    revision: str | None


def reuse(unit: Unit, space_id: UUID, again: Sequence[Reuse], correlation_id: str) -> list[UUID]:
    """The occurrences' ids in order."""
    occurrence_ids = [unit.new_id() for _ in again]
    unit.run_many(
        """
        insert into occurrence (tenant_id, occurrence_id, memory_id, space_id, content, submitted_by, submitted_at,
          source, correlation_id, revision)
        values (%(tenant)s, %(id)s, %(memory)s, %(space)s, %(content)s, %(by)s, %(now)s, %(source)s, %(correlation)s,
          %(revision)s)
        """,
        [
            {
                "tenant": unit.tenant_id,
                "id": occurrence_id,
                "memory": one.memory_id,
                "space": space_id,
                "content": one.content,
                "by": unit.principal.principal_id,
                "now": unit.now,
                "source": one.source,
                "correlation": correlation_id,
                "revision": one.revision,
            }
            for one, occurrence_id in zip(again, occurrence_ids, strict=True)
        ],
    )
    return occurrence_ids


def submit(unit: Unit, space_id: UUID, attempt_id: UUID, submissions: Sequence[Submission]) -> None:
    """What the caller said of each submission."""
    unit.run_many(
        """
        insert into submission (tenant_id, occurrence_id, memory_id, space_id, attempt_id, item, source_type, source,
          source_group, authority, source_id, revision, labels, metadata, observed_at, data_subjects)
        values (%(tenant)s, %(occurrence)s, %(memory)s, %(space)s, %(attempt)s, %(item)s, %(type)s, %(source)s,
          %(group)s, %(authority)s, %(source_id)s, %(revision)s, %(labels)s, %(metadata)s, %(observed)s, %(subjects)s)
        """,
        [
            {
                "tenant": unit.tenant_id,
                "occurrence": one.occurrence_id,
                "memory": one.memory_id,
                "space": space_id,
                "attempt": attempt_id,
                "item": one.item,
                "type": one.evidence.source_type,
                "source": one.evidence.source,
                "group": one.evidence.source_group,
                "authority": one.evidence.authority,
                "source_id": one.source_id,
                "revision": one.evidence.source_revision,
                "labels": list(one.evidence.labels),
                "metadata": Jsonb(dict(one.evidence.metadata)),
                "observed": one.evidence.observed_at,
                "subjects": list(one.evidence.data_subjects),
            }
            for one in submissions
        ],
    )


def add_source(unit: Unit, space_id: UUID, key: str, revision: str) -> UUID:
    source_id = unit.new_id()
    unit.run(
        """
        insert into evidence_source (tenant_id, source_id, space_id, owner_id, source_key, key_sha, revision,
          revised_at)
        values (%(tenant)s, %(id)s, %(space)s, %(owner)s, %(key)s, %(sha)s, %(revision)s, %(now)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": source_id,
            "space": space_id,
            "owner": unit.principal.principal_id,
            "key": key,
            "sha": content_sha(key),
            "revision": revision,
            "now": unit.now,
        },
    )
    return source_id


def revise_source(unit: Unit, source_id: UUID, revision: str) -> None:
    unit.run(
        "update evidence_source set revision = %(revision)s, revised_at = %(now)s"
        " where tenant_id = %(tenant)s and source_id = %(id)s",
        {"revision": revision, "now": unit.now, "tenant": unit.tenant_id, "id": source_id},
    )


def outdated(unit: Unit, source_id: UUID, revision: str) -> dict[UUID, int]:
    """The versions, by memory, of believed memories that only other revisions of this source have brought."""
    rows = unit.rows(
        """
        select distinct s.memory_id, v.version from submission s
        join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id
                             and v.superseded_at is null and v.superseded_by is null
        where s.tenant_id = %(tenant)s and s.source_id = %(source)s
          and not exists (
            select from occurrence o left join submission t on t.tenant_id = o.tenant_id
              and t.occurrence_id = o.occurrence_id
            where o.tenant_id = s.tenant_id and o.memory_id = s.memory_id
              and (t.source_id is distinct from %(source)s or t.revision = %(revision)s))
        order by s.memory_id
        """,
        {"tenant": unit.tenant_id, "source": source_id, "revision": revision},
    )
    return {row["memory_id"]: row["version"] for row in rows}


def disbelieve(unit: Unit, memories: Mapping[UUID, int]) -> None:
    """Close these versions, by memory, in transaction time: the source says otherwise now. The bytes stay."""
    unit.run_many(
        """
        update memory_version set superseded_at = %(now)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s
        """,
        [
            {"now": unit.now, "tenant": unit.tenant_id, "id": memory_id, "version": version}
            for memory_id, version in sorted(memories.items())
        ],
    )


# Entities and predicates -------------------------------------------------------------------------------------
def add_entities(unit: Unit, space_id: UUID, new: Iterable[tuple[UUID, str, str, str]]) -> None:
    """(id, kind, name, name key) of each; the caller holds the names' locks and knows that they are free."""
    rows = [
        {
            "tenant": unit.tenant_id,
            "id": entity_id,
            "space": space_id,
            "kind": kind,
            "name": name,
            "key": key,
            "now": unit.now,
        }
        for entity_id, kind, name, key in new
    ]
    unit.run_many(
        "insert into entity (tenant_id, entity_id, space_id, kind, created_at)"
        " values (%(tenant)s, %(id)s, %(space)s, %(kind)s, %(now)s)",
        rows,
    )
    unit.run_many(
        """
        insert into entity_name (tenant_id, entity_id, space_id, kind, name, name_key, canonical)
        values (%(tenant)s, %(id)s, %(space)s, %(kind)s, %(name)s, %(key)s, true)
        """,
        rows,
    )


def mention(unit: Unit, space_id: UUID, mentions: Collection[tuple[UUID, UUID, UUID, str]]) -> None:
    """(memory, occurrence, entity, name key): that submission of the memory brought this name."""
    unit.run_many(
        """
        insert into mention (tenant_id, space_id, memory_id, occurrence_id, entity_id, name_key)
        values (%(tenant)s, %(space)s, %(memory)s, %(occurrence)s, %(entity)s, %(key)s) on conflict do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "space": space_id,
                "memory": memory,
                "occurrence": occurrence,
                "entity": entity,
                "key": key,
            }
            for memory, occurrence, entity, key in sorted(mentions)
        ],
    )


def register(unit: Unit, space_id: UUID, predicates: Iterable[Register]) -> None:
    """One that is there already stays as it is: the other paths register theirs without a lock."""
    unit.run_many(
        """
        insert into predicate (tenant_id, space_id, predicate_key, kind, cardinality, subject_kinds, object_kinds,
          created_at)
        values (%(tenant)s, %(space)s, %(key)s, %(kind)s, %(cardinality)s, %(subjects)s, %(objects)s, %(now)s)
        on conflict do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "space": space_id,
                "key": predicate.key,
                "kind": predicate.kind,
                "cardinality": predicate.cardinality,
                "subjects": sorted(predicate.subject_kinds),
                "objects": sorted(predicate.object_kinds),
                "now": unit.now,
            }
            for predicate in predicates
        ],
    )


def add_aliases(unit: Unit, space_id: UUID, aliases: Collection[tuple[str, str, UUID]]) -> None:
    """(alias, predicate key, the memory it came with)"""
    unit.run_many(
        """
        insert into predicate_alias (tenant_id, space_id, alias, predicate_key, memory_id)
        values (%(tenant)s, %(space)s, %(alias)s, %(key)s, %(memory)s) on conflict do nothing
        """,
        [
            {"tenant": unit.tenant_id, "space": space_id, "alias": alias, "key": key, "memory": memory}
            for alias, key, memory in sorted(aliases)
        ],
    )


# Relationships -----------------------------------------------------------------------------------------------
def resting_on(
    unit: Unit, memory_ids: Collection[UUID], without: Collection[UUID] | None = None
) -> list[Row]:
    """The current relationships that rest on one of these memories; on none that is believed and goes on when all of
    `without` are gone, if given: as `remember_read.facts`."""
    if not memory_ids:
        return []
    return unit.rows(
        """
        select r.relationship_id, r.version, r.owner_id, r.subject_id, r.predicate_key, r.object_id, r.value_type,
               r.value_canonical, r.value_original, r.value_unit, r.polarity, r.valid_from, r.valid_to
        from relationship r
        where r.tenant_id = %(tenant)s and r.superseded_at is null
          and r.relationship_id in (select s.relationship_id from support s
                                    where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s))
          and (%(without)s::uuid[] is null or not exists (
            select from support s
            join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id
                                 and v.superseded_at is null and v.superseded_by is null
            where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id and s.version = r.version
              and s.memory_id <> all (%(without)s)))
        order by r.relationship_id
        """,
        {
            "tenant": unit.tenant_id,
            "ids": sorted(memory_ids),
            "without": None if without is None else sorted(without),
        },
    )


def write_facts(
    unit: Unit, space_id: UUID, facts: Sequence[Fact], submissions: Mapping[int, Submission]
) -> None:
    """Close what changed, insert what is new, copy the supports that still hold, add the new ones."""
    changed = [fact for fact in facts if fact.changed]
    unit.run_many(
        """
        update relationship set superseded_at = %(now)s, superseded_by = %(by)s
        where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        """,
        [
            {
                "now": unit.now,
                "by": fact.replaced_by,
                "tenant": unit.tenant_id,
                "id": fact.relationship_id,
                "version": fact.version,
            }
            for fact in changed
        ],
    )
    _insert_versions(unit, space_id, [f for f in facts if f.stored is None or (f.changed and f.window)])
    unit.run_many(
        """
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id,
          span_start, span_end)
        select tenant_id, gen_random_uuid(), space_id, relationship_id, version + 1, memory_id, occurrence_id,
          span_start, span_end
        from support where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        """,
        [
            {"tenant": unit.tenant_id, "id": fact.relationship_id, "version": fact.version}
            for fact in changed
            if fact.window is not None and not fact.restated
        ],
    )
    _support(unit, space_id, facts, submissions)


def _insert_versions(unit: Unit, space_id: UUID, facts: Sequence[Fact]) -> None:
    unit.run_many(
        """
        insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id, predicate_key,
          object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from, valid_to,
          created_at, superseded_at, superseded_by)
        values (%(tenant)s, %(id)s, %(version)s, %(space)s, %(owner)s, %(subject)s, %(predicate)s, %(object)s,
          %(type)s, %(value)s, %(original)s, %(unit)s, %(polarity)s, %(from)s, %(to)s, %(now)s, %(superseded)s, %(by)s)
        """,
        [_version(unit, space_id, fact) for fact in facts],
    )


def _version(unit: Unit, space_id: UUID, fact: Fact) -> dict[str, Any]:
    said = fact.statement
    value: Value | None = said.value
    # A fact that came and was replaced in one batch: it is in the history, and was never believed.
    window = fact.window or fact.kept or Window()
    superseded: datetime | None = None if fact.window is not None else unit.now
    return {
        "tenant": unit.tenant_id,
        "id": fact.relationship_id,
        "version": fact.final_version,
        "space": space_id,
        "owner": fact.owner_id,
        "subject": said.subject_id,
        "predicate": said.predicate,
        "object": said.object_id,
        "type": None if value is None else value.type,
        "value": None if value is None else value.canonical,
        "original": fact.original,
        "unit": None if value is None else value.unit,
        "polarity": said.polarity,
        "from": window.start,
        "to": window.end,
        "now": unit.now,
        "superseded": superseded,
        "by": None if superseded is None else fact.replaced_by,
    }


def _support(
    unit: Unit, space_id: UUID, facts: Sequence[Fact], submissions: Mapping[int, Submission]
) -> None:
    unit.run_many(
        """
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id,
          span_start, span_end)
        values (%(tenant)s, %(id)s, %(space)s, %(relationship)s, %(version)s, %(memory)s, %(occurrence)s, %(start)s,
          %(end)s)
        on conflict do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "id": unit.new_id(),
                "space": space_id,
                "relationship": fact.relationship_id,
                "version": fact.final_version,
                "memory": submissions[span.item].memory_id,
                "occurrence": submissions[span.item].occurrence_id,
                "start": span.start,
                "end": span.end,
            }
            for fact in facts
            for span in fact.supports
        ],
    )


def witness(unit: Unit, relationship_id: UUID, version: int) -> UUID | None:
    """A believed memory that the version rests on, the newest of them."""
    row = unit.row(
        """
        select s.memory_id from support s
        join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id and v.superseded_at is null
        where s.tenant_id = %(tenant)s and s.relationship_id = %(id)s and s.version = %(version)s
        order by s.memory_id desc limit 1
        """,
        {"tenant": unit.tenant_id, "id": relationship_id, "version": version},
    )
    return None if row is None else row["memory_id"]


def open_conflict(
    unit: Unit,
    space_id: UUID,
    found: Contradiction,
    memory_id: UUID,
    other_id: UUID,
    explanation: str,
) -> UUID | None:
    """The conflict, or None when one is open between the two, or these very versions have had theirs."""
    conflict_id = unit.new_id()
    opened = unit.run(
        """
        insert into conflict (tenant_id, conflict_id, space_id, memory_id, other_id, reason, explanation, opened_at,
          relationship_id, relationship_version, other_relationship_id, other_version)
        select %(tenant)s, %(id)s, %(space)s, %(memory)s, %(other)s, %(reason)s, %(explanation)s, %(now)s,
          %(relationship)s, %(version)s, %(other_relationship)s, %(other_version)s
        where not exists (
          select from conflict c where c.tenant_id = %(tenant)s
            and ((c.relationship_id = %(relationship)s and c.other_relationship_id = %(other_relationship)s
                  and (c.status = 'open'
                       or (c.relationship_version, c.other_version) = (%(version)s, %(other_version)s)))
              or (c.relationship_id = %(other_relationship)s and c.other_relationship_id = %(relationship)s
                  and (c.status = 'open'
                       or (c.relationship_version, c.other_version) = (%(other_version)s, %(version)s)))))
        """,
        {
            "tenant": unit.tenant_id,
            "id": conflict_id,
            "space": space_id,
            "memory": memory_id,
            "other": other_id,
            "reason": found.reason,
            "explanation": explanation,
            "now": unit.now,
            "relationship": found.fact.relationship_id,
            "version": found.fact.final_version,
            "other_relationship": found.other.relationship_id,
            "other_version": found.other.final_version,
        },
    )
    return conflict_id if opened else None


def settle_conflicts(unit: Unit, relationship_ids: Collection[UUID]) -> None:
    """What contradicted these is moot: they are retired, or say something else now."""
    if not relationship_ids:
        return
    unit.run(
        """
        update conflict set status = 'resolved', closed_at = %(now)s, closed_by = %(by)s
        where tenant_id = %(tenant)s and status = 'open'
          and (relationship_id = any (%(ids)s) or other_relationship_id = any (%(ids)s))
        """,
        {
            "now": unit.now,
            "by": unit.principal.principal_id,
            "tenant": unit.tenant_id,
            "ids": sorted(relationship_ids),
        },
    )


def read_back(unit: Unit, memory_ids: Collection[UUID], edges: Collection[tuple[UUID, int]]) -> bool:
    """Whether every memory of the result is there with a passage, and every relationship version with a support."""
    row = unit.row(
        """
        select (select count(*) from unnest(%(memories)s::uuid[]) as wanted(id)
                where not exists (select from passage p where p.tenant_id = %(tenant)s and p.memory_id = wanted.id))
             + (select count(*) from unnest(%(edges)s::uuid[], %(versions)s::int[]) as wanted(id, version)
                where not exists (select from support s where s.tenant_id = %(tenant)s
                                  and s.relationship_id = wanted.id and s.version = wanted.version)) as missing
        """,
        {
            "tenant": unit.tenant_id,
            "memories": sorted(memory_ids),
            "edges": [relationship_id for relationship_id, _ in sorted(edges)],
            "versions": [version for _, version in sorted(edges)],
        },
    )
    assert row is not None
    return not row["missing"]
