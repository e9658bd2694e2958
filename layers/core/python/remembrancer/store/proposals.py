"""Proposals: captured, queued, decided, expired. A decision never deletes a row."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from remembrancer.domain.problems import FieldError, Problem
from remembrancer.store.database import Row, Unit


def expire_stale(unit: Unit, submitted_by: UUID, pending_key: bytes) -> UUID | None:
    """Expire the identical proposal whose deadline has passed, if the sweep has not come by; its id."""
    row = unit.row(
        """
        update proposal set status = 'expired', decided_at = %(now)s
        where tenant_id = %(tenant)s and submitted_by = %(by)s and pending_key = %(key)s and status = 'pending'
          and deadline <= %(now)s
        returning proposal_id
        """,
        {"tenant": unit.tenant_id, "by": submitted_by, "key": pending_key, "now": unit.now},
    )
    return None if row is None else row["proposal_id"]


def insert(unit: Unit, proposal_id: UUID, values: Mapping[str, Any]) -> UUID | None:
    """A pending proposal; or the id of the identical one that is pending already.

    Raises Problem commit_conflict when that one was decided in this very moment.
    """
    inserted = unit.row(
        """
        insert into proposal (tenant_id, proposal_id, space_id, submitted_by, body, salt, pending_key, content_sha,
          source_prompt, pii, screen, scores, conflict_memory_id, conflict_version, correlation_id,
          created_at, deadline)
        values (%(tenant)s, %(id)s, %(space_id)s, %(submitted_by)s, %(body)s, %(salt)s, %(pending_key)s,
          %(content_sha)s, %(source_prompt)s, %(pii)s, %(screen)s, %(scores)s, %(conflict_memory_id)s,
          %(conflict_version)s, %(correlation_id)s, %(now)s, %(deadline)s)
        on conflict (tenant_id, submitted_by, pending_key) where status = 'pending' do nothing
        returning proposal_id
        """,
        {"tenant": unit.tenant_id, "id": proposal_id, "now": unit.now, **_jsonb(values)},
    )
    if inserted is not None:
        return None
    row = unit.row(
        """
        select proposal_id from proposal where tenant_id = %(tenant)s and submitted_by = %(submitted_by)s
          and pending_key = %(pending_key)s and status = 'pending'
        """,
        {"tenant": unit.tenant_id, **values},
    )
    if row is None:
        raise Problem("commit_conflict")
    pending: UUID = row["proposal_id"]
    return pending


def get(unit: Unit, proposal_id: UUID, *, for_update: bool = False) -> Row | None:
    key = {"tenant": unit.tenant_id, "id": proposal_id}
    if for_update:
        # By itself: a join would go on showing who had decided before the wait for the lock.
        unit.run("select from proposal where tenant_id = %(tenant)s and proposal_id = %(id)s for update", key)
    return unit.row(
        """
        select p.*, who.name as submitter_name, who.kind as submitter_kind, decider.name as decider_name
        from proposal p
        join principal who on who.tenant_id = p.tenant_id and who.principal_id = p.submitted_by
        left join principal decider on decider.tenant_id = p.tenant_id and decider.principal_id = p.decided_by
        where p.tenant_id = %(tenant)s and p.proposal_id = %(id)s
        """,
        key,
    )


def queue(
    unit: Unit,
    status: str,
    submitted_by: UUID | None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Row]:
    """Rows of one status, keyset by (deadline, proposal_id): what waits has the next deadline first, what is
    decided the latest, for the newest decisions are read most.

    A pending row past its deadline is no longer pending, whether or not the sweep has come by.
    """
    beyond, order = (">", "asc") if status == "pending" else ("<", "desc")
    return unit.rows(
        f"""
        select p.*, who.name as submitter_name, who.kind as submitter_kind, decider.name as decider_name
        from proposal p
        join principal who on who.tenant_id = p.tenant_id and who.principal_id = p.submitted_by
        left join principal decider on decider.tenant_id = p.tenant_id and decider.principal_id = p.decided_by
        where p.tenant_id = %(tenant)s and p.status = %(status)s
          and (%(status)s <> 'pending' or p.deadline > %(now)s)
          and (%(by)s::uuid is null or p.submitted_by = %(by)s)
          and (%(after_at)s::timestamptz is null
               or (p.deadline, p.proposal_id) {beyond} (%(after_at)s, %(after_id)s))
        order by p.deadline {order}, p.proposal_id {order} limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "status": status,
            "now": unit.now,
            "by": submitted_by,
            "after_at": None if after is None else after[0],
            "after_id": None if after is None else after[1],
            "limit": limit,
        },
    )


