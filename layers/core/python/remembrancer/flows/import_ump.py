"""UMP records, each judged on its own: what it claims of itself is kept and decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from remembrancer.domain.import_requests import UmpRequest
from remembrancer.domain.principal import Principal, authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.ump import UmpImport, UmpRecordError, from_ump
from remembrancer.flows.batch import target_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.flows.records import Judged, Record
from remembrancer.flows.stage import judge_and_write
from remembrancer.store.database import Unit


def import_ump(services: Services, call: Call, request: UmpRequest) -> Answer:
    """201, 200 when nothing is new, 202 with a job for more than MAX_PASSAGES passages. One status a record:
    `items` are what was taken, `refused` what was not, and why.

    Raises Problem input_rejected or invalid_input when no record can be stored.
    """

    def allowed(unit: Unit) -> None:
        authorize(unit.principal, "write")

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay
        judged = Judged()
        notes: dict[int, list[str]] = {}
        records = list(_read(services, start.principal, request, judged, notes))
        shown = {"notes": [{"index": index, "notes": said} for index, said in sorted(notes.items())]}
        return judge_and_write(services, call, start, records, judged, "/records/{index}", shown)


def _read(
    services: Services,
    principal: Principal,
    request: UmpRequest,
    judged: Judged,
    notes: dict[int, list[str]],
) -> Iterator[Record]:
    now = services.clock()
    for index, record in enumerate(request.records):
        pointer = f"/records/{index}"
        try:
            read = from_ump(record, now, request.domain)
        except UmpRecordError as error:
            judged.refuse(index, "invalid", [FieldError(pointer, error.code, "is not a record we can take")])
            continue
        asked = _space(request, read)
        if not _may_write(principal, asked):
            judged.refuse(index, "forbidden", [FieldError(pointer, "forbidden", "is for a space not yours")])
            continue
        if read.notes:
            notes[index] = list(read.notes)
        claimed = {**read.claimed, "ump_id": read.ump_id}
        kept = read.request.model_copy(update={"target_space": asked})
        yield Record(index, kept, claimed, complete=read.complete)


def _space(request: UmpRequest, read: UmpImport) -> str | None:
    """The record's own visibility, unless the request keeps all private or speaks for those that say nothing."""
    if request.target_space == "private" or (read.silent and request.target_space is not None):
        return request.target_space
    return read.request.target_space


def _may_write(principal: Principal, asked: str | None) -> bool:
    try:
        authorize(principal, "write", space=target_space(principal, asked))
    except Problem:
        return False
    return True
