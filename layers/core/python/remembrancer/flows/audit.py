"""Reading the chain and the tombstones; verifying; checkpoints."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Literal
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.audit import GENESIS, ChainPoint, verify
from remembrancer.domain.audit_export import lines
from remembrancer.domain.ids import format_id
from remembrancer.domain.pii_reads import day_digest
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.flows import listing
from remembrancer.flows.context import Call, Services
from remembrancer.flows.cursors import Cursors
from remembrancer.flows.instants import instant
from remembrancer.store import audit_log, erasure, pii_reads
from remembrancer.store.database import Unit

EXPORT_BYTES = 4_000_000
"""A function answers six million at most."""
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


def verify_chain(services: Services, call: Call, begin: Literal["start", "checkpoint"]) -> dict[str, Any]:
    """The chain against its head and its checkpoints: where it was edited, cut or reordered.

    From the start, or from the last recorded checkpoint; without one that is the start.
    """

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        head = audit_log.head(unit)
        checkpoints = audit_log.checkpoints(unit)
        first = GENESIS
        if begin == "checkpoint" and checkpoints:
            first = ChainPoint(*max(checkpoints.items()))
        outcome = verify(
            audit_log.rows_between(unit, first.seq, head),
            tenant=unit.tenant_id,
            from_checkpoint=first,
            head=head,
            checkpoints=[ChainPoint(*item) for item in checkpoints.items() if item[0] >= first.seq],
        )
        return {
            "ok": outcome.intact,
            "from": first.seq,
            "events": head.seq,
            "rows": outcome.rows,
            "checkpoints": len(checkpoints),
            "head": head.hash.hex(),
            "faults": [
                {"kind": fault.kind.value, "seq": fault.seq, "until": fault.until} for fault in outcome.faults
            ],
        }

    found = services.database.read(call.credential, read)
    if not found["ok"]:
        observability.count("ChainBroken")
        # A forged row in the next place keeps every row out, this report's too: then the alert alone is left.
        forged = any(
            fault["kind"] != "truncated" and fault["seq"] > found["events"] for fault in found["faults"]
        )
        record = services.database.operate if forged else services.database.write
        record(call.credential, _report(found, call, audited=not forged))
    return found


def export_chain(services: Services, call: Call, after: int, limit: int) -> str:
    """A page of JSON lines (domain/audit_export.py) of the rows behind `after`; no more than EXPORT_BYTES or so."""

    def read(unit: Unit) -> str:
        authorize(unit.principal, "audit")
        head = audit_log.head(unit)
        rows = itertools.islice(audit_log.rows_between(unit, after, head), limit)
        page: list[str] = []
        size = 0
        for line in lines(unit.tenant_id, head, audit_log.checkpoints(unit), rows):
            page.append(line)
            size += len(line)
            if size > EXPORT_BYTES:
                break
        return "".join(page)

    return services.database.read(call.credential, read)


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
            "tombstones": [listing.tombstone(row) for row in page],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def list_pii_reads(
    services: Services, call: Call, day: str | None, cursor: str | None, limit: int
) -> dict[str, Any]:
    """Who was shown personal data on a day (YYYY-MM-DD, UTC; today by default); whether the log still is what the chain
    witnessed.

    Raises Problem invalid_input for a text that is no day.
    """
    try:
        which = services.clock().astimezone(UTC).date() if day is None else date.fromisoformat(day)
        pii_reads.bounds(which)
    except (ValueError, OverflowError):  # the last day of the calendar has no end
        raise Problem("invalid_input", [FieldError("/query/day", "date", "is not a date")]) from None

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        cursors = Cursors(services.macs)
        position = cursors.decode(unit.tenant_id, "pii-reads", {"day": str(which)}, cursor)
        after = None if position is None else (datetime.fromisoformat(str(position[0])), str(position[1]))
        rows = pii_reads.page(unit, which, after, limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [page[-1]["at"].isoformat(), str(page[-1]["read_id"])]
            more = cursors.encode(unit.tenant_id, "pii-reads", {"day": str(which)}, last)
        recorded = pii_reads.recorded(unit, which)
        return {
            "day": which.isoformat(),
            "reads": [
                {
                    "at": instant(row["at"]),
                    "principal": format_id("prin", row["principal_id"]),
                    "principal_name": row["principal_name"],
                    "through": row["through"],
                    "rows": row["rows_shown"],
                }
                for row in page
            ],
            "next_cursor": more,
            "digest": None if recorded is None else recorded.hex(),
            "intact": None if recorded is None else day_digest(pii_reads.of_day(unit, which)) == recorded,
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


def _report(found: dict[str, Any], call: Call, *, audited: bool) -> Callable[[Unit], None]:
    def record(unit: Unit) -> None:
        if audited:
            unit.audit("chain_broken", faults=len(found["faults"]), correlation_id=call.correlation_id)
        unit.alert("chain_broken", str(found["events"]))

    return record
