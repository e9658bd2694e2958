"""Tombstones and legal holds that nothing outside the database has yet."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.store.database import Row, Unit


def unlisted_tombstones(unit: Unit, limit: int) -> list[Row]:
    return unit.rows(
        """
        select tombstone_id, mac, erased_at, erased_by, reason, erasure_id from tombstone
        where tenant_id = %(tenant)s and not listed order by tombstone_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "limit": limit},
    )


def unlisted_holds(unit: Unit, limit: int) -> list[Row]:
    """Orders that were placed, or released, since they were listed; with the memories of each that still exist."""
    return unit.rows(
        """
        select o.*, array(select h.memory_id from legal_hold h
                          where h.tenant_id = o.tenant_id and h.hold_id = o.hold_id order by h.memory_id) as memory_ids
        from legal_order o
        where o.tenant_id = %(tenant)s
          and (o.listed is null or (o.listed = 'placed' and o.released_at is not null))
        order by o.hold_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "limit": limit},
    )


def mark(unit: Unit, tombstones: Sequence[UUID], placed: Sequence[UUID], released: Sequence[UUID]) -> None:
    """These were listed; the orders as they stood when they were read."""
    unit.run(
        "update tombstone set listed = true where tenant_id = %(tenant)s and tombstone_id = any (%(ids)s)",
        {"tenant": unit.tenant_id, "ids": list(tombstones)},
    )
    for state, hold_ids in (("placed", placed), ("released", released)):
        unit.run(
            "update legal_order set listed = %(state)s where tenant_id = %(tenant)s and hold_id = any (%(ids)s)",
            {"tenant": unit.tenant_id, "state": state, "ids": list(hold_ids)},
        )
