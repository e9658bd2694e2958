"""The bundle of a data subject: the exact bytes of everything found of them, for machines and to read."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.dsar_page import TITLES, to_html
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Services
from remembrancer.flows.instants import instant
from remembrancer.store import erasure_work, exports, jobs, spaces, subject_data
from remembrancer.store.database import Row, Unit

PAGE = 500
MEDIA_TYPE = "application/zip"


def write_bundle(services: Services, row: Row) -> None:
    """`data.json` and `readable.html` in one archive; the object first, then its place in the job, audited.

    Raises Problem configuration_invalid without an object store, commit_conflict when something was erased
    meanwhile: what was read may be gone.
    """
    objects = services.objects
    if objects is None:
        raise Problem("configuration_invalid")
    credential, job_id = jobs.credential_of(row), row["job_id"]
    document, generations = services.database.read(credential, lambda unit: _read(unit, row))
    body = _archive(document)
    key = f"bundles/{row['tenant_id']}/{job_id}.zip"
    records = sum(len(document[name]) for name in TITLES)
    bundle = {"records": records, "sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    objects.put(key, body, MEDIA_TYPE)

    def keep(unit: Unit) -> bool:
        authorize(unit.principal, "admin")
        current = jobs.lock(unit, job_id)
        whole = current is not None and spaces.generations(unit) == generations
        if whole:
            erasure_work.keep_bundle(unit, job_id, key, {**(row["result"] or {}), "bundle": bundle})
        unit.audit(
            "dsar_exported" if whole else "dsar_export_given_up",
            document["dsar_id"],
            **bundle,
            correlation_id=row["correlation_id"],
        )
        return whole

    if not services.database.write(credential, keep):
        objects.delete([key])
        raise Problem("commit_conflict")


def _archive(document: Mapping[str, Any]) -> bytes:
    """The same bytes for the same document."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("data.json", canonical_json(document)), ("readable.html", to_html(document))):
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _read(unit: Unit, row: Row) -> tuple[dict[str, Any], dict[UUID, int]]:
    authorize(unit.principal, "admin")
    job_id, about = row["job_id"], row["request"]
    generations = spaces.generations(unit)
    memories: list[dict[str, Any]] = []
    behind: set[UUID] = set()
    for page in _pages(unit, job_id, "memory"):
        memories += _memories(unit, page)
        behind |= {*subject_data.proposals_behind(unit, page)}
    listed = sorted(behind | {one for page in _pages(unit, job_id, "proposal") for one in page})
    document = {
        "format": "remembrancer-dsar-1",
        "dsar_id": about["dsar_id"],
        "jurisdiction": about["jurisdiction"],
        "received_at": about["received_at"],
        "made_at": instant(unit.now),
        "found_by": about["found_by"],
        "retention_days": unit.principal.settings.retention.model_dump(),
        "memories": memories,
        "submissions": [
            _submission(one)
            for page in _pages(unit, job_id, "occurrence")
            for one in subject_data.submissions(unit, page)
        ],
        "proposals": [_proposal(one) for one in subject_data.proposals(unit, listed)],
        "attempts": [one for page in _pages(unit, job_id, "attempt") for one in _attempts(unit, page)],
        "staged": [
            {"job_id": format_id("job", one), "note": "under way: ask again when it is done"}
            for page in _pages(unit, job_id, "job")
            for one in page
        ],
    }
    return document, generations


def _pages(unit: Unit, job_id: UUID, kind: str) -> Iterator[list[UUID]]:
    after = None
    while page := erasure_work.all_items(unit, job_id, kind, after, PAGE):
        yield page
        after = page[-1]


