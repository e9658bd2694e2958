"""Legal holds: orders, and the memories they name. What an order on a subject holds is told by digest."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.store.database import Row, Unit


def place(
    unit: Unit, reason: str, case_reference: str, subject: bytes | None, memory_ids: Sequence[UUID]
) -> UUID:
    hold_id = unit.new_id()
    scope = {
        "tenant": unit.tenant_id,
        "hold": hold_id,
        "reason": reason,
        "now": unit.now,
        "by": unit.principal.principal_id,
    }
    unit.run(
        """
        insert into legal_order (tenant_id, hold_id, reason, case_reference, subject, placed_at, placed_by)
        values (%(tenant)s, %(hold)s, %(reason)s, %(case)s, %(subject)s, %(now)s, %(by)s)
        """,
        {**scope, "case": case_reference, "subject": subject},
    )
    unit.run_many(
        """
        insert into legal_hold (tenant_id, legal_hold_id, hold_id, memory_id, reason, placed_at, placed_by)
        values (%(tenant)s, %(id)s, %(hold)s, %(memory)s, %(reason)s, %(now)s, %(by)s)
        """,
        [{**scope, "id": unit.new_id(), "memory": memory_id} for memory_id in memory_ids],
    )
    return hold_id


def release(unit: Unit, hold_id: UUID, reason: str) -> bool | None:
    """Whether it stood until now; None when there is no such order. Other orders on its memories stand."""
    scope = {
        "tenant": unit.tenant_id,
        "hold": hold_id,
        "reason": reason,
        "now": unit.now,
        "by": unit.principal.principal_id,
    }
    released = unit.run(
        """
        update legal_order set released_at = %(now)s, released_by = %(by)s, release_reason = %(reason)s
        where tenant_id = %(tenant)s and hold_id = %(hold)s and released_at is null
        """,
        scope,
    )
    if not released:
        known = unit.row("select from legal_order where tenant_id = %(tenant)s and hold_id = %(hold)s", scope)
        return None if known is None else False
    unit.run(
        "update legal_hold set released_at = %(now)s, released_by = %(by)s"
        " where tenant_id = %(tenant)s and hold_id = %(hold)s and released_at is null",
        scope,
    )
    return True


def held_subjects(unit: Unit) -> set[bytes]:
    """The digests of the subjects that an order holds now."""
    rows = unit.rows(
        "select distinct subject from legal_order"
        " where tenant_id = %(tenant)s and released_at is null and subject is not null",
        {"tenant": unit.tenant_id},
    )
    return {bytes(row["subject"]) for row in rows}


def page(unit: Unit, before: UUID | None, limit: int) -> list[Row]:
    """Newest first, with the memories of each that still exist."""
    return unit.rows(
        """
        select o.*, array(select h.memory_id from legal_hold h
                          where h.tenant_id = o.tenant_id and h.hold_id = o.hold_id order by h.memory_id) as memory_ids
        from legal_order o
        where o.tenant_id = %(tenant)s and (%(before)s::uuid is null or o.hold_id < %(before)s)
        order by o.hold_id desc limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "before": before, "limit": limit},
    )
