"""Erasure by ids: a human admin's signed request, dry run first, nothing left but tombstones and the chain."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id, parse_id
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import PurgeRequest
from remembrancer.flows.context import Call, Services
from remembrancer.flows.keyed import Answer
from remembrancer.flows.signed import signed, spend
from remembrancer.store import erasure, jobs, memories
from remembrancer.store.database import Unit


class _DryRun(Exception):
    """Carries the counts out of a transaction that must not commit."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body


def purge(services: Services, call: Call, request: PurgeRequest) -> Answer:
    """200 with the counts by table, the ids on legal hold and the ids that were not found."""
    ids = _parsed(request.memory_ids)
    with signed(services, call, request.model_dump(mode="json")) as start:
        if start.replay is not None:
            return start.replay

        bundles: list[str] = []

        def work(unit: Unit) -> Answer:
            start.fence(unit)
            verified = spend(services, unit, call)
            found = _lock(unit, ids)
            held = [row["memory_id"] for row in found if row["on_legal_hold"]]
            doomed = [row["memory_id"] for row in found if not row["on_legal_hold"]]
            counts = erasure.erase(unit, doomed)
            present = {row["memory_id"] for row in found}
            body: dict[str, Any] = {
                "dry_run": request.dry_run,
                "erased": [format_id("mem", memory_id) for memory_id in doomed],
                "held": [format_id("mem", memory_id) for memory_id in held],
                "not_found": [format_id("mem", memory_id) for memory_id in ids if memory_id not in present],
                "counts": counts,
                "correlation_id": call.correlation_id,
            }
            if request.dry_run:
                raise _DryRun(body)
            spaces = sorted({row["space_id"] for row in found if not row["on_legal_hold"]})
            erasure.raise_generation(unit, spaces)
            # Any bundle of the last day may hold the bytes.
            bundles[:] = jobs.erase_bundles(unit) if doomed else []
            tombstones = erasure.bury(
                unit,
                doomed,
                lambda memory_id: services.macs.mac("tombstone", unit.tenant_id, memory_id.bytes),
                request.reason,
            )
            body["tombstones"] = [format_id("tomb", tombstone_id) for tombstone_id in tombstones]
            body["remains"] = REMAINS
            unit.audit(
                "purged",
                None,
                erased=body["erased"],
                held=body["held"],
                counts=counts,
                reason=request.reason,
                key_id=verified.key_id,
                signature_base=verified.base_digest.hex(),
                correlation_id=call.correlation_id,
            )
            for shown in body["erased"]:
                unit.alert("erased", shown)
            return start.answer(unit, 200, body, [])

        try:
            answer = services.database.write(call.credential, work)
            if services.objects is not None:
                services.objects.delete(bundles)
            return answer
        except _DryRun as dry:
            return _dry_answer(services, call, start, dry.body, request)


REMAINS = (
    "Backups and point-in-time recovery keep the bytes until their retention ends; a restored database replays "
    "the tombstones before it opens. The tombstones and the audit rows stay and hold no content."
)


def _dry_answer(
    services: Services, call: Call, start: Any, body: dict[str, Any], request: PurgeRequest
) -> Answer:
    """Nothing was erased; that somebody looked is audited, and the nonce is spent."""

    def record(unit: Unit) -> Answer:
        start.fence(unit)
        verified = spend(services, unit, call)
        unit.audit(
            "purge_dry_run",
            None,
            memories=len(body["erased"]),
            held=body["held"],
            reason=request.reason,
            key_id=verified.key_id,
            correlation_id=call.correlation_id,
        )
        answer: Answer = start.answer(unit, 200, body, [])
        return answer

    return services.database.write(call.credential, record)


def _parsed(texts: list[str]) -> list[UUID]:
    """Distinct ids in a fixed order. A text that is no id is an error of the request, with its pointer."""
    found: set[UUID] = set()
    errors = []
    for index, text in enumerate(texts):
        try:
            found.add(parse_id("mem", text))
        except ValueError:
            errors.append(FieldError(f"/memory_ids/{index}", "id", "is not a memory id"))
    if errors:
        raise Problem("invalid_input", errors[:20])
    return sorted(found)


def _lock(unit: Unit, ids: list[UUID]) -> list[dict[str, Any]]:
    """Wait until no write is in flight in the spaces concerned, keep new ones out, and look again."""
    spaces = sorted({row["space_id"] for row in erasure.find(unit, ids)})
    memories.lock(unit, "space", [space.bytes for space in spaces])
    return erasure.find(unit, ids)
