"""Work too long for one request: screened, staged invisibly, answered with the place where its progress is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.flows import gate
from remembrancer.flows.batch import outcome, publish, writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.index import MAX_PASSAGES, cut_text, embedded
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.records import Judged
from remembrancer.store import jobs, memories, spaces
from remembrancer.store.database import Unit


def write_or_stage(
    services: Services,
    call: Call,
    start: Keyed,
    judged: Judged,
    shown: Mapping[str, Any],
) -> Answer:
    """At once up to MAX_PASSAGES passages (201, or 200 when nothing is new), else as a job (202).

    Raises Problem input_rejected or invalid_input, audited, when no item is left.
    """
    items = judged.items
    if not items:
        services.database.write(call.credential, lambda unit: _audit_refused(unit, judged, call))
        raise judged.nothing_left()
    pieces = [cut_text(services.embedder, item.text) for item in items]
    if sum(map(len, pieces)) > MAX_PASSAGES:
        return stage_import(services, call, start, judged, shown)
    passages = embedded(services.embedder, pieces)

    def commit(unit: Unit) -> Answer:
        start.fence(unit)
        gate.same_policy(unit, start.principal.settings)
        _audit_refused(unit, judged, call)
        published = publish(unit, items, passages, call.correlation_id, start.principal)
        body = {**shown, **outcome(items, published), "correlation_id": call.correlation_id}
        refs = [one.memory_id for one in published.admitted]
        return start.answer(unit, 201 if published.fresh else 200, body, refs)

    return services.database.write(call.credential, commit)


def stage_import(
    services: Services,
    call: Call,
    start: Keyed,
    judged: Judged,
    shown: Mapping[str, Any],
) -> Answer:
    """202 with the job's location. `shown` is what the caller is told of the screen, now and by the job."""

    items = judged.items

    def commit(unit: Unit) -> tuple[Answer, UUID]:
        start.fence(unit)
        gate.same_policy(unit, start.principal.settings)
        _audit_refused(unit, judged, call)
        began = {str(space_id): n for space_id, n in start.principal.generations.items()}
        request = {"shown": dict(shown), "generations": began}
        job_id = jobs.create(unit, "import", call.credential, request, call.correlation_id, len(items))
        staged = [(writable_space(unit, item.request.target_space), item.to_dict()) for item in items]
        into = {space_id for space_id, _ in staged}
        memories.lock(unit, "space", [space_id.bytes for space_id in into], shared=True)
        spaces.unchanged(unit, start.principal, into)
        jobs.stage(unit, job_id, staged)
        unit.audit(
            "import_staged", format_id("job", job_id), items=len(items), correlation_id=call.correlation_id
        )
        return accepted(unit, start, call, job_id, shown), job_id

    answer, job_id = services.database.write(call.credential, commit)
    services.start_job(start.principal.tenant_id, job_id)
    return answer


def _audit_refused(unit: Unit, judged: Judged, call: Call) -> None:
    """One content-free row for each record that the screen refused, and one alert for all."""
    rejected = [entry for entry in judged.refused if entry["status"] == "rejected"]
    for entry in judged.refused:
        unit.audit(
            "input_rejected",
            rules=sorted({error["code"] for error in entry["errors"]}),
            index=entry["index"],
            correlation_id=call.correlation_id,
        )
    if rejected:
        unit.alert("screen", call.correlation_id)
