"""Tombstones and legal holds as they are shown, and written outside the database so that they survive a restore.

An object holds what the API lists and `flows/recover.reapply` takes: ids, keyed digests, times and codes, no content.
It is named by its own digest: writing it again changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.ids import format_id
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Services
from remembrancer.flows.instants import instant
from remembrancer.flows.tenants import Walk
from remembrancer.store import listings
from remembrancer.store.database import Row, Unit

TOMBSTONES = 1_000
HOLDS = 100
"""Of one object."""
OBJECTS = 50
"""Of one step, so that it ends long before its function does."""


def step(services: Services, tenant_id: UUID | None, after: UUID | None) -> dict[str, Any]:
    """Write what is not outside yet: of that tenant, or of every one behind `after`. {listed, objects, after, more}.

    An object is written before its rows are marked: whoever dies in between writes it again. Raises
    ObjectStoreUnavailable.
    """
    tenants = [tenant for tenant, _ in services.database.tenants() if after is None or tenant > after]
    listed = objects = 0
    walk = Walk()
    for tenant in sorted(tenants) if tenant_id is None else [tenant_id]:
        with walk.part(tenant):
            while entries := _write(services, tenant):
                listed += entries
                objects += 1
                if objects == OBJECTS:
                    return {"listed": listed, "objects": objects, "after": _text(after), "more": True}
        after = tenant
    walk.end()
    return {"listed": listed, "objects": objects, "after": None, "more": False}


def tombstone(row: Row) -> dict[str, Any]:
    return {
        "tombstone_id": format_id("tomb", row["tombstone_id"]),
        "mac": bytes(row["mac"]).hex(),
        "erased_at": instant(row["erased_at"]),
        "erased_by": format_id("prin", row["erased_by"]),
        "reason": row["reason"],
        "job_id": None if row["erasure_id"] is None else format_id("job", row["erasure_id"]),
    }


def legal_hold(row: Row) -> dict[str, Any]:
    return {
        "hold_id": format_id("hold", row["hold_id"]),
        "of": "memory_ids" if row["subject"] is None else "data_subject",
        "subject_digest": None if row["subject"] is None else bytes(row["subject"]).hex(),
        "memory_ids": [format_id("mem", memory_id) for memory_id in row["memory_ids"]],
        "reason": row["reason"],
        "case_reference": row["case_reference"],
        "placed_at": instant(row["placed_at"]),
        "placed_by": format_id("prin", row["placed_by"]),
        "released_at": instant(row["released_at"]),
        "released_by": None if row["released_by"] is None else format_id("prin", row["released_by"]),
        "release_reason": row["release_reason"],
    }


def object_key(tenant_id: UUID, body: bytes) -> str:
    return f"listings/{tenant_id}/{hashlib.sha256(body).hexdigest()}.json"


def _write(services: Services, tenant_id: UUID) -> int:
    """One object of the tenant; how many entries it has, 0 when nothing was left."""

    def read(unit: Unit) -> tuple[list[Row], list[Row]]:
        return listings.unlisted_tombstones(unit, TOMBSTONES), listings.unlisted_holds(unit, HOLDS)

    tombstones, holds = services.database.job(tenant_id, read, audited=False)
    if not tombstones and not holds:
        return 0
    if services.evidence is None:
        raise Problem("configuration_invalid")
    listing = {
        "version": 1,
        "tenant_id": str(tenant_id),
        "tombstones": [tombstone(row) for row in tombstones],
        "legal_holds": [legal_hold(row) for row in holds],
    }
    body = canonical_json(listing).encode()
    services.evidence.put(object_key(tenant_id, body), body, "application/json")
    erased = [row["tombstone_id"] for row in tombstones]
    placed = [row["hold_id"] for row in holds if row["released_at"] is None]
    released = [row["hold_id"] for row in holds if row["released_at"] is not None]
    services.database.job(
        tenant_id, lambda unit: listings.mark(unit, erased, placed, released), audited=False
    )
    return len(tombstones) + len(holds)


def _text(tenant_id: UUID | None) -> str | None:
    return None if tenant_id is None else str(tenant_id)
