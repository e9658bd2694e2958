"""At once, or staged invisibly and answered with the place where its progress is: what is too long for one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import PassageText
from remembrancer.domain.problems import Problem
from remembrancer.flows import gate
from remembrancer.flows.batch import Item, outcome, publish, text_of, writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.index import cut_few, cut_text, embedded
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.records import Judged, Record, audit_refused, by_index, judge, redact
from remembrancer.flows.staged import unjudged, unread
from remembrancer.store import jobs, memories, spaces
from remembrancer.store.database import Unit


def write_parts(
    services: Services, call: Call, start: Keyed, items: Sequence[Item], shown: Mapping[str, Any]
) -> Answer:
    """The parts of a judged document: at once up to MAX_PASSAGES passages (201, or 200 when nothing is new), else as
    a job (202). `shown` is what the caller is told of the screen, now and by the job."""
    cuts = cut_few(services.embedder, [item.text for item in items])
    if cuts is None:
        return stage_import(services, call, start, items, shown)
    return _write(services, call, start, Judged(list(items)), cuts, shown)


def judge_and_write(
    services: Services,
    call: Call,
    start: Keyed,
    records: Sequence[Record],
    judged: Judged,
    pointer: str,
    more: Mapping[str, Any],
) -> Answer:
    """Records, each judged on its own, at once or by the job: the gate is what takes the time.

    `judged` holds those that are refused already, `pointer` is for `judge`, `more` is shown beside its account.
    Raises Problem input_rejected or invalid_input, audited, when nothing is left of what is judged at once.
    """
    if cut_few(services.embedder, [text_of(record.request) for record in records]) is not None:
        judge(services, judged, records, start.principal.settings, pointer)
        if not judged.items:
            raise _nothing_left(services, call, judged)
        cuts = [cut_text(services.embedder, item.text) for item in judged.items]
        return _write(services, call, start, judged, cuts, {**judged.shown(), **more})
    clean = redact(judged, records, start.principal.settings, pointer)
    if not clean:
        raise _nothing_left(services, call, judged)
    waiting = [(record.request.target_space, unjudged(record, pointer)) for record in clean]
    shown = {"refused": by_index(judged.refused), "redactions": by_index(judged.redactions), **more}
    return _stage(services, call, start, waiting, judged.refused, shown, records=True)


def stage_import(
    services: Services, call: Call, start: Keyed, items: Sequence[Item], shown: Mapping[str, Any]
) -> Answer:
    """202 with the job's location, for items that passed the gate."""
    waiting = [(item.request.target_space, unread(item)) for item in items]
    return _stage(services, call, start, waiting, (), shown, records=False)


def _nothing_left(services: Services, call: Call, judged: Judged) -> Problem:
    """The problem to raise, its refusals audited."""
    services.database.write(
        call.credential, lambda unit: audit_refused(unit, judged.refused, call.correlation_id)
    )
    return judged.nothing_left()


def _write(
    services: Services,
    call: Call,
    start: Keyed,
    judged: Judged,
    cuts: Sequence[tuple[PassageText, ...]],
    shown: Mapping[str, Any],
) -> Answer:
    """`cuts` are the passages of each item."""
    items = [item.enriched(services.clock()) for item in judged.items]
    passages = embedded(services.embedder, cuts)

    def commit(unit: Unit) -> Answer:
        start.fence(unit)
        gate.same_policy(unit, start.principal.settings)
        audit_refused(unit, judged.refused, call.correlation_id)
        published = publish(unit, items, passages, call.correlation_id, start.principal, unit.now)
        body = {**shown, **outcome(items, published), "correlation_id": call.correlation_id}
        refs = [row for one in published.admitted for row in (one.memory_id, one.occurrence_id)]
        return start.answer(unit, 201 if published.fresh else 200, body, refs)

    return services.database.write(call.credential, commit)


def _stage(
    services: Services,
    call: Call,
    start: Keyed,
    waiting: Sequence[tuple[str | None, Mapping[str, Any]]],
    refused: Sequence[Mapping[str, Any]],
    shown: Mapping[str, Any],
    *,
    records: bool,
) -> Answer:
    """(asked space, body) of each; `records` when the job still has to say what became of each record."""

    def commit(unit: Unit) -> tuple[Answer, UUID]:
        start.fence(unit)
        gate.same_policy(unit, start.principal.settings)
        audit_refused(unit, refused, call.correlation_id)
        began = {str(space_id): n for space_id, n in start.principal.generations.items()}
        request = {"shown": dict(shown), "generations": began, "records": records}
        job_id = jobs.create(unit, "import", call.credential, request, call.correlation_id, len(waiting))
        staged = [(writable_space(unit, asked), body) for asked, body in waiting]
        into = {space_id for space_id, _ in staged}
        memories.lock(unit, "space", [space_id.bytes for space_id in into], shared=True)
        spaces.unchanged(unit, start.principal, into)
        jobs.stage(unit, job_id, staged)
        unit.audit(
            "import_staged",
            format_id("job", job_id),
            items=len(waiting),
            correlation_id=call.correlation_id,
        )
        return accepted(unit, start, call, job_id, shown), job_id

    answer, job_id = services.database.write(call.credential, commit)
    services.start_job(start.principal.tenant_id, job_id)
    return answer
