"""Markdown import: screened whole, cut at headings, and with a source and revision a diff against the last one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.domain.import_requests import MarkdownRequest
from remembrancer.domain.markdown import MarkdownChunk, chunk_markdown
from remembrancer.domain.pii import scan_pii
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import MAX_RECORDS, IngestRequest
from remembrancer.domain.screen import Verdict
from remembrancer.flows import gate
from remembrancer.flows.batch import Item, Part, writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.ingest import screened
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.flows.stage import write_parts
from remembrancer.store.database import Unit

MAX_TITLE = 500


def import_markdown(services: Services, call: Call, request: MarkdownRequest) -> Answer:
    """201 when a part is new, 200 when none is, 202 with a job for more than MAX_PASSAGES passages.

    A document is screened whole before it is cut: reject refuses it, quarantine holds all its parts.
    """

    def space_of(unit: Unit) -> UUID:
        return writable_space(unit, request.target_space)

    with keyed(services, call, request.model_dump(mode="json"), space_of) as start:
        if start.replay is not None:
            return start.replay
        examined = gate.examine(services, request, start.principal.settings)
        if examined.verdict is Verdict.REJECT:
            raise gate.rejected(services, call, examined)
        return write_parts(services, call, start, parts_of(examined), screened(examined))


def parts_of(examined: gate.Examined[MarkdownRequest]) -> list[Item]:
    """The chunks of the cleaned text. Raises Problem invalid_input when there is nothing but blank lines,
    input_budget_exceeded for more than MAX_RECORDS parts."""
    request = examined.request
    shared = [text for text in (request.title, request.author, request.source_uri) if text]
    shared += [*request.data_subjects, *([request.revision] if request.revision else [])]
    flagged = any(map(scan_pii, shared))
    items = []
    chunks = chunk_markdown(request.content)
    if len(chunks) > MAX_RECORDS:
        raise Problem("input_budget_exceeded")
    for chunk in chunks:
        title = _title(request.title, chunk.headings)
        items.append(
            Item(
                index=chunk.ordinal,
                request=_part(request, chunk, title),
                report=examined.report,
                pii=examined.pii and (flagged or bool(scan_pii(chunk.text)) or bool(scan_pii(title or ""))),
                held=examined.verdict is Verdict.QUARANTINE,
                part=Part(
                    chunk.ordinal,
                    " > ".join(chunk.headings) or None,
                    chunk.first_line,
                    chunk.last_line,
                ),
            )
        )
    if not items:
        raise Problem("invalid_input", [FieldError("/content", "blank", "has no line to keep")])
    return items


def _part(request: MarkdownRequest, chunk: MarkdownChunk, title: str | None) -> IngestRequest:
    return IngestRequest(
        content=chunk.text,
        title=title,
        kind=request.kind,
        domain=request.domain,
        author=request.author,
        source="markdown",
        observed_at=request.observed_at,
        valid_from=request.valid_from,
        valid_to=request.valid_to,
        expires_at=request.expires_at,
        data_subjects=request.data_subjects,
        target_space=request.target_space,
        source_uri=request.source_uri,
        revision=request.revision,
    )


def _title(title: str | None, headings: Sequence[str]) -> str | None:
    """The breadcrumb, its near end kept when it is too long: equal texts under other headings are others."""
    path = " > ".join([*([title] if title else []), *headings])
    return path[-MAX_TITLE:].strip() or None
