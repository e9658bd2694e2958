"""Legal holds: placed by an admin, released by a signed request alone; no erasure passes one that stands."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.trust_requests import LegalHoldReleaseRequest, LegalHoldRequest
from remembrancer.flows import listing
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.cursors import Cursors
from remembrancer.flows.instants import instant
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.flows.selectors import Selector, selector, unnamed, witness
from remembrancer.flows.signed import Reply, SignedUnit, signed_act
from remembrancer.store import erasure, legal, locks, spaces
from remembrancer.store.database import Unit


def place(services: Services, call: Call, request: LegalHoldRequest) -> Answer:
    """201. Raises Problem not_found when none of the memories exists; a subject need not be known yet."""
    named = selector(request.memory_ids, request.data_subject)
    asked = {**request.model_dump(mode="json"), "data_subject": unnamed(services.macs, named.subject)}
    with keyed(services, call, asked, lambda unit: authorize(unit.principal, "admin")) as start:
        if start.replay is not None:
            return start.replay

        def work(unit: Unit) -> Answer:
            start.fence(unit)
            authorize(unit.principal, "admin")
            present = _present(unit, named)
            if not present and named.subject is None:
                raise Problem("not_found")
            subject = None if named.subject is None else witness(services.macs, unit.tenant_id, named.subject)
            hold_id = format_id(
                "hold", legal.place(unit, request.reason, request.case_reference, subject, present)
            )
            held = [format_id("mem", memory_id) for memory_id in present]
            unit.audit(
                "legal_hold_placed",
                hold_id,
                memories=held,
                data_subject=None if subject is None else subject.hex(),
                reason=request.reason,
                case_reference=request.case_reference,
                correlation_id=call.correlation_id,
            )
            unit.alert("legal_hold_placed", hold_id)
            gone = [format_id("mem", one) for one in named.ids if one not in set(present)]
            body = {
                "hold_id": hold_id,
                "memory_ids": held,
                "not_found": gone,
                "placed_at": instant(unit.now),
                "correlation_id": call.correlation_id,
            }
            return start.answer(unit, 201, body, present)

        return services.database.write(call.credential, work)


def release(services: Services, call: Call, hold: str, request: LegalHoldReleaseRequest) -> Answer:
    """200. Raises Problem not_found, already_decided."""

    def act(signed: SignedUnit) -> Reply:
        unit = signed.unit
        hold_id = public_id("hold", hold)
        stood = legal.release(unit, hold_id, request.reason)
        if stood is None:
            raise Problem("not_found")
        if not stood:
            raise Problem("already_decided")
        shown = format_id("hold", hold_id)
        signed.audit("legal_hold_released", shown, reason=request.reason)
        unit.alert("legal_hold_released", shown)
        return 200, {"hold_id": shown, "released_at": instant(unit.now)}, []

    return signed_act(services, call, request.model_dump(mode="json"), act)


def list_holds(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Newest first, the released ones too."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        position = Cursors(services.macs).decode(unit.tenant_id, "legal_holds", {}, cursor)
        rows = legal.page(unit, None if position is None else UUID(str(position[0])), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [str(page[-1]["hold_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "legal_holds", {}, last)
        return {
            "legal_holds": [listing.legal_hold(row) for row in page],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def _present(unit: Unit, named: Selector) -> list[UUID]:
    """The memories that exist once no erasure is under way; for a subject none is listed: it holds them all."""
    concerned = (
        spaces.every(unit)
        if named.subject is not None
        else [row["space_id"] for row in erasure.find(unit, named.ids)]
    )
    locks.lock(unit, "space", [space_id.bytes for space_id in concerned], shared=True)
    return [row["memory_id"] for row in erasure.find(unit, named.ids)]
