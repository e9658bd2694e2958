"""Erasure: the bytes leave every place they lie in; a keyed tombstone and the audit row remain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from remembrancer.store.database import Row, Unit

# Children before parents, though foreign keys would cascade: the counts are what the admin is shown.
_BY_MEMORY = ("support", "mention", "passage", "occurrence", "hold_out", "memory_version")


def find(unit: Unit, memory_ids: Sequence[UUID]) -> list[Row]:
    """The memories that exist: {memory_id, space_id, data_subjects, on_legal_hold}, in a fixed order.

    A hold on one of the subjects is not seen here: it is kept as a digest.
    """
    return unit.rows(
        """
        select m.memory_id, m.space_id, m.data_subjects, exists (
                 select from legal_hold l where l.tenant_id = m.tenant_id and l.memory_id = m.memory_id
                   and l.released_at is null) as on_legal_hold
        from memory m where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        order by m.memory_id
        """,
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )


def erase(
    unit: Unit,
    memory_ids: Sequence[UUID],
    proposal_ids: Sequence[UUID] = (),
    job_ids: Sequence[UUID] = (),
) -> dict[str, int]:
    """Delete everything that holds bytes of these memories or rests on them alone; rows removed by table.

    `proposal_ids` are further proposals, `job_ids` imports whose staged text goes too. The caller holds the
    locks of their spaces, so that no write is in flight, and rolls back for a dry run.
    """
    scope = {"tenant": unit.tenant_id, "ids": list(memory_ids)}
    staged = _erase_staged(unit, job_ids)
    proposals = _erase_proposals(unit, {**scope, "proposals": list(proposal_ids)})
    counts = {
        "job_item": staged,
        "proposal": len(proposals),
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
    touched = _touched(unit, scope)
    for table in _BY_MEMORY:
        counts[table] = unit.run(
            f"delete from {table} where tenant_id = %(tenant)s and memory_id = any (%(ids)s)", scope
        )
    counts["relationship"], counts["predicate"] = _erase_relationships(unit, touched["relationships"])
    counts["entity_name"], counts["entity"] = _erase_names(unit, touched["entities"])
    counts["legal_hold"] = unit.run(
        "delete from legal_hold where tenant_id = %(tenant)s and memory_id = any (%(ids)s) and released_at is not null",
        scope,
    )
    counts["memory"] = unit.run(
        "delete from memory where tenant_id = %(tenant)s and memory_id = any (%(ids)s)", scope
    )
    counts["idempotency"] = unit.run(
        "update idempotency set state = 'erased', body = null, request_hash = ''"
        " where tenant_id = %(tenant)s and refs && %(refs)s::uuid[] and state <> 'erased'",
        {**scope, "refs": [*memory_ids, *proposals, *job_ids]},
    )
    return counts


def _erase_proposals(unit: Unit, scope: dict[str, object]) -> list[UUID]:
    """What the memories came from, every other proposal of the same bytes that no surviving memory rests on, and
    those that were named."""
    rows = unit.rows(
        """
        delete from proposal p
        where p.tenant_id = %(tenant)s and (
          p.proposal_id = any (%(proposals)s)
          or p.proposal_id in (
            select q.proposal_id from memory m join proposal q on q.tenant_id = m.tenant_id
              and (q.memory_id = m.memory_id or q.proposal_id = m.proposal_id
                   or (q.memory_id is null and q.content_sha = sha256(convert_to(m.content, 'UTF8'))))
            where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)))
        returning p.proposal_id
        """,
        scope,
    )
    return [row["proposal_id"] for row in rows]


def _erase_staged(unit: Unit, job_ids: Sequence[UUID]) -> int:
    """An import that holds the bytes is given up as a whole; its passages go with its items."""
    scope = {"tenant": unit.tenant_id, "jobs": list(job_ids)}
    unit.run(
        "update job set state = 'erased' where tenant_id = %(tenant)s and job_id = any (%(jobs)s)", scope
    )
    return unit.run("delete from job_item where tenant_id = %(tenant)s and job_id = any (%(jobs)s)", scope)


def lock_imports(unit: Unit) -> None:
    """Wait for the imports that are being published, and keep others from it: a job before its spaces, as they do."""
    unit.rows(
        "select job_id from job where tenant_id = %(tenant)s and kind = 'import' and state = 'working'"
        " order by job_id for update",
        {"tenant": unit.tenant_id},
    )


def _touched(unit: Unit, scope: dict[str, object]) -> dict[str, list[UUID]]:
    """What may be left with nothing once the memories are gone."""
    relationships = unit.rows(
        "select distinct relationship_id from support where tenant_id = %(tenant)s and memory_id = any (%(ids)s)",
        scope,
    )
    entities = unit.rows(
        "select distinct entity_id from mention where tenant_id = %(tenant)s and memory_id = any (%(ids)s)",
        scope,
    )
    return {
        "relationships": [row["relationship_id"] for row in relationships],
        "entities": [row["entity_id"] for row in entities],
    }


def _erase_relationships(unit: Unit, relationship_ids: list[UUID]) -> tuple[int, int]:
    """Versions that nothing supports any more, and the predicates that came in with them.

    A predicate is named by the caller. One that somebody registered otherwise than the default is no caller's word.
    """
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
    predicates = unit.run(
        """
        delete from predicate p using unnest(%(spaces)s::uuid[], %(keys)s::text[]) as gone(space_id, predicate_key)
        where p.tenant_id = %(tenant)s and p.space_id = gone.space_id and p.predicate_key = gone.predicate_key
          and p.kind = 'state' and p.cardinality = 'many'
          and not exists (select from relationship r where r.tenant_id = p.tenant_id and r.space_id = p.space_id
                          and r.predicate_key = p.predicate_key)
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": [row["space_id"] for row in gone],
            "keys": [row["predicate_key"] for row in gone],
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
          and not exists (select from entity_name o where o.tenant_id = n.tenant_id and o.space_id = n.space_id
                          and o.kind = n.kind and o.name_key = n.name_key and o.canonical)
        """,
        scope,
    )
    return names, entities


def bury(unit: Unit, memory_ids: Sequence[UUID], mac: Callable[[UUID], bytes], reason_mac: str) -> list[UUID]:
    """One tombstone a memory: a keyed digest of its id, so that it answers only "was this erased"."""
    rows = [(unit.new_id(), mac(memory_id)) for memory_id in memory_ids]
    unit.run_many(
        """
        insert into tombstone (tenant_id, tombstone_id, mac, erased_at, erased_by, reason)
        values (%(tenant)s, %(id)s, %(mac)s, %(now)s, %(by)s, %(reason)s)
        on conflict (tenant_id, mac) do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "id": tombstone_id,
                "mac": digest,
                "now": unit.now,
                "by": unit.principal.principal_id,
                "reason": reason_mac,
            }
            for tombstone_id, digest in rows
        ],
    )
    return [tombstone_id for tombstone_id, _ in rows]


def raise_generation(unit: Unit, space_ids: Sequence[UUID]) -> None:
    """Work in flight that prepared under the old generation may not commit."""
    unit.run(
        "update space set generation = generation + 1 where tenant_id = %(tenant)s and space_id = any (%(spaces)s)",
        {"tenant": unit.tenant_id, "spaces": list(space_ids)},
    )


def list_tombstones(unit: Unit, after: UUID | None, limit: int) -> list[Row]:
    return unit.rows(
        """
        select tombstone_id, mac, erased_at, erased_by, reason from tombstone
        where tenant_id = %(tenant)s and (%(after)s::uuid is null or tombstone_id > %(after)s)
        order by tombstone_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "after": after, "limit": limit},
    )
