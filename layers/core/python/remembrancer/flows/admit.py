"""Admission: the one way a memory comes to be on the lifecycle paths, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain.conflict import Conflict, Neighbour, Statement, find_conflict
from remembrancer.domain.digests import dedup_key
from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import NewMemory, Passages, Place, origin_of
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import IngestRequest, ProposalRequest, RelationIn
from remembrancer.domain.scoring import Confidence, confidence
from remembrancer.domain.triples import Triple
from remembrancer.domain.values import canonical_value
from remembrancer.store import centroids, conflicts, graph, memories, search
from remembrancer.store.database import Row, Unit

NEIGHBOURS = 10
"""How many of the nearest live memories a candidate is compared with."""
DEFAULT_DOMAIN = centroids.UNROUTED


@dataclass(frozen=True)
class Candidate:
    """A screened and embedded text on its way in."""

    request: IngestRequest | ProposalRequest
    passages: Passages
    report: dict[str, Any]
    pii: bool
    held: bool
    overridden: bool
    space_id: UUID
    owner_id: UUID
    admitted_by: Literal["proposal", "ingest"]
    approved_by: UUID | None = None
    proposal_id: UUID | None = None
    place: Place | None = None
    claimed: Mapping[str, Any] | None = None
    part_of_source: bool = False
    """A part of a source that is imported again and again: its text is the same in every revision."""
    exclusive: bool = False
    """The caller holds the space alone, so that nothing finer is locked: thousands of locks would not fit."""


@dataclass(frozen=True)
class Target:
    """The memory that a candidate takes the place of, as the decision named it."""

    memory_id: UUID
    version: int


@dataclass(frozen=True)
class Admitted:
    memory_id: UUID
    occurrence_id: UUID
    duplicate: bool
    held: bool
    conflict: Conflict | None
    confidence: Confidence | None
    relationship_ids: list[UUID]


def admit(
    unit: Unit, candidate: Candidate, correlation_id: str, *, supersedes: Target | None = None
) -> Admitted:
    """Duplicate, conflict, memory, graph, supersession; in the order of the locks.

    Raises Problem not_found, stale_target, invalid_target for the supersession's target.
    """
    request = candidate.request
    near = neighbours(unit, candidate.space_id, candidate.passages)
    memories.lock(unit, "space", [candidate.space_id.bytes], shared=True)
    target = None if supersedes is None else _lock_target(unit, supersedes, candidate.space_id)
    valid_from = request.valid_from
    if target is not None and valid_from is None:
        valid_from = unit.now
    if valid_from is not None and request.valid_to is not None and valid_from >= request.valid_to:
        raise Problem("invalid_input", [FieldError("/valid_to", "window", "is over before the succession")])
    key = dedup_key(
        space_id=candidate.space_id,
        content=request.content,
        title=request.title,
        kind=request.kind,
        domain=request.domain or DEFAULT_DOMAIN,
        valid_from=request.valid_from,
        valid_to=request.valid_to,
        source_uri=request.source_uri,
        revision=None if candidate.part_of_source else request.revision,
    )
    if not candidate.exclusive:
        memories.lock(unit, "content", [key])
    duplicate = memories.find_duplicate(unit, key)
    if duplicate is not None and duplicate["held"] and candidate.approved_by is not None:
        duplicate = None  # what a person admits is retrievable, whatever was held before it
    if duplicate is not None:
        return _reuse(unit, candidate, duplicate, target, correlation_id)
    conflict = conflict_with(unit, candidate.space_id, request, near, ignore=target)
    sure = confidence(request.source, conflict is not None, request.assertion_kind)
    memory_id = unit.new_id()
    occurrence_id = memories.insert(
        unit,
        NewMemory(
            memory_id=memory_id,
            space_id=candidate.space_id,
            owner_id=candidate.owner_id,
            domain=_domain(unit, candidate),
            kind=request.kind,
            title=request.title,
            content=request.content,
            author=request.author,
            origin=origin_of(request.source),
            source=request.source,
            assertion_kind=request.assertion_kind,
            admitted_by=candidate.admitted_by,
            approved_by=candidate.approved_by,
            proposal_id=candidate.proposal_id,
            data_subjects=tuple(request.data_subjects),
            observed_at=request.observed_at,
            valid_from=valid_from,
            valid_to=request.valid_to,
            expires_at=request.expires_at,
            source_uri=request.source_uri,
            revision=request.revision,
            pii=candidate.pii,
            screen=candidate.report,
            screen_overridden=candidate.overridden,
            confidence=sure.value,
            confidence_parts=sure.to_dict(),
            dedup_key=key,
            passages=candidate.passages,
            held=candidate.held,
            entities=tuple(request.entities),
            relations=tuple(request.relations),
            place=candidate.place,
            claimed=candidate.claimed,
        ),
        correlation_id,
    )
    relationship_ids: list[UUID] = []
    if not candidate.held:
        by = _supported(candidate, memory_id, occurrence_id)
        relationship_ids = graph.upsert(unit, by, request.entities, request.relations)
    if target is not None:
        assert valid_from is not None
        memories.succeed(unit, target, memory_id, valid_from)
    if conflict is not None:
        conflicts.open_conflict(
            unit, candidate.space_id, memory_id, conflict.memory_id, conflict.reason, conflict.explanation
        )
    return Admitted(memory_id, occurrence_id, False, candidate.held, conflict, sure, relationship_ids)


def _domain(unit: Unit, candidate: Candidate) -> str:
    """The forced domain, else that of the nearest centroid, else none in particular.

    Which text is a duplicate does not depend on it: centroids move, and the same text sent again is the same.
    """
    forced = candidate.request.domain
    if forced is not None:
        return forced
    at_least = unit.principal.settings.route_at
    return centroids.nearest(unit, candidate.space_id, candidate.passages, at_least) or DEFAULT_DOMAIN


def _supported(candidate: Candidate, memory_id: UUID, occurrence_id: UUID) -> graph.Supported:
    return graph.Supported(
        candidate.space_id, candidate.owner_id, memory_id, occurrence_id, exclusive=candidate.exclusive
    )


def neighbours(unit: Unit, space_id: UUID, passages: Passages) -> list[Row]:
    return search.neighbours(unit, space_id, passages.vectors, passages.contract, NEIGHBOURS)


def conflict_with(
    unit: Unit,
    space_id: UUID,
    request: IngestRequest | ProposalRequest,
    near: Sequence[Row],
    *,
    ignore: Row | None = None,
) -> Conflict | None:
    """The live memory that the candidate contradicts, among its neighbours; never the one it supersedes."""
    rows = [row for row in near if ignore is None or row["memory_id"] != ignore["memory_id"]]
    if not rows:
        return None
    relations = graph.supported_by(unit, [row["memory_id"] for row in rows])
    candidates = [
        Neighbour(
            memory_id=row["memory_id"],
            version=row["version"],
            statement=Statement(
                row["content"],
                tuple(_stored_triple(edge) for edge in relations.get(row["memory_id"], [])),
                row["valid_from"],
                row["valid_to"],
            ),
            cosine=row["cosine"],
        )
        for row in rows
    ]
    statement = Statement(
        request.content, tuple(map(_sent_triple, request.relations)), request.valid_from, request.valid_to
    )
    return find_conflict(statement, candidates, graph.single_valued(unit, space_id))


def conflict_summary(conflict: Conflict | None) -> dict[str, Any] | None:
    """Which memory and why; its text is for reviewers, who read it in the queue."""
    if conflict is None:
        return None
    return {
        "memory_id": format_id("mem", conflict.memory_id),
        "version": conflict.version,
        "reason": conflict.reason,
    }


def _sent_triple(relation: RelationIn) -> Triple:
    value = relation.value
    target = relation.object
    if value is not None:
        target = canonical_value(value.type, value.value)
    assert target is not None
    return Triple(
        relation.subject,
        relation.predicate,
        target,
        relation.polarity,
        relation.valid_from,
        relation.valid_to,
    )


def _stored_triple(row: Row) -> Triple:
    target = row["object"] if row["object"] is not None else row["value_canonical"]
    return Triple(
        row["subject"], row["predicate_key"], target, row["polarity"], row["valid_from"], row["valid_to"]
    )


def _lock_target(unit: Unit, supersedes: Target, space_id: UUID) -> Row:
    memories.lock(unit, "target", [supersedes.memory_id.bytes])
    row = memories.get(unit, supersedes.memory_id)
    if row is None or row["space_id"] != space_id:
        raise Problem("not_found")
    if row["held_for"]:
        raise Problem("invalid_target", [FieldError("/supersedes", "held", "the memory is held")])
    # `superseded_by` on a current version: the closed past of a memory that something has succeeded already.
    succeeded = row["superseded_at"] is not None or row["superseded_by"] is not None
    if succeeded or row["version"] != supersedes.version:
        raise Problem("stale_target")
    return row


def _reuse(
    unit: Unit, candidate: Candidate, duplicate: Row, target: Row | None, correlation_id: str
) -> Admitted:
    """The text is known: one more occurrence, and its relations still go through the upsert."""
    memory_id = duplicate["memory_id"]
    if target is not None:
        # Either it would supersede itself, or a memory older than the decision would take the place.
        raise Problem("invalid_target", [FieldError("/supersedes", "duplicate", "the text is a live memory")])
    request = candidate.request
    occurrence_id = memories.add_occurrence(
        unit,
        memory_id,
        candidate.space_id,
        candidate.owner_id,
        request.source,
        correlation_id,
        revision=request.revision,
        place=candidate.place,
    )
    relationship_ids: list[UUID] = []
    if not duplicate["held"] and not candidate.held:
        by = _supported(candidate, memory_id, occurrence_id)
        relationship_ids = graph.upsert(unit, by, request.entities, request.relations)
    return Admitted(memory_id, occurrence_id, True, duplicate["held"], None, None, relationship_ids)
