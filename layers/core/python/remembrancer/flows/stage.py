"""At once, or staged invisibly and answered with the place where its progress is: what is too long for one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.ports import Embedder
from remembrancer.flows import gate
from remembrancer.flows.batch import Item, outcome, publish, text_of, writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.index import MAX_PASSAGES, Text, cut_text, embedded
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.records import Judged, Record, audit_refused, by_index, judge, redact
from remembrancer.flows.staged import unjudged, unread
from remembrancer.store import jobs, memories, spaces
from remembrancer.store.database import Unit

LONGEST_PASSAGE = 1_000
"""Bytes: a text of more than MAX_PASSAGES times as many need not be cut to know that it does not fit."""


def write_parts(
    services: Services, call: Call, start: Keyed, items: Sequence[Item], shown: Mapping[str, Any]
) -> Answer:
    """The parts of a judged document: at once up to MAX_PASSAGES passages (201, or 200 when nothing is new), else as
    a job (202). `shown` is what the caller is told of the screen, now and by the job."""
    if fits(services.embedder, [item.text for item in items]):
        return _write(services, call, start, Judged(list(items)), shown)
    return stage_import(services, call, start, items, shown)


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
    if fits(services.embedder, [text_of(record.request) for record in records]):
        judge(services, judged, records, start.principal.settings, pointer)
        return _write(services, call, start, judged, {**judged.shown(), **more})
    clean = redact(judged, records, start.principal.settings, pointer)
    if not clean:
        return _write(services, call, start, judged, {})
    waiting = [(record.request.target_space, unjudged(record, pointer)) for record in clean]
    shown = {"refused": by_index(judged.refused), "redactions": by_index(judged.redactions), **more}
    return _stage(services, call, start, waiting, judged.refused, shown, records=True)


def stage_import(
    services: Services, call: Call, start: Keyed, items: Sequence[Item], shown: Mapping[str, Any]
) -> Answer:
    """202 with the job's location, for items that passed the gate."""
    waiting = [(item.request.target_space, unread(item)) for item in items]
    return _stage(services, call, start, waiting, (), shown, records=False)


def fits(embedder: Embedder, texts: Sequence[Text]) -> bool:
    """Whether these have no more than MAX_PASSAGES passages; no more is cut than it takes to know."""
    if len(texts) > MAX_PASSAGES or _bytes(texts) > MAX_PASSAGES * LONGEST_PASSAGE:
        return False
    left = MAX_PASSAGES
    for text in texts:
        left -= len(cut_text(embedder, text))
        if left < 0:
            return False
    return True


def _bytes(texts: Iterable[Text]) -> int:
    return sum(len(text.content.encode()) for text in texts)


def _write(services: Services, call: Call, start: Keyed, judged: Judged, shown: Mapping[str, Any]) -> Answer:
    if not judged.items:
        services.database.write(
            call.credential, lambda unit: audit_refused(unit, judged.refused, call.correlation_id)
        )
        raise judged.nothing_left()
    items = [item.enriched(services.clock()) for item in judged.items]
    passages = embedded(services.embedder, [cut_text(services.embedder, item.text) for item in items])

    def commit(unit: Unit) -> Answer:
        start.fence(unit)
        gate.same_policy(unit, start.principal.settings)
        audit_refused(unit, judged.refused, call.correlation_id)
        published = publish(unit, items, passages, call.correlation_id, start.principal)
        body = {**shown, **outcome(items, published), "correlation_id": call.correlation_id}
        refs = [one.memory_id for one in published.admitted]
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
