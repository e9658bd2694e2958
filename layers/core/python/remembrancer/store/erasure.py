"""Erasure: the bytes leave every place they lie in; a keyed tombstone and the audit row remain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from remembrancer.store import conflicts, edges
from remembrancer.store.database import Row, Unit

# What goes with its memory by its foreign key; counted for the admin.
_BY_MEMORY = ("support", "mention", "passage", "occurrence", "hold_out", "memory_version")

# Whom a memory `m` is about: by itself, and by what any of its submissions says.
SUBJECTS = """
  select unnest(m.data_subjects)
  union all
  select unnest(b.data_subjects) from submission b where b.tenant_id = m.tenant_id and b.memory_id = m.memory_id
  union all
  select unnest(o.data_subjects) from occurrence o where o.tenant_id = m.tenant_id and o.memory_id = m.memory_id
"""
"""Of a memory (alias m): what it, its evidence and its further submissions name."""


def find(unit: Unit, memory_ids: Sequence[UUID]) -> list[Row]:
    """The memories that exist: {memory_id, space_id, data_subjects, on_legal_hold}, in a fixed order.

    A hold on one of the subjects is not seen here: it is kept as a digest.
    """
    return unit.rows(
        f"""
        select m.memory_id, m.space_id, array({SUBJECTS}) as data_subjects, exists (
                 select from legal_hold l where l.tenant_id = m.tenant_id and l.memory_id = m.memory_id
                   and l.released_at is null) as on_legal_hold
        from memory m where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        order by m.memory_id
        """,
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )


def find_proposals(unit: Unit, proposal_ids: Sequence[UUID]) -> list[Row]:
    """The same of proposals: {proposal_id, space_id, data_subjects, on_legal_hold}. One is held with its memory."""
    return unit.rows(
        f"""
        select p.proposal_id, p.space_id, array(
                 select jsonb_array_elements_text(coalesce(p.body -> 'data_subjects', '[]'))
                 union all
                 select s.subject from memory m cross join lateral ({SUBJECTS}) as s (subject)
                 where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id) as data_subjects,
               exists (select from legal_hold l where l.tenant_id = p.tenant_id and l.memory_id = p.memory_id
                       and l.released_at is null) as on_legal_hold
        from proposal p where p.tenant_id = %(tenant)s and p.proposal_id = any (%(ids)s)
        order by p.proposal_id
        """,
        {"tenant": unit.tenant_id, "ids": list(proposal_ids)},
    )


def find_occurrences(unit: Unit, occurrence_ids: Sequence[UUID]) -> list[Row]:
    """The same of submissions: {occurrence_id, space_id, data_subjects, on_legal_hold}. One is held with its memory."""
    return unit.rows(
        f"""
        select o.occurrence_id, o.space_id, array({SUBJECTS}) as data_subjects,
               exists (select from legal_hold l where l.tenant_id = o.tenant_id and l.memory_id = o.memory_id
                       and l.released_at is null) as on_legal_hold
        from occurrence o join memory m on m.tenant_id = o.tenant_id and m.memory_id = o.memory_id
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(ids)s)
        order by o.occurrence_id
        """,
        {"tenant": unit.tenant_id, "ids": list(occurrence_ids)},
    )


def proposals_with(unit: Unit, memory_ids: Sequence[UUID]) -> list[UUID]:
    """What the memories came from, and every other proposal of the same bytes that no surviving memory rests on."""
    rows = unit.rows(
        """
        select q.proposal_id from proposal q
        where q.tenant_id = %(tenant)s and q.memory_id = any (%(ids)s)
        union
        select m.proposal_id from memory m join proposal q on q.tenant_id = m.tenant_id
          and q.proposal_id = m.proposal_id
        where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        union
        select q.proposal_id from memory m join proposal q on q.tenant_id = m.tenant_id and q.memory_id is null
          and q.content_sha = sha256(convert_to(m.content, 'UTF8'))
        where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        order by 1
        """,
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )
    return [row["proposal_id"] for row in rows]


def imports_of(unit: Unit, memory_ids: Sequence[UUID], occurrence_ids: Sequence[UUID]) -> list[UUID]:
    """The imports that are over and brought these memories or submissions. What is older has lapsed in any backup."""
    rows = unit.rows(
        """
        select distinct j.job_id from job j
        join occurrence o on o.tenant_id = j.tenant_id and o.correlation_id = j.correlation_id
        where j.tenant_id = %(tenant)s and j.kind = 'import' and j.state <> 'working'
          and (o.memory_id = any (%(memories)s) or o.occurrence_id = any (%(occurrences)s))
        order by j.job_id
        """,
        {"tenant": unit.tenant_id, "memories": list(memory_ids), "occurrences": list(occurrence_ids)},
    )
    return [row["job_id"] for row in rows]


def spaces_of(
    unit: Unit, memory_ids: Sequence[UUID], proposal_ids: Sequence[UUID], occurrence_ids: Sequence[UUID]
) -> list[UUID]:
    rows = unit.rows(
        """
        select space_id from memory where tenant_id = %(tenant)s and memory_id = any (%(memories)s)
        union select space_id from proposal where tenant_id = %(tenant)s and proposal_id = any (%(proposals)s)
        union select space_id from occurrence where tenant_id = %(tenant)s and occurrence_id = any (%(occurrences)s)
        """,
        {
            "tenant": unit.tenant_id,
            "memories": list(memory_ids),
            "proposals": list(proposal_ids),
            "occurrences": list(occurrence_ids),
        },
    )
    return [row["space_id"] for row in rows]


def count(unit: Unit, memory_ids: Sequence[UUID], proposal_ids: Sequence[UUID]) -> dict[str, int]:
    """What hangs on so many rows that erasing them for a dry run would take too long: without what is left with
    nothing only when all of them are gone (edges, names, predicates)."""
    scope = {"tenant": unit.tenant_id, "ids": list(memory_ids)}
    return {"memory": len(memory_ids), "proposal": len(proposal_ids), **_hanging(unit, scope)}


def _hanging(unit: Unit, scope: dict[str, object]) -> dict[str, int]:
    found = {}
    for table in _BY_MEMORY:
        row = unit.row(
            f"select count(*) as n from {table} where tenant_id = %(tenant)s and memory_id = any (%(ids)s)",
            scope,
        )
        found[table] = 0 if row is None else row["n"]
    return found


def erase(
    unit: Unit,
    memory_ids: Sequence[UUID],
    proposal_ids: Sequence[UUID] = (),
    job_ids: Sequence[UUID] = (),
    occurrence_ids: Sequence[UUID] = (),
) -> dict[str, int]:
    """Delete everything that holds bytes of these memories or rests on them alone; rows removed by table.

    `proposal_ids` are the proposals that go, `job_ids` imports whose staged text goes too, `occurrence_ids` further
    submissions of memories that stay. The caller holds the locks of their spaces, so that no write is in flight,
    and rolls back for a dry run.
    """
    scope = {"tenant": unit.tenant_id, "ids": list(memory_ids), "occurrences": list(occurrence_ids)}
    # Their kept answers name their jobs, which name what they brought.
    brought_by = imports_of(unit, memory_ids, occurrence_ids)
    touched = _touched(unit, scope)
    edges.close_unsupported(unit, memory_ids, occurrence_ids=occurrence_ids)
    forgotten = edges.forget(unit, memory_ids, occurrence_ids)
    conflicts.stand_on_others(unit, memory_ids)
    counts = {
        "job_item": _erase_staged(unit, job_ids),
        "proposal": unit.run(
            "delete from proposal where tenant_id = %(tenant)s and proposal_id = any (%(proposals)s)",
            {**scope, "proposals": list(proposal_ids)},
        ),
        "conflict": unit.run(
            "delete from conflict where tenant_id = %(tenant)s"
            " and (memory_id = any (%(ids)s) or other_id = any (%(ids)s))",
            scope,
        ),
    }
    # A proposal that was scored against an erased memory quotes it in its scores.
    unit.run(
        """
        update proposal set scores = scores - 'conflict', conflict_memory_id = null, conflict_version = null
        where tenant_id = %(tenant)s and conflict_memory_id = any (%(ids)s)
        """,
        scope,
    )
    sources = _sources(unit, scope)
    counts |= _hanging(unit, scope)
    counts["legal_hold"] = unit.run(
        "delete from legal_hold where tenant_id = %(tenant)s and memory_id = any (%(ids)s) and released_at is not null",
        scope,
    )
    counts["memory"] = unit.run(
        "delete from memory where tenant_id = %(tenant)s and memory_id = any (%(ids)s)", scope
    )
    submissions, supports, mentions = _erase_submissions(unit, scope)
    counts["occurrence"] += submissions
    counts["support"] += supports
    counts["mention"] += mentions
    counts["evidence_source"] = _erase_sources(unit, sources)
    unsupported, counts["predicate"] = _erase_relationships(unit, touched["relationships"])
    counts["relationship"] = forgotten + unsupported
    counts["entity_name"], counts["entity"] = _erase_names(unit, touched["entities"])
    counts["idempotency"] = unit.run(
        """
        update idempotency i set state = 'erased', body = null, request_hash = ''
        from rem_answers_with(%(refs)s::uuid[]) a
        where i.tenant_id = %(tenant)s and i.principal_id = a.principal_id and i.operation = a.operation
          and i.key = a.key and i.state <> 'erased'
        """,
        {**scope, "refs": [*memory_ids, *proposal_ids, *job_ids, *brought_by, *occurrence_ids]},
    )
    return counts


def _erase_staged(unit: Unit, job_ids: Sequence[UUID]) -> int:
    """An import that holds the bytes is given up as a whole; its passages go with its items."""
    scope = {"tenant": unit.tenant_id, "jobs": list(job_ids)}
    unit.run(
        "update job set state = 'erased' where tenant_id = %(tenant)s and job_id = any (%(jobs)s)", scope
    )
    return unit.run("delete from job_item where tenant_id = %(tenant)s and job_id = any (%(jobs)s)", scope)


def _erase_submissions(unit: Unit, scope: dict[str, object]) -> tuple[int, int, int]:
    """Submissions of memories that stay, what they support and the names they brought; (submissions, supports,
    mentions) removed."""
    supports = unit.run(
        """
        delete from support s using occurrence o
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s)
          and s.tenant_id = o.tenant_id and s.memory_id = o.memory_id and s.occurrence_id = o.occurrence_id
        """,
        scope,
    )
    mentions = unit.run(
        """
        delete from mention t using occurrence o
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s)
          and t.tenant_id = o.tenant_id and t.memory_id = o.memory_id and t.occurrence_id = o.occurrence_id
        """,
        scope,
    )
    submissions = unit.run(
        "delete from occurrence where tenant_id = %(tenant)s and occurrence_id = any (%(occurrences)s)", scope
    )
    return submissions, supports, mentions


def lock_imports(unit: Unit) -> None:
    """Wait for the imports that are being published, and keep others from it: a job before its spaces, as they do.

    With them the jobs whose bundles an erasure takes away.
    """
    unit.rows(
        "select job_id from job where tenant_id = %(tenant)s and ((kind = 'import' and state = 'working')"
        " or object_key is not null) order by job_id for update",
        {"tenant": unit.tenant_id},
    )


def _sources(unit: Unit, scope: dict[str, object]) -> list[UUID]:
    """The sources that the erased evidence is of."""
    rows = unit.rows(
        """
        select source_id from submission where tenant_id = %(tenant)s and source_id is not null
          and memory_id = any (%(ids)s)
        union
        select source_id from submission where tenant_id = %(tenant)s and source_id is not null
          and occurrence_id = any (%(occurrences)s)
        """,
        scope,
    )
    return [row["source_id"] for row in rows]


def _erase_sources(unit: Unit, source_ids: list[UUID]) -> int:
    """Those that no evidence is left of: their keys are callers' words."""
    return unit.run(
        """
        delete from evidence_source e where e.tenant_id = %(tenant)s and e.source_id = any (%(sources)s)
          and not exists (select from submission b where b.tenant_id = e.tenant_id and b.source_id = e.source_id)
        """,
        {"tenant": unit.tenant_id, "sources": source_ids},
    )


