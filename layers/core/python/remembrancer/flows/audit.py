"""Reading the chain and the tombstones; verifying; checkpoints."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.audit import GENESIS, verify
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.flows.context import Call, Services
from remembrancer.flows.cursors import Cursors
from remembrancer.flows.instants import instant
from remembrancer.store import audit_log, erasure
from remembrancer.store.database import Unit

HEADS = 100
"""Tenants a page: the page travels through the machine's state, which has a limit."""


def list_events(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Newest first."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        position = Cursors(services.macs).decode(unit.tenant_id, "audit", {}, cursor)
        before = None if position is None else int(str(position[0]))
        rows = audit_log.page(unit, before, limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            more = Cursors(services.macs).encode(unit.tenant_id, "audit", {}, [page[-1]["seq"]])
        return {
            "events": [
                {
                    "seq": row["seq"],
                    "at": instant(row["at"]),
                    "actor": None if row["actor_id"] is None else format_id("prin", row["actor_id"]),
                    "actor_name": row["actor_name"],
                    "actor_kind": row["actor_kind"],
                    "action": row["action"],
                    "target": row["target"],
                    "detail": json.loads(row["detail"]),
                    "hash": bytes(row["hash"]).hex(),
                }
                for row in page
            ],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def verify_chain(services: Services, call: Call) -> dict[str, Any]:
    """The whole chain against its head: where it was edited, cut or reordered."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        head = audit_log.head(unit)
        outcome = verify(
            audit_log.rows_from(unit, GENESIS.seq), tenant=unit.tenant_id, from_checkpoint=GENESIS, head=head
        )
        return {
            "ok": outcome.intact,
            "events": head.seq,
            "head": head.hash.hex(),
            "faults": [
                {"kind": fault.kind.value, "seq": fault.seq, "until": fault.until} for fault in outcome.faults
            ],
        }

    found = services.database.read(call.credential, read)
    if not found["ok"]:
        observability.count("ChainBroken")
        services.database.write(call.credential, _report(found, call))
    return found


def list_tombstones(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        position = Cursors(services.macs).decode(unit.tenant_id, "tombstones", {}, cursor)
        rows = erasure.list_tombstones(unit, None if position is None else UUID(str(position[0])), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [str(page[-1]["tombstone_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "tombstones", {}, last)
        return {
            "tombstones": [
                {
                    "tombstone_id": format_id("tomb", row["tombstone_id"]),
                    "mac": bytes(row["mac"]).hex(),
                    "erased_at": instant(row["erased_at"]),
                    "erased_by": format_id("prin", row["erased_by"]),
                    "reason": row["reason"],
                }
                for row in page
            ],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def heads(services: Services, after: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of heads that no checkpoint holds yet, {tenant_id, sequence, head, at}, and where the next begins."""
    tenants = [tenant_id for tenant_id, _ in services.database.tenants()]
    waiting = [tenant_id for tenant_id in tenants if after is None or tenant_id > UUID(after)]
    found = []
    for tenant_id in waiting[:HEADS]:
        head = services.database.job(tenant_id, audit_log.unsigned_head, audited=False)
        if head is not None:
            found.append(
                {
                    "tenant_id": str(tenant_id),
                    "sequence": head.seq,
                    "head": head.hash.hex(),
                    "at": services.clock().astimezone(UTC).isoformat(),
                }
            )
    return found, str(waiting[HEADS - 1]) if len(waiting) > HEADS else None


def record_checkpoint(services: Services, checkpoint: dict[str, Any]) -> None:
    services.database.job(
        UUID(checkpoint["tenant_id"]),
        lambda unit: audit_log.record_checkpoint(unit, checkpoint),
        audited=False,
    )


def _report(found: dict[str, Any], call: Call) -> Any:
    def record(unit: Unit) -> None:
        unit.audit("chain_broken", None, faults=len(found["faults"]), correlation_id=call.correlation_id)
        unit.alert("chain_broken", str(found["events"]))

    return record
