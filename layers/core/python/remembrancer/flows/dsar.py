"""Requests of data subjects: registered with their deadline, answered by a bundle, an erasure, both, or a refusal."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.dsar import PERIODS, deadline
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.trust_requests import DsarRequest
from remembrancer.flows import removal
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.cursors import Cursors
from remembrancer.flows.erase import stage
from remembrancer.flows.instants import instant
from remembrancer.flows.jobs import LINK_S
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.selectors import Selected, Selector, select, subject_selectors, union, unnamed
from remembrancer.flows.signed import SignedUnit, signed, spent
from remembrancer.store import dsar, erasure, spaces
from remembrancer.store.database import Row, Unit

LISTED = 1_000
"""Ids that a dry run shows; the counts are of all."""
_STATES = {"register": "open", "refuse": "refused"}


def request_dsar(services: Services, call: Call, request: DsarRequest) -> Answer:
    """202 with the location of the request whose job has begun; 201 when there is nothing to do but record it; 200
    with what was found for a dry run. Raises Problem invalid_input for a time of receipt that has not come."""
    named = subject_selectors(request.data_subject, request.author, request.entities, request.owner)
    asked = request.model_dump(mode="json") | {
        "data_subject": unnamed(services.macs, request.data_subject),
        "author": unnamed(services.macs, request.author),
    }
    with signed(services, call, asked) as start:
        if start.replay is not None:
            return start.replay
        answer, job_id = services.database.write(
            call.credential, lambda unit: _act(services, call, start, request, named, unit)
        )
        if job_id is not None:
            services.start_job(start.principal.tenant_id, job_id)
        return answer


def _act(
    services: Services, call: Call, start: Keyed, request: DsarRequest, named: list[Selector], unit: Unit
) -> tuple[Answer, UUID | None]:
    start.fence(unit)
    by = spent(services, unit, call)
    received = unit.now if request.received_at is None else request.received_at
    if received > unit.now:
        raise Problem("invalid_input", [FieldError("/received_at", "instant", "has not come yet")])
    works = request.action in ("export", "purge", "both")
    if request.action in ("purge", "both") and not request.dry_run:
        removal.lock_everywhere(unit)
    found = {selector.kind: select(unit, selector) for selector in named}
    wanted = union(list(found.values()))
    located = {
        "memories": len(wanted.memories),
        "proposals": len(wanted.proposals),
        "imports": len(wanted.jobs),
        "submissions": len(wanted.occurrences),
        "attempts": len(wanted.attempts),
        "by": {kind: len(part) for kind, part in found.items()},
    }
    if request.dry_run:
        return _dry(services, call, start, by, wanted, located), None
    selectors = _digest(services, unit, named)
    dsar_id = unit.new_id()
    public = format_id("dsr", dsar_id)
    job_id = None
    if works:
        job_id = _stage(unit, call, request, by, public, received, named, wanted)
    dsar.insert(
        unit,
        dsar_id,
        {
            "action": request.action,
            "state": _STATES.get(request.action, "working"),
            "jurisdiction": request.jurisdiction,
            "selectors": selectors,
            "found_by": [selector.kind for selector in named],
            "case_reference": request.case_reference,
            "reason": request.reason,
            "received_at": received,
            "deadline": deadline(received, request.jurisdiction),
            "closed_at": unit.now if request.action == "refuse" else None,
            "job_id": job_id,
            "located": located,
        },
    )
    answered = dsar.answer_open(unit, dsar_id, selectors, "refuse") if request.action == "refuse" else []
    by.audit(
        f"dsar_{request.action}",
        public,
        jurisdiction=request.jurisdiction,
        subject=selectors.hex(),
        located=located,
        case_reference=request.case_reference,
        reason=request.reason,
        answered=[format_id("dsr", one) for one in answered],
    )
    unit.alert(f"dsar_{request.action}", public)
    body = {
        "dsar_id": public,
        "location": f"/v1/dsar/{public}",
        "job_id": None if job_id is None else format_id("job", job_id),
        "status": _STATES.get(request.action, "working"),
        "deadline": instant(deadline(received, request.jurisdiction)),
        "located": located,
        "correlation_id": call.correlation_id,
    }
    return start.answer(unit, 202 if works else 201, body, []), job_id


def _stage(
    unit: Unit,
    call: Call,
    request: DsarRequest,
    by: SignedUnit,
    public: str,
    received: Any,
    named: list[Selector],
    wanted: Selected,
) -> UUID:
    """What was found is written down by id, so that no name is kept; what is in flight is kept out of an erasure."""
    purges = request.action in ("purge", "both")
    work = {
        "dsar_id": public,
        "export": request.action in ("export", "both"),
        "purge": purges,
        "reason": "data_subject_request",
        "selector": {"dsar_id": public},
        "jurisdiction": request.jurisdiction,
        "received_at": instant(received),
        "found_by": [selector.kind for selector in named],
        "evidence": by.evidence,
    }
    job_id = stage(unit, call, "dsar", work, wanted)
    if purges:
        erasure.raise_generation(unit, spaces.every(unit))
    return job_id


def _dry(
    services: Services,
    call: Call,
    start: Keyed,
    by: SignedUnit,
    wanted: Selected,
    located: dict[str, Any],
) -> Answer:
    """That somebody looked is audited."""
    unit = by.unit
    found = removal.judge(services, unit, wanted)
    by.audit("dsar_dry_run", None, located=located, held=len(found.held))
    body = {
        "dry_run": True,
        "located": located,
        "memory_ids": removal.ids("mem", wanted.memories[:LISTED]),
        "proposal_ids": removal.ids("prop", wanted.proposals[:LISTED]),
        "held": removal.ids("mem", found.held.memories[:LISTED]),
        "held_proposals": removal.ids("prop", found.held.proposals[:LISTED]),
        "correlation_id": call.correlation_id,
    }
    return start.answer(unit, 200, body, [])


def _digest(services: Services, unit: Unit, named: list[Selector]) -> bytes:
    """One for one subject, however it is spelled; nobody is told by it whom it means."""
    whom = {
        "data_subject": next((one.subject for one in named if one.subject is not None), None),
        "author": next((one.author for one in named if one.author is not None), None),
        "entities": [str(entity) for one in named for entity in one.entities],
        "owner": next((str(one.owner) for one in named if one.owner is not None), None),
    }
    return services.macs.mac("dsar", unit.tenant_id, canonical_json(whom).encode())


def list_dsars(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Newest first."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        cursors = Cursors(services.macs)
        position = cursors.decode(unit.tenant_id, "dsar", {}, cursor)
        rows = dsar.page(unit, None if position is None else UUID(str(position[0])), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            more = cursors.encode(unit.tenant_id, "dsar", {}, [str(page[-1]["dsar_id"])])
        return {"dsars": [_shown(row, unit) for row in page], "next_cursor": more}

    return services.database.read(call.credential, read)


def get_dsar(services: Services, call: Call, request: str) -> dict[str, Any]:
    """How far it is. The link to a bundle is for who asked for it alone, made anew and audited each time."""

    def look(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        row = dsar.get(unit, public_id("dsr", request))
        if row is None:
            raise Problem("not_found")
        link = None
        mine = row["requested_by"] == unit.principal.principal_id
        if mine and row["object_key"] is not None and row["expires_at"] > unit.now:
            if services.objects is None:
                raise Problem("configuration_invalid")
            link = services.objects.link(row["object_key"], LINK_S)
            unit.audit("bundle_linked", request, correlation_id=call.correlation_id)
        result = row["result"] or {}
        return {
            **_shown(row, unit),
            "done": row["done"],
            "total": row["total"],
            "failure": row["failure"],
            "result": {name: result.get(name) for name in ("bundle", "erased", "held")},
            "link": link,
            "link_expires_in_s": None if link is None else LINK_S,
        }

    return services.database.operate(call.credential, look)


def _shown(row: Row, unit: Unit) -> dict[str, Any]:
    return {
        "dsar_id": format_id("dsr", row["dsar_id"]),
        "action": row["action"],
        "status": row["state"],
        "jurisdiction": row["jurisdiction"],
        "law": PERIODS[row["jurisdiction"]].law,
        "found_by": row["found_by"],
        "case_reference": row["case_reference"],
        "reason": row["reason"],
        "received_at": instant(row["received_at"]),
        "deadline": instant(row["deadline"]),
        "overdue": row["closed_at"] is None and row["deadline"] <= unit.now,
        "requested_by": format_id("prin", row["requested_by"]),
        "created_at": instant(row["created_at"]),
        "closed_at": instant(row["closed_at"]),
        "closed_by": None if row["closed_by"] is None else format_id("dsr", row["closed_by"]),
        "job_id": None if row["job_id"] is None else format_id("job", row["job_id"]),
        "located": row["located"],
        "certificate": row["certificate"] is not None,
    }
