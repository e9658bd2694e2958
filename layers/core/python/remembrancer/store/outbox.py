"""Alerts waiting for delivery: claimed for a while, marked when delivered, given up after many attempts."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from remembrancer.store.database import Row, Unit

CLAIM = timedelta(minutes=2)
MAX_ATTEMPTS = 20
KEPT = timedelta(days=7)
"""How long one that was delivered, or given up, stays."""


def claim(unit: Unit, limit: int) -> list[Row]:
    """Due alerts, now ours for two minutes; delivered at least once."""
    return unit.rows(
        """
        update outbox set claimed_until = %(until)s, attempts = attempts + 1
        where tenant_id = %(tenant)s and delivery_id in (
          select delivery_id from outbox
          where tenant_id = %(tenant)s and delivered_at is null and attempts < %(max)s
            and (claimed_until is null or claimed_until <= %(now)s)
          order by created_at limit %(limit)s for update skip locked)
        returning tenant_id, delivery_id, kind, target, created_at, attempts
        """,
        {
            "until": unit.now + CLAIM,
            "tenant": unit.tenant_id,
            "max": MAX_ATTEMPTS,
            "now": unit.now,
            "limit": limit,
        },
    )


def mark(unit: Unit, delivery_ids: list[UUID]) -> int:
    return unit.run(
        "update outbox set delivered_at = %(now)s where tenant_id = %(tenant)s and delivery_id = any (%(ids)s)"
        " and delivered_at is null",
        {"now": unit.now, "tenant": unit.tenant_id, "ids": delivery_ids},
    )


def sweep(unit: Unit) -> dict[str, int]:
    """Remove operational rows whose time is over; rows removed by table."""
    scope = {"tenant": unit.tenant_id, "now": unit.now, "over": unit.now - KEPT, "max": MAX_ATTEMPTS}
    return {
        "idempotency": unit.run(
            "delete from idempotency where tenant_id = %(tenant)s and expires_at <= %(now)s", scope
        ),
        "nonce": unit.run("delete from nonce where tenant_id = %(tenant)s and expires_at <= %(now)s", scope),
        "outbox": unit.run(
            "delete from outbox where tenant_id = %(tenant)s and (delivered_at <= %(over)s"
            " or (delivered_at is null and attempts >= %(max)s and claimed_until <= %(over)s))",
            scope,
        ),
    }