def decide(
    unit: Unit, proposal_id: UUID, status: str, decision: Mapping[str, Any], memory_id: UUID | None
) -> bool:
    """Compare-and-set from pending; False when somebody else was first. Nobody decides an expiry."""
    return (
        unit.run(
            """
            update proposal set status = %(status)s, decided_at = %(now)s, decided_by = %(by)s,
                   decision = %(decision)s, memory_id = %(memory)s
            where tenant_id = %(tenant)s and proposal_id = %(id)s and status = 'pending'
            """,
            {
                "status": status,
                "now": unit.now,
                "by": None if status == "expired" else unit.principal.principal_id,
                "decision": Jsonb(dict(decision)),
                "memory": memory_id,
                "tenant": unit.tenant_id,
                "id": proposal_id,
            },
        )
        == 1
    )


def rewrite(unit: Unit, proposal_id: UUID, values: Mapping[str, Any]) -> None:
    """An edit: another body with fresh screen and scores; still pending, same deadline.

    Raises Problem invalid_target when it makes the proposal the same as another pending one.
    """
    try:
        _rewrite(unit, proposal_id, values)
    except psycopg.errors.UniqueViolation:
        error = FieldError("/proposal", "duplicate", "an identical proposal is pending")
        raise Problem("invalid_target", [error]) from None


def _rewrite(unit: Unit, proposal_id: UUID, values: Mapping[str, Any]) -> None:
    unit.run(
        """
        update proposal set body = %(body)s, pending_key = %(pending_key)s, content_sha = %(content_sha)s,
               pii = %(pii)s, screen = %(screen)s,
               scores = %(scores)s, conflict_memory_id = %(conflict_memory_id)s,
               conflict_version = %(conflict_version)s, edited_at = %(now)s,
               editors = array_append(array_remove(editors, %(by)s), %(by)s)
        where tenant_id = %(tenant)s and proposal_id = %(id)s and status = 'pending'
        """,
        {
            "tenant": unit.tenant_id,
            "id": proposal_id,
            "now": unit.now,
            "by": unit.principal.principal_id,
            **_jsonb(values),
        },
    )


def expire_due(unit: Unit, limit: int) -> list[UUID]:
    """Move pending rows past their deadline to expired (the sweep)."""
    return [
        row["proposal_id"]
        for row in unit.rows(
            """
            update proposal set status = 'expired', decided_at = %(now)s
            where tenant_id = %(tenant)s and status = 'pending' and proposal_id in (
              select proposal_id from proposal
              where tenant_id = %(tenant)s and status = 'pending' and deadline <= %(now)s
              order by deadline, proposal_id limit %(limit)s for update skip locked)
            returning proposal_id
            """,
            {"tenant": unit.tenant_id, "now": unit.now, "limit": limit},
        )
    ]


def warn_due(unit: Unit, before: datetime, limit: int) -> list[UUID]:
    """Pending rows whose deadline comes before `before` and that nobody was warned of yet."""
    return [
        row["proposal_id"]
        for row in unit.rows(
            """
            update proposal set warned_at = %(now)s
            where tenant_id = %(tenant)s and proposal_id in (
              select proposal_id from proposal
              where tenant_id = %(tenant)s and status = 'pending' and warned_at is null
                and deadline > %(now)s and deadline <= %(before)s
              order by deadline, proposal_id limit %(limit)s for update skip locked)
            returning proposal_id
            """,
            {"tenant": unit.tenant_id, "now": unit.now, "before": before, "limit": limit},
        )
    ]


def review_statistics(unit: Unit, since: datetime) -> Row:
    """Decisions by people since then: counts and the median seconds from capture to decision."""
    row = unit.row(
        """
        select count(*) filter (where status = 'approved') as approved,
               count(*) filter (where status = 'rejected') as rejected,
               count(*) filter (where status = 'expired') as expired,
               count(*) filter (where edited_at is not null and decided_by is not null) as edited,
               count(*) filter (where decision ->> 'override_reason' is not null) as overridden,
               percentile_cont(0.5) within group (order by extract(epoch from decided_at - created_at))
                 filter (where decided_by is not null) as median_seconds
        from proposal where tenant_id = %(tenant)s and decided_at >= %(since)s
        """,
        {"tenant": unit.tenant_id, "since": since},
    )
    assert row is not None
    return row


def _jsonb(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Jsonb(value) if isinstance(value, dict) else value for name, value in values.items()}