def _touched(unit: Unit, scope: dict[str, object]) -> dict[str, list[UUID]]:
    """What may be left with nothing once the memories are gone."""
    relationships = unit.rows(
        """
        select relationship_id from support where tenant_id = %(tenant)s and memory_id = any (%(ids)s)
        union
        select s.relationship_id from support s join occurrence o on o.tenant_id = s.tenant_id
          and o.memory_id = s.memory_id and o.occurrence_id = s.occurrence_id
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s)
        """,
        scope,
    )
    entities = unit.rows(
        """
        select entity_id from mention where tenant_id = %(tenant)s and memory_id = any (%(ids)s)
        union
        select t.entity_id from mention t join occurrence o on o.tenant_id = t.tenant_id
          and o.memory_id = t.memory_id and o.occurrence_id = t.occurrence_id
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s)
        """,
        scope,
    )
    return {
        "relationships": [row["relationship_id"] for row in relationships],
        "entities": [row["entity_id"] for row in entities],
    }


def _erase_relationships(unit: Unit, relationship_ids: list[UUID]) -> tuple[int, int]:
    """Versions that nothing supports any more, and the predicates that came in with them: a caller's words."""
    gone = unit.rows(
        """
        delete from relationship r
        where r.tenant_id = %(tenant)s and r.relationship_id = any (%(relationships)s)
          and not exists (select from support s where s.tenant_id = r.tenant_id
                          and s.relationship_id = r.relationship_id and s.version = r.version)
        returning r.space_id, r.predicate_key
        """,
        {"tenant": unit.tenant_id, "relationships": relationship_ids},
    )
    keys = sorted({(row["space_id"], row["predicate_key"]) for row in gone})
    predicates = unit.run(
        """
        delete from predicate p using unnest(%(spaces)s::uuid[], %(keys)s::text[]) as gone(space_id, predicate_key)
        where p.tenant_id = %(tenant)s and p.space_id = gone.space_id and p.predicate_key = gone.predicate_key
          and not exists (select from relationship r where r.tenant_id = p.tenant_id and r.space_id = p.space_id
                          and r.predicate_key = p.predicate_key)
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": [space_id for space_id, _ in keys],
            "keys": [key for _, key in keys],
        },
    )
    return len(gone), predicates


def _erase_names(unit: Unit, entity_ids: list[UUID]) -> tuple[int, int]:
    """Names no memory brings any more, then entities without a name; a surviving alias becomes canonical."""
    scope = {"tenant": unit.tenant_id, "entities": entity_ids}
    names = unit.run(
        """
        delete from entity_name n
        where n.tenant_id = %(tenant)s and n.entity_id = any (%(entities)s)
          and not exists (select from mention t where t.tenant_id = n.tenant_id and t.entity_id = n.entity_id
                          and t.name_key = n.name_key)
        """,
        scope,
    )
    entities = unit.run(
        """
        delete from entity e
        where e.tenant_id = %(tenant)s and e.entity_id = any (%(entities)s)
          and not exists (select from entity_name n where n.tenant_id = e.tenant_id and n.entity_id = e.entity_id)
          and not exists (select from relationship r where r.tenant_id = e.tenant_id
                          and (r.subject_id = e.entity_id or r.object_id = e.entity_id))
        """,
        scope,
    )
    unit.run(
        """
        update entity_name n set canonical = true
        where n.tenant_id = %(tenant)s and n.entity_id = any (%(entities)s)
          and n.name_key = (select min(o.name_key collate "C") from entity_name o
                            where o.tenant_id = n.tenant_id and o.entity_id = n.entity_id)
          and not exists (select from entity_name o where o.tenant_id = n.tenant_id and o.entity_id = n.entity_id
                          and o.canonical)
        """,
        scope,
    )
    return names, entities


def bury(
    unit: Unit,
    row_ids: Sequence[UUID],
    mac: Callable[[UUID], bytes],
    reason: str,
    erasure_id: UUID | None = None,
) -> list[UUID]:
    """One tombstone a row: a keyed digest of its id, so that it answers only "was this erased"."""
    rows = unit.rows(
        """
        insert into tombstone (tenant_id, tombstone_id, mac, erased_at, erased_by, reason, erasure_id)
        select %(tenant)s, id, mac, %(now)s, %(by)s, %(reason)s, %(erasure)s
        from unnest(%(ids)s::uuid[], %(macs)s::bytea[]) as row (id, mac)
        on conflict (tenant_id, mac) do nothing
        returning tombstone_id
        """,
        {
            "tenant": unit.tenant_id,
            "ids": [unit.new_id() for _ in row_ids],
            "macs": [mac(row_id) for row_id in row_ids],
            "now": unit.now,
            "by": unit.principal.principal_id,
            "reason": reason,
            "erasure": erasure_id,
        },
    )
    return sorted(row["tombstone_id"] for row in rows)


def raise_generation(unit: Unit, space_ids: Sequence[UUID]) -> None:
    """Work in flight that prepared under the old generation may not commit.

    The other half, for a flow that reads now and writes later (an import, `/remember`): keep the generations with
    which the principal came at the beginning (`unit.principal.generations`, as JSON in the row of the work), take
    the spaces' locks shared in the write (`locks.lock(unit, "space", ..., shared=True)`), and call
    `spaces.unchanged(unit, began, space_ids)` before anything else: it raises commit_conflict, which no retry of
    the same work cures (`stale_input` for its caller).
    """
    unit.run(
        "update space set generation = generation + 1 where tenant_id = %(tenant)s and space_id = any (%(spaces)s)",
        {"tenant": unit.tenant_id, "spaces": list(space_ids)},
    )


def list_tombstones(unit: Unit, after: UUID | None, limit: int) -> list[Row]:
    return unit.rows(
        """
        select tombstone_id, mac, erased_at, erased_by, reason, erasure_id from tombstone
        where tenant_id = %(tenant)s and (%(after)s::uuid is null or tombstone_id > %(after)s)
        order by tombstone_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "after": after, "limit": limit},
    )
