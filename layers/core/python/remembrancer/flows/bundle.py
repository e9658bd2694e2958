"""The bundle of an export: what its reader may see, as UMP records or JSON lines, written by the job's worker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.ids import format_id
from remembrancer.domain.import_requests import ExportRequest
from remembrancer.domain.principal import Principal, authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import MAX_ALIASES, EntityIn, IngestRequest, RelationIn, ValueIn
from remembrancer.domain.tenant_settings import Space
from remembrancer.domain.ump import MAX_RELATED, to_ump, ump_id
from remembrancer.domain.values import canonical_value
from remembrancer.flows import render
from remembrancer.flows.context import Services
from remembrancer.flows.export import asked_spaces
from remembrancer.store import exports, jobs
from remembrancer.store.database import Row, Unit
from remembrancer.store.exports import Graph

PAGE = 500
MEDIA_TYPE = "application/x-ndjson"


def write_bundle(services: Services, row: Row) -> None:
    """One line a memory (more for one with a large graph), as this reader may see it, but for those that came with a
    consent that forbids it (counted as `withheld`); the object first, then the job's end, audited.

    Raises Problem configuration_invalid without an object store.
    """
    objects = services.objects
    if objects is None:
        raise Problem("configuration_invalid")
    request = ExportRequest.model_validate(row["request"])
    credential = jobs.credential_of(row)
    lines, held = services.database.read(credential, lambda unit: _lines(unit, request))
    key = f"bundles/{row['tenant_id']}/{row['job_id']}.jsonl"
    objects.put(key, "".join(f"{line}\n" for line in lines).encode(), MEDIA_TYPE)

    def finish(unit: Unit) -> bool:
        found = jobs.lock(unit, row["job_id"])
        if found is not None:
            jobs.finish(unit, row["job_id"], result=held, object_key=key)
        unit.audit(
            "exported" if found is not None else "export_given_up",
            format_id("job", row["job_id"]),
            **held,
            correlation_id=row["correlation_id"],
        )
        return found is not None

    if not services.database.write(credential, finish):
        objects.delete([key])  # an erasure came between: the bundle may hold what is gone


def _lines(unit: Unit, request: ExportRequest) -> tuple[list[str], dict[str, Any]]:
    """And what the bundle holds: {records, withheld, spaces, pii}."""
    principal = unit.principal
    authorize(principal, "review")
    spaces = asked_spaces(principal, request)
    for space_id in spaces:
        authorize(principal, "read", space=space_id)
    lines: list[str] = []
    withheld = 0
    after = None
    while True:
        rows = exports.page(unit, spaces, request.domains, request.kinds, after, PAGE)
        graph = exports.graph_of(unit, [row["memory_id"] for row in rows])
        for row in rows:
            if _is_kept_here(row):
                withheld += 1
                continue
            render.reveals(unit, "mem", row)
            lines += map(canonical_json, _records(row, graph, principal, request.format))
        if len(rows) < PAGE:
            return lines, {
                "records": len(lines),
                "withheld": withheld,
                "spaces": ["private" if one == principal.private_space else "team_shared" for one in spaces],
                "pii": principal.sees_pii,
            }
        after = rows[-1]["memory_id"]


def _is_kept_here(row: Row) -> bool:
    """Whether the consent that came with it forbids to pass it on (UMP, section 2.7)."""
    consent = (row["claimed"] or {}).get("consent")
    return isinstance(consent, dict) and consent.get("exportable") is False


def _records(row: Row, graph: Graph, principal: Principal, form: str) -> Iterator[dict[str, Any]]:
    """Exact bytes for a reader with the pii capability; what recall would show for any other."""
    if form == "jsonl":
        shown = render.memory(row, principal.team_space, reveal_pii=principal.sees_pii)
        exact = {name: row[name] for name in ("title", "author", "data_subjects")}
        yield {**shown, "text": row["content"], **exact} if principal.sees_pii else shown
        return
    private = row["space_id"] == principal.private_space
    claimed = row["claimed"] or {}
    created = claimed.get("created")
    for request in _requests(row, graph, "private" if private else "team_shared"):
        record = to_ump(
            request, row["created_at"] if created is None else datetime.fromisoformat(created), claimed
        )
        if principal.sees_pii:
            yield record
            continue
        # The id is a digest of the text: it is made anew from what this reader may see.
        masked: dict[str, Any] = render.clean(record, reveal_pii=False)
        yield {**masked, "id": ump_id(row["domain"], masked["body"]["text"])}


def _requests(row: Row, graph: Graph, space: Space) -> Iterator[IngestRequest]:
    """The memory as the requests that would store it again: as many as its graph takes, since the ends of relations
    are entities too, and each sending of a text may have brought relations of its own."""
    entities = [part for entity in graph.entities.get(row["memory_id"], []) for part in _entities(entity)]
    relations = [_relation(edge) for edge in graph.edges.get(row["memory_id"], [])]
    for start in range(0, max(1, len(entities), len(relations)), MAX_RELATED):
        portion = slice(start, start + MAX_RELATED)
        yield _request(row, entities[portion], relations[portion], space)


def _request(row: Row, entities: list[EntityIn], relations: list[RelationIn], space: Space) -> IngestRequest:
    return IngestRequest(
        content=row["content"],
        title=row["title"],
        kind=row["kind"],
        domain=row["domain"],
        author=row["author"],
        assertion_kind=row["assertion_kind"],
        observed_at=row["observed_at"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        expires_at=row["expires_at"],
        data_subjects=row["data_subjects"],
        source_uri=row["source_uri"],
        revision=row["revision"],
        entities=entities,
        relations=relations,
        target_space=space,
    )


def _entities(entity: Row) -> Iterator[EntityIn]:
    """The entity as often as its aliases need: merged ones have more than one may be sent with."""
    aliases = entity["aliases"]
    for start in range(0, max(1, len(aliases)), MAX_ALIASES):
        yield EntityIn(**{**entity, "aliases": aliases[start : start + MAX_ALIASES]})


def _relation(edge: Row) -> RelationIn:
    value = None
    if edge["value_type"] is not None:
        value = ValueIn(type=edge["value_type"], value=_written(edge), unit=edge["value_unit"])
    return RelationIn(
        subject=edge["subject"],
        subject_kind=edge["subject_kind"],
        predicate=edge["predicate_key"],
        object=edge["object"],
        object_kind=edge["object_kind"],
        value=value,
        polarity=edge["polarity"],
        valid_from=edge["valid_from"],
        valid_to=edge["valid_to"],
    )


def _written(edge: Row) -> str:
    """The value as it was written, where that says it: a boolean was no text, a number may have had another unit."""
    original, canonical = str(edge["value_original"]), str(edge["value_canonical"])
    try:
        same = canonical_value(edge["value_type"], original) == canonical
    except ValueError:
        same = False
    return original if same else canonical
