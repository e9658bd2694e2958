"""Everything that is kept of given memories, proposals and submissions, for the bundle of the person they are about."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.store import exports
from remembrancer.store.database import Row, Unit


def memories(unit: Unit, memory_ids: Sequence[UUID]) -> list[Row]:
    """Each with its space's kind and whether it is held out, in every space, in the order of the ids."""
    return unit.rows(
        """
        select m.*, s.kind as space, s.owner_id as space_owner,
               exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                       and h.closed_at is null) as held_out
        from memory m join space s on s.tenant_id = m.tenant_id and s.space_id = m.space_id
        where m.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        order by m.memory_id
        """,
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )


def versions(unit: Unit, memory_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    return exports.by_memory(
        unit.rows(
            """
            select memory_id, version, valid_from, valid_to, created_at, superseded_at, superseded_by, expires_at
            from memory_version where tenant_id = %(tenant)s and memory_id = any (%(ids)s)
            order by memory_id, version
            """,
            {"tenant": unit.tenant_id, "ids": list(memory_ids)},
        )
    )


def occurrences(unit: Unit, memory_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    return exports.by_memory(
        unit.rows(
            """
            select o.memory_id, o.occurrence_id, o.content, o.submitted_by, o.submitted_at, o.source, b.labels,
                   b.metadata, b.source as named_source, b.source_type, b.source_group, b.authority, b.observed_at,
                   coalesce(b.revision, o.revision) as revision, e.source_key,
                   o.data_subjects || coalesce(b.data_subjects, '{}') as data_subjects
            from occurrence o left join submission b on b.tenant_id = o.tenant_id and b.occurrence_id = o.occurrence_id
            left join evidence_source e on e.tenant_id = b.tenant_id and e.source_id = b.source_id
            where o.tenant_id = %(tenant)s and o.memory_id = any (%(ids)s) order by o.memory_id, o.occurrence_id
            """,
            {"tenant": unit.tenant_id, "ids": list(memory_ids)},
        )
    )


def submissions(unit: Unit, occurrence_ids: Sequence[UUID]) -> list[Row]:
    """With the bytes that were submitted, though another owns the memory."""
    return unit.rows(
        """
        select o.occurrence_id, o.memory_id, coalesce(o.content, m.content) as content, o.submitted_by, o.submitted_at,
               o.source, b.labels, b.metadata, b.source as named_source, b.source_type, b.source_group, b.authority,
               b.observed_at, coalesce(b.revision, o.revision) as revision, e.source_key,
               o.data_subjects || coalesce(b.data_subjects, '{}') as data_subjects
        from occurrence o join memory m on m.tenant_id = o.tenant_id and m.memory_id = o.memory_id
        left join submission b on b.tenant_id = o.tenant_id and b.occurrence_id = o.occurrence_id
        left join evidence_source e on e.tenant_id = b.tenant_id and e.source_id = b.source_id
        where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(ids)s) order by o.occurrence_id
        """,
        {"tenant": unit.tenant_id, "ids": list(occurrence_ids)},
    )


def proposals(unit: Unit, proposal_ids: Sequence[UUID]) -> list[Row]:
    return unit.rows(
        """
        select proposal_id, body, source_prompt, status, submitted_by, created_at, decided_at, decision, memory_id, pii
        from proposal where tenant_id = %(tenant)s and proposal_id = any (%(ids)s) order by proposal_id
        """,
        {"tenant": unit.tenant_id, "ids": list(proposal_ids)},
    )


def proposals_behind(unit: Unit, memory_ids: Sequence[UUID]) -> list[UUID]:
    """What the memories came from."""
    rows = unit.rows(
        "select proposal_id from proposal where tenant_id = %(tenant)s and memory_id = any (%(ids)s)"
        " order by proposal_id",
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )
    return [row["proposal_id"] for row in rows]


def attempts(unit: Unit, attempt_ids: Sequence[UUID]) -> list[Row]:
    """What was asked of remember while it was at work, and what was answered."""
    return unit.rows(
        """
        select attempt_id, state, entered_at, finished_at, request, context, assessment, result from attempt
        where tenant_id = %(tenant)s and attempt_id = any (%(ids)s) and state <> 'erased' order by attempt_id
        """,
        {"tenant": unit.tenant_id, "ids": list(attempt_ids)},
    )


def exchanges(unit: Unit, attempt_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    """What was said to the assessor and what it said: of an attempt that failed, all that is left of its texts."""
    return _by_attempt(
        unit.rows(
            """
            select attempt_id, turn, asked, answered, issues, outcome, model, at, expires_at from exchange
            where tenant_id = %(tenant)s and attempt_id = any (%(ids)s) order by attempt_id, turn
            """,
            {"tenant": unit.tenant_id, "ids": list(attempt_ids)},
        )
    )


def checkpoints(unit: Unit, attempt_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    """Validated answers of the assessor that are kept for a retry."""
    return _by_attempt(
        unit.rows(
            """
            select attempt_id, assessment, created_at, expires_at from checkpoint
            where tenant_id = %(tenant)s and attempt_id = any (%(ids)s) order by attempt_id, created_at
            """,
            {"tenant": unit.tenant_id, "ids": list(attempt_ids)},
        )
    )


def _by_attempt(rows: Sequence[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row.pop("attempt_id"), []).append(row)
    return found


def conflicts(unit: Unit, memory_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    """What each is said to contradict, from either side."""
    return exports.by_memory(
        unit.rows(
            """
            select m.memory_id, c.reason, c.explanation, c.status, c.opened_at, c.closed_at
            from unnest(%(ids)s::uuid[]) as m (memory_id)
            join conflict c on c.tenant_id = %(tenant)s and m.memory_id in (c.memory_id, c.other_id)
            order by m.memory_id, c.conflict_id
            """,
            {"tenant": unit.tenant_id, "ids": list(memory_ids)},
        )
    )
