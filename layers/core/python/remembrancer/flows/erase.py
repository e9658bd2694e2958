"""Erasure: a human admin's signed request, dry run first, nothing left but tombstones and the chain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.requests import PurgeRequest
from remembrancer.flows import removal
from remembrancer.flows.context import Call, Services
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.removal import Found
from remembrancer.flows.selectors import MOST, Selected, Selector, select, selector, unnamed, witness
from remembrancer.flows.signed import SignedUnit, signed, spent
from remembrancer.store import erasure, erasure_work, jobs, spaces
from remembrancer.store.database import Unit

WORK_LASTS = timedelta(days=30)
"""A long erasure that cannot go on is over only then, and has raised an alert every time it stopped."""


class _DryRun(Exception):
    """Carries the counts out of a transaction that must not commit."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body


def purge(services: Services, call: Call, request: PurgeRequest) -> Answer:
    """200 with the counts by table, the ids on legal hold and the ids that were not found.

    More than MOST rows are a job: 202, and its answer has the same at the end.
    """
    named = selector(request.memory_ids, request.data_subject, request.owner, request.proposal_ids)
    asked = {**request.model_dump(mode="json"), "data_subject": unnamed(services.macs, named.subject)}
    with signed(services, call, asked) as start:
        if start.replay is not None:
            return start.replay
        try:
            answer, job_id = services.database.write(
                call.credential, lambda unit: _purge(services, call, start, request, named, unit)
            )
        except _DryRun as dry:
            return _dry_answer(services, call, start, dry.body, request, named)
        if job_id is not None:
            services.start_job(start.principal.tenant_id, job_id)
        return answer


def _purge(
    services: Services, call: Call, start: Keyed, request: PurgeRequest, named: Selector, unit: Unit
) -> tuple[Answer, UUID | None]:
    start.fence(unit)
    by = spent(services, unit, call)
    if not named.by_id:
        removal.lock_everywhere(unit)
    wanted = select(unit, named)
    if named.by_id:
        removal.lock_for_ids(unit, wanted)
    if len(wanted) > MOST and not request.dry_run:
        return _take_on(services, call, start, request, named, by, wanted)
    found = removal.judge(services, unit, wanted)
    doomed = found.doomed
    large = len(wanted) > MOST
    counts = (
        erasure.count(unit, doomed.memories, [*doomed.proposals, *found.along])
        if large
        else removal.delete(unit, doomed, found.along)
    )
    body = _body(call, request, named, found, counts)
    if request.dry_run:
        raise _DryRun(body)
    erasure.raise_generation(unit, found.spaces if named.by_id else spaces.every(unit))
    tombstones = removal.bury(services, unit, found, request.reason)
    body["tombstones"] = removal.ids("tomb", tombstones)
    body["remains"] = removal.REMAINS
    by.audit(
        "purged",
        selector=_selector_detail(services, unit, named),
        counts=counts,
        reason=request.reason,
        **removal.shown(found),
    )
    for public in body["erased"]:
        unit.alert("erased", public)
    return start.answer(unit, 200, body, []), None


def _take_on(
    services: Services,
    call: Call,
    start: Keyed,
    request: PurgeRequest,
    named: Selector,
    by: SignedUnit,
    wanted: Selected,
) -> tuple[Answer, UUID]:
    """What is to go is written down by id, and what is in flight is kept out, now; a worker does the rest."""
    unit = by.unit
    detail = _selector_detail(services, unit, named)
    work = {"purge": True, "reason": request.reason, "selector": detail, "evidence": by.evidence}
    job_id = stage(unit, call, "erase", work, wanted)
    erasure.raise_generation(unit, spaces.every(unit))
    size = {"memories": len(wanted.memories), "proposals": len(wanted.proposals)}
    by.audit("erasure_accepted", format_id("job", job_id), selector=detail, reason=request.reason, **size)
    return accepted(unit, start, call, job_id, {"dry_run": False, "selector": named.kind, **size}), job_id


def stage(unit: Unit, call: Call, kind: str, work: dict[str, Any], wanted: Selected) -> UUID:
    """A job of the worker that erases (flows/erase_work.py), with the ids that it is about."""
    job_id = jobs.create(
        unit, kind, call.credential, work, call.correlation_id, len(wanted), lasts=WORK_LASTS
    )
    for name, row_ids in (
        ("memory", wanted.memories),
        ("proposal", wanted.proposals),
        ("job", wanted.jobs),
        ("occurrence", wanted.occurrences),
        ("attempt", wanted.attempts),
    ):
        erasure_work.put(unit, job_id, name, row_ids)
    return job_id


def _body(
    call: Call, request: PurgeRequest, named: Selector, found: Found, counts: dict[str, int]
) -> dict[str, Any]:
    present = found.present
    absent = removal.ids("mem", [one for one in named.ids if one not in present])
    absent += removal.ids("prop", [one for one in named.proposals if one not in present])
    return {
        "dry_run": request.dry_run,
        "selector": named.kind,
        **removal.shown(found),
        "not_found": absent,
        "counts": counts,
        "correlation_id": call.correlation_id,
    }


def _selector_detail(services: Services, unit: Unit, named: Selector) -> dict[str, Any]:
    """For the chain: the subject as a keyed digest."""
    if named.subject is not None:
        return {"data_subject": witness(services.macs, unit.tenant_id, named.subject).hex()}
    if named.owner is not None:
        return {"owner": format_id("prin", named.owner)}
    return {"memory_ids": len(named.ids), "proposal_ids": len(named.proposals)}


def _dry_answer(
    services: Services, call: Call, start: Keyed, body: dict[str, Any], request: PurgeRequest, named: Selector
) -> Answer:
    """Nothing was erased; that somebody looked is audited, and the nonce is spent."""

    def record(unit: Unit) -> Answer:
        start.fence(unit)
        spent(services, unit, call).audit(
            "purge_dry_run",
            selector=_selector_detail(services, unit, named),
            memories=len(body["erased"]),
            held=body["held"],
            reason=request.reason,
        )
        return start.answer(unit, 200, body, [])

    return services.database.write(call.credential, record)
