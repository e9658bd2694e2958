"""The terminal result of a committed attempt: one entry an item and one a proposal, in the order of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from remembrancer.domain.digests import content_sha
from remembrancer.domain.ids import format_id
from remembrancer.domain.remember_facts import Contradiction, Fact
from remembrancer.domain.remember_plan import EdgePlan, NotStored, Plan
from remembrancer.domain.remember_requests import CONTRACT_VERSION, RememberRequest
from remembrancer.domain.time_rules import Window
from remembrancer.flows import render
from remembrancer.flows.instants import instant
from remembrancer.store import remember_read
from remembrancer.store.database import Unit
from remembrancer.store.remember_write import Submission

Opened = tuple[UUID, Contradiction]
"""A conflict and what it is about."""


@dataclass(frozen=True)
class Told:
    """What a commit did. `reused` says of each item that is no new memory whether its bytes are the memory's own;
    `facts` are those of the plan's edges, in their order; `predicates` gives (kind, cardinality) by key."""

    attempt_id: UUID
    correlation_id: str
    request: RememberRequest
    plan: Plan
    submissions: Mapping[int, Submission]
    reused: Mapping[int, bool]
    superseded: Mapping[int, Sequence[UUID]]
    facts: Sequence[Fact]
    predicates: Mapping[str, tuple[str, str]]
    opened: Sequence[Opened]


def result(unit: Unit, space_id: UUID, told: Told) -> dict[str, Any]:
    """JSON-ready. Names are shown as this principal may see them."""
    return {
        "contract_version": CONTRACT_VERSION,
        "attempt_id": format_id("att", told.attempt_id),
        "state": "completed",
        "evidence": [_item(told, index) for index in range(len(told.request.evidence))],
        "relationships": _relationships(unit, space_id, told),
        "errors": [],
        "warnings": _warnings(told),
        "correlation_id": told.correlation_id,
    }


def _item(told: Told, index: int) -> dict[str, Any]:
    submission = told.submissions[index]
    reason = None
    if index in told.reused:
        reason = "exact_duplicate" if told.reused[index] else "semantic_duplicate"
    return {
        "index": index,
        "disposition": "stored" if reason is None else "reused",
        "evidence_id": format_id("mem", submission.memory_id),
        "occurrence_id": format_id("occ", submission.occurrence_id),
        "content_hash": content_sha(submission.evidence.content).hex(),
        "superseded_ids": [format_id("mem", memory_id) for memory_id in sorted(told.superseded[index])],
        "reason": reason,
    }


def _relationships(unit: Unit, space_id: UUID, told: Told) -> list[dict[str, Any]]:
    entities = _entities(unit, space_id, told.facts)
    splits: dict[int, list[dict[str, Any]]] = {}
    for edge, fact in zip(told.plan.edges, told.facts, strict=True):
        splits.setdefault(edge.proposal, []).append(_split(told, edge, fact, entities))
    results: list[dict[str, Any]] = []
    for index, sent in enumerate(told.request.relationships):
        missing = told.plan.not_stored.get(index)
        entry: dict[str, Any] = {
            "ref": sent.ref,
            "disposition": "stored" if missing is None else "not_stored",
            "reason": None if missing is None else missing.reason,
            "splits": splits.get(index, []),
        }
        if missing is not None and missing.candidates:
            entry["candidates"] = _candidates(unit, missing)
        results.append(entry)
    return results


def _split(told: Told, edge: EdgePlan, fact: Fact, entities: Mapping[UUID, dict[str, Any]]) -> dict[str, Any]:
    said = fact.statement
    window = fact.window or fact.kept or Window()
    kind, cardinality = told.predicates[edge.predicate]
    value = None
    if said.value is not None:
        value = {
            "type": said.value.type,
            "value": said.value.canonical,
            "unit": said.value.unit,
            "original": fact.original,
        }
    return {
        "relationship_id": format_id("rel", fact.relationship_id),
        "version": fact.final_version,
        "subject": entities[said.subject_id],
        "predicate": {"key": edge.predicate, "kind": kind, "cardinality": cardinality},
        "object": {
            "entity": None if said.object_id is None else entities[said.object_id],
            "value": value,
        },
        "polarity": said.polarity,
        "valid_from": instant(window.start),
        "valid_to": instant(window.end),
        "supports": [
            {
                "evidence_index": span.item,
                "evidence_id": format_id("mem", told.submissions[span.item].memory_id),
                "occurrence_id": format_id("occ", told.submissions[span.item].occurrence_id),
                "start": span.start,
                "end": span.end,
            }
            for span in edge.supports
        ],
    }


def _entities(unit: Unit, space_id: UUID, facts: Sequence[Fact]) -> dict[UUID, dict[str, Any]]:
    said = [fact.statement for fact in facts]
    ids = {one for s in said for one in (s.subject_id, s.object_id) if one is not None}
    return {
        entity_id: _entity(unit, entity_id, row["name"], row["kind"])
        for entity_id, row in remember_read.entities(unit, space_id, ids).items()
    }


def _candidates(unit: Unit, missing: NotStored) -> list[dict[str, Any]]:
    """Whom the caller may have meant: to be named by id."""
    return [
        {
            **_entity(unit, candidate.entity_id, candidate.name, candidate.kind),
            "aliases": render.clean(list(candidate.aliases), reveal_pii=unit.principal.sees_pii),
        }
        for candidate in missing.candidates
    ]


def _entity(unit: Unit, entity_id: UUID, name: str, kind: str) -> dict[str, Any]:
    shown = render.clean(name, reveal_pii=unit.principal.sees_pii)
    return {"entity_id": format_id("ent", entity_id), "name": shown, "kind": kind}


def _warnings(told: Told) -> list[dict[str, Any]]:
    """A conflict that was opened, at the relationship that brought it: for review, nothing was overwritten."""
    brought: dict[UUID, int] = {}
    for edge, fact in zip(told.plan.edges, told.facts, strict=True):
        brought.setdefault(fact.relationship_id, edge.proposal)
    return [
        {
            "code": "conflict",
            "pointer": f"/relationships/{brought[found.fact.relationship_id]}",
            "reason": found.reason,
            "conflict_id": format_id("con", conflict_id),
        }
        for conflict_id, found in told.opened
    ]
