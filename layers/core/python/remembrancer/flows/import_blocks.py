"""Memory blocks: the files that agents keep, each `## [ … ]` entry judged on its own."""

from __future__ import annotations

from uuid import UUID

from remembrancer.domain.import_requests import BlocksRequest
from remembrancer.domain.memory_blocks import MemoryBlock, parse_memory_blocks
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import MAX_RECORDS, IngestRequest
from remembrancer.flows.batch import writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.flows.records import Judged, Record
from remembrancer.flows.stage import judge_and_write
from remembrancer.store.database import Unit

MAX_TITLE = 500


def import_blocks(services: Services, call: Call, request: BlocksRequest) -> Answer:
    """201, or 200 when nothing is new; `dropped` counts what was left out, by reason, `refused` says why.

    Reasoning is stripped and the tenant's skip prefixes are dropped before anything is looked at.
    Raises Problem input_rejected or invalid_input when no entry is left, input_budget_exceeded above MAX_RECORDS.
    """

    def space_of(unit: Unit) -> UUID:
        return writable_space(unit, request.target_space)

    with keyed(services, call, request.model_dump(mode="json"), space_of) as start:
        if start.replay is not None:
            return start.replay
        settings = start.principal.settings
        blocks = parse_memory_blocks(request.content, settings.skip_prefixes)
        if not blocks.entries:
            raise Problem("invalid_input", [FieldError("/content", "no_entry", "has no `## [ … ]` entry")])
        records = [Record(index, _request(request, block)) for index, block in enumerate(blocks.entries)]
        if len(records) > MAX_RECORDS:
            raise Problem("input_budget_exceeded")
        shown = {"dropped": blocks.dropped}
        return judge_and_write(services, call, start, records, Judged(), "/content", shown)


def _request(request: BlocksRequest, block: MemoryBlock) -> IngestRequest:
    return IngestRequest(
        content=block.text,
        title=block.title[:MAX_TITLE].strip() or None,
        kind=request.kind,
        domain=request.domain,
        author=request.author,
        source="memory",
        observed_at=request.observed_at,
        expires_at=request.expires_at,
        data_subjects=request.data_subjects,
        target_space=request.target_space,
    )