def _memories(unit: Unit, memory_ids: Sequence[UUID]) -> list[dict[str, Any]]:
    versions = subject_data.versions(unit, memory_ids)
    occurrences = subject_data.occurrences(unit, memory_ids)
    graph = exports.graph_of(unit, memory_ids)
    conflicts = subject_data.conflicts(unit, memory_ids)
    return [
        {
            "memory_id": format_id("mem", row["memory_id"]),
            "text": row["content"],
            **{
                name: row[name]
                for name in (
                    "title", "author", "data_subjects", "kind", "domain", "space", "origin", "source",
                    "assertion_kind", "admitted_by", "source_uri", "revision", "heading_path", "pii", "held_out",
                    "claimed",
                )
            },
            "owner": format_id("prin", row["owner_id"]),
            "approved_by": _maybe(row["approved_by"], lambda one: format_id("prin", one)),
            "observed_at": instant(row["observed_at"]),
            "created_at": instant(row["created_at"]),
            "versions": [_version(one) for one in versions.get(row["memory_id"], [])],
            "submitted": [_occurrence(one) for one in occurrences.get(row["memory_id"], [])],
            "entities": [
                {"name": one["name"], "kind": one["kind"], "aliases": one["aliases"]}
                for one in graph.entities.get(row["memory_id"], [])
            ],
            "relations": [_relation(one) for one in graph.edges.get(row["memory_id"], [])],
            "relations_when_released": row["held_graph"],
            "conflicts": [
                _dated(one, "opened_at", "closed_at") for one in conflicts.get(row["memory_id"], [])
            ],
        }
        for row in subject_data.memories(unit, memory_ids)
    ]  # fmt: skip


def _version(row: Row) -> dict[str, Any]:
    times = ("valid_from", "valid_to", "created_at", "superseded_at", "expires_at")
    return {"version": row["version"], **{name: instant(row[name]) for name in times}}


def _occurrence(row: Row) -> dict[str, Any]:
    return {
        "text": row["content"],
        "by": format_id("prin", row["submitted_by"]),
        "at": instant(row["submitted_at"]),
        "source": row["source"],
        "named_source": row["named_source"],
        "labels": row["labels"],
        "metadata": row["metadata"],
        **{
            name: row[name] for name in ("source_type", "source_group", "authority", "source_key", "revision")
        },
        "observed_at": instant(row["observed_at"]),
        "data_subjects": row["data_subjects"],
    }


def _submission(row: Row) -> dict[str, Any]:
    return {"memory_id": format_id("mem", row["memory_id"]), **_occurrence(row)}


def _relation(row: Row) -> dict[str, Any]:
    return {
        "subject": row["subject"],
        "predicate": row["predicate_key"],
        "object": row["object"],
        "value": row["value_original"],
        "unit": row["value_unit"],
        "polarity": row["polarity"],
        "valid_from": instant(row["valid_from"]),
        "valid_to": instant(row["valid_to"]),
    }


def _proposal(row: Row) -> dict[str, Any]:
    body = dict(row["body"])
    return {
        "proposal_id": format_id("prop", row["proposal_id"]),
        "text": body.pop("content", None),
        **body,
        "source_prompt": row["source_prompt"],
        "status": row["status"],
        "decision": row["decision"],
        "submitted_by": format_id("prin", row["submitted_by"]),
        "created_at": instant(row["created_at"]),
        "decided_at": instant(row["decided_at"]),
        "memory_id": _maybe(row["memory_id"], lambda one: format_id("mem", one)),
    }


def _attempts(unit: Unit, attempt_ids: Sequence[UUID]) -> list[dict[str, Any]]:
    exchanges = subject_data.exchanges(unit, attempt_ids)
    checkpoints = subject_data.checkpoints(unit, attempt_ids)
    return [
        {
            "attempt_id": format_id("att", row["attempt_id"]),
            "state": row["state"],
            "entered_at": instant(row["entered_at"]),
            "finished_at": instant(row["finished_at"]),
            **{name: row[name] for name in ("request", "context", "assessment", "result")},
            "exchanges": [_dated(one, "at", "expires_at") for one in exchanges.get(row["attempt_id"], [])],
            "checkpoints": [
                _dated(one, "created_at", "expires_at") for one in checkpoints.get(row["attempt_id"], [])
            ],
        }
        for row in subject_data.attempts(unit, attempt_ids)
    ]


def _dated(row: Row, *times: str) -> dict[str, Any]:
    return {**row, **{name: instant(row[name]) for name in times}}


def _maybe(value: UUID | None, show: Callable[[UUID], str]) -> str | None:
    return None if value is None else show(value)
