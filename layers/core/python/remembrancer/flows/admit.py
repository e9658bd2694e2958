"""Admission: the one way a memory comes to be on the lifecycle paths, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from remembrancer.domain.conflict import Conflict, Neighbour, Reader, Statement
from remembrancer.domain.digests import dedup_key, dedup_keys
from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import NewMemory, Passages, Place, origin_of
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import IngestRequest, ProposalRequest, RelationIn
from remembrancer.domain.scoring import Confidence, confidence
from remembrancer.domain.triples import Triple
from remembrancer.domain.units import in_base_unit
from remembrancer.domain.values import canonical_value
from remembrancer.store import centroids, conflicts, graph, memories
from remembrancer.store import near as near_store
from remembrancer.store.database import Row, Unit
from remembrancer.store.locks import lock, lock_in_order

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors

NEIGHBOURS = 10
"""How many of the nearest live memories a candidate is compared with."""
BATCH = 256
"""Passages admitted by the same statements: every two of them are compared."""
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
    """`admit_many` for one, which may take the place of a memory.

    Raises Problem not_found, stale_target, invalid_target for the supersession's target.
    """
    [admitted] = _admit(unit, [candidate], correlation_id, unit.now, supersedes)
    return admitted


def admit_many(
    unit: Unit, candidates: Sequence[Candidate], correlation_id: str, submitted_at: datetime
) -> list[Admitted]:
    """What became of each, in order, as if they came one after the other; in statements as few as for one.
    `submitted_at` is when the request was accepted, which may have waited in a job.

    Raises Problem invalid_input for a window that is empty.
    """
    admitted: list[Admitted] = []
    for batch in _batches(candidates):
        admitted += _admit(unit, batch, correlation_id, submitted_at, None)
    return admitted


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    batch: list[Candidate] = []
    size = 0
    for candidate in candidates:
        own = len(candidate.passages.texts)
        if batch and size + own > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(candidate)
        size += own
    if batch:
        yield batch


@dataclass(frozen=True)
class _Entry:
    """What a candidate turns out to be: `known` by its text, in the database or earlier in the batch."""

    candidate: Candidate
    key: bytes
    memory_id: UUID
    known: bool
    held: bool

    @property
    def brings_graph(self) -> bool:
        return not self.held and not self.candidate.held


def _admit(
    unit: Unit,
    candidates: Sequence[Candidate],
    correlation_id: str,
    submitted_at: datetime,
    supersedes: Target | None,
) -> list[Admitted]:
    """Duplicate, conflict, memory, graph, supersession; in the order of the locks."""
    near = _neighbours(unit, candidates)
    keys = [_key(candidate) for candidate in candidates]
    target = _lock(unit, candidates, keys, supersedes)
    valid_from = [_valid_from(unit, candidate, target) for candidate in candidates]
    entries = _entries(unit, candidates, keys)
    if target is not None and entries[0].known:
        # Either it would supersede itself, or a memory older than the decision would take the place.
        raise Problem("invalid_target", [FieldError("/supersedes", "duplicate", "the text is a live memory")])
    found = _conflicts(unit, entries, near, target)
    sure = [
        None
        if entry.known
        else confidence(
            entry.candidate.request.source, conflict is not None, entry.candidate.request.assertion_kind
        )
        for entry, conflict in zip(entries, found, strict=True)
    ]
    domains = _domains(unit, entries)
    fresh = [place for place, entry in enumerate(entries) if not entry.known]
    news = [_memory(entries[n], domains[n], valid_from[n], sure[n]) for n in fresh]
    again = [place for place, entry in enumerate(entries) if entry.known]
    first = memories.insert_many(unit, news, correlation_id, submitted_at)
    more = memories.add_occurrences(
        unit, [_submission(entries[n]) for n in again], correlation_id, submitted_at
    )
    occurrences = dict(zip([*fresh, *again], [*first, *more], strict=True))
    relationships = graph.upsert_many(
        unit, [_brought(entry, occurrences[place]) for place, entry in enumerate(entries)]
    )
    if target is not None:
        instant = valid_from[0]
        assert instant is not None
        memories.succeed(unit, target, entries[0].memory_id, instant)
    conflicts.open_conflicts(
        unit,
        [
            conflicts.Opened(
                entry.candidate.space_id,
                entry.memory_id,
                conflict.memory_id,
                conflict.reason,
                conflict.explanation,
            )
            for entry, conflict in zip(entries, found, strict=True)
            if conflict is not None
        ],
    )
    return [
        Admitted(
            entry.memory_id,
            occurrences[place],
            entry.known,
            entry.held,
            found[place],
            sure[place],
            relationships[place],
        )
        for place, entry in enumerate(entries)
    ]


def _lock(
    unit: Unit, candidates: Sequence[Candidate], keys: Sequence[bytes], supersedes: Target | None
) -> Row | None:
    """Spaces, the target, contents; nothing of it for candidates whose caller holds the space alone."""
    finer = [n for n, candidate in enumerate(candidates) if not candidate.exclusive]
    space_keys = {candidates[n].space_id.bytes for n in finer}
    content_keys = {key for n in finer for key in (keys[n], *_other_keys(candidates[n]))}
    if supersedes is None:
        lock_in_order(unit, [("space", space_keys, True), ("content", content_keys, False)])
        return None
    lock(unit, "space", space_keys, shared=True)
    target = _lock_target(unit, supersedes, candidates[0].space_id)
    lock(unit, "content", content_keys)
    return target


def _valid_from(unit: Unit, candidate: Candidate, target: Row | None) -> datetime | None:
    """A successor starts when it says so, else now. Raises Problem invalid_input when it is over before."""
    valid_from, valid_to = candidate.request.valid_from, candidate.request.valid_to
    if target is not None and valid_from is None:
        valid_from = unit.now
    if valid_from is not None and valid_to is not None and valid_from >= valid_to:
        raise Problem("invalid_input", [FieldError("/valid_to", "window", "is over before the succession")])
    return valid_from


def _key(candidate: Candidate) -> bytes:
    return dedup_key(
        **_saying(candidate),
        domain=candidate.request.domain or DEFAULT_DOMAIN,
        revision=None if candidate.part_of_source else candidate.request.revision,
    )


def _saying(candidate: Candidate) -> dict[str, Any]:
    request = candidate.request
    return {
        "space_id": candidate.space_id,
        "content": request.content,
        "title": request.title,
        "kind": request.kind,
        "valid_from": request.valid_from,
        "valid_to": request.valid_to,
        "source_uri": request.source_uri,
    }


def _other_keys(candidate: Candidate) -> list[bytes]:
    """Keys that the same memory may have otherwise: of a text that was sent without the domain that it was filed
    in, without the start that it got by taking another's place, or as a part of a source. A bundle names all of
    what it holds."""
    keys = dedup_keys(
        **_saying(candidate),
        domains=(candidate.request.domain or DEFAULT_DOMAIN, DEFAULT_DOMAIN),
        revision=None if candidate.part_of_source else candidate.request.revision,
    )
    return sorted(keys - {_key(candidate)})


def _stored_as(stored: Mapping[bytes, Row], candidate: Candidate, key: bytes) -> Row | None:
    """The live or held memory that the candidate repeats."""
    row = stored.get(key)
    if row is not None:
        return row
    request = candidate.request
    domain = request.domain or DEFAULT_DOMAIN
    for row in map(stored.get, _other_keys(candidate)):
        if row is None or row["domain"] != domain:
            continue
        same = candidate.part_of_source or row["revision"] == request.revision
        dated = request.valid_from is None or _window(row) == (request.valid_from, request.valid_to)
        if same and dated:
            return row
    return None


def _window(row: Row) -> tuple[datetime | None, datetime | None]:
    return row["valid_from"], row["valid_to"]


def _is_cleared(candidate: Candidate, row: Row) -> bool:
    """Whether the held row is no answer: what a person admits is retrievable, whatever was held before it; and a
    document is held whole, so a part that stood beside a bad one is free in a revision without it."""
    freed = candidate.part_of_source and not candidate.held and not row["kept_out"]
    return candidate.approved_by is not None or freed


def _entries(unit: Unit, candidates: Sequence[Candidate], keys: Sequence[bytes]) -> list[_Entry]:
    others = [other for candidate in candidates for other in _other_keys(candidate)]
    stored = memories.find_duplicates(unit, [*keys, *others])
    made: dict[bytes, _Entry] = {}
    entries = []
    for candidate, key in zip(candidates, keys, strict=True):
        row = _stored_as(stored, candidate, key)
        if row is not None and row["held"] and _is_cleared(candidate, row):
            row = None
        if row is not None:
            entry = _Entry(candidate, key, row["memory_id"], True, row["held"])
        elif key in made:
            entry = _Entry(candidate, key, made[key].memory_id, True, made[key].held)
        else:
            entry = _Entry(candidate, key, unit.new_id(), False, candidate.held)
            if not _is_over(unit, candidate):
                made[key] = entry
        entries.append(entry)
    return entries


def _is_over(unit: Unit, candidate: Candidate) -> bool:
    expires_at = candidate.request.expires_at
    return expires_at is not None and expires_at <= unit.now


def _memory(entry: _Entry, domain: str, valid_from: datetime | None, sure: Confidence | None) -> NewMemory:
    candidate = entry.candidate
    request = candidate.request
    assert sure is not None
    return NewMemory(
        memory_id=entry.memory_id,
        space_id=candidate.space_id,
        owner_id=candidate.owner_id,
        domain=domain,
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
        dedup_key=entry.key,
        passages=candidate.passages,
        held=candidate.held,
        entities=tuple(request.entities),
        relations=tuple(request.relations),
        place=candidate.place,
        claimed=candidate.claimed,
    )


def _submission(entry: _Entry) -> memories.Submission:
    candidate = entry.candidate
    return memories.Submission(
        entry.memory_id,
        candidate.space_id,
        candidate.owner_id,
        candidate.request.source,
        candidate.request.revision,
        candidate.place,
        tuple(candidate.request.data_subjects),
    )


def _brought(entry: _Entry, occurrence_id: UUID) -> graph.Brought:
    """The text may be known: its relations still go through the upsert. What is held has no edges."""
    candidate = entry.candidate
    by = graph.Supported(
        candidate.space_id, candidate.owner_id, entry.memory_id, occurrence_id, exclusive=candidate.exclusive
    )
    if not entry.brings_graph:
        return graph.Brought(by, (), ())
    return graph.Brought(by, candidate.request.entities, candidate.request.relations)


def _domains(unit: Unit, entries: Sequence[_Entry]) -> list[str]:
    """The forced domain, else that of the nearest centroid, else none in particular.

    Which text is a duplicate does not depend on it: centroids move, and the same text sent again is the same.
    """
    domains = [entry.candidate.request.domain or DEFAULT_DOMAIN for entry in entries]
    at_least = unit.principal.settings.route_at
    for space_id in _spaces([entry.candidate for entry in entries]):
        free = [
            place
            for place, entry in enumerate(entries)
            if not entry.known
            and entry.candidate.request.domain is None
            and entry.candidate.space_id == space_id
        ]
        texts = [entries[place].candidate.passages for place in free]
        for place, routed in zip(free, centroids.nearest(unit, space_id, texts, at_least), strict=True):
            domains[place] = routed or DEFAULT_DOMAIN
    return domains


def _spaces(candidates: Sequence[Candidate]) -> list[UUID]:
    return sorted({candidate.space_id for candidate in candidates})


def neighbours(unit: Unit, space_id: UUID, passages: Passages) -> list[Row]:
    """The nearest live memories (store/near)."""
    [rows] = near_store.neighbours(unit, space_id, [passages.vectors], passages.contract, NEIGHBOURS)
    return rows


def _neighbours(unit: Unit, candidates: Sequence[Candidate]) -> list[list[Row]]:
    """The same for each candidate, in its own space."""
    found: list[list[Row]] = [[] for _ in candidates]
    for space_id in _spaces(candidates):
        places = [n for n, candidate in enumerate(candidates) if candidate.space_id == space_id]
        texts = [candidates[n].passages for n in places]
        [contract] = {text.contract for text in texts}
        rows = near_store.neighbours(unit, space_id, [text.vectors for text in texts], contract, NEIGHBOURS)
        for place, own in zip(places, rows, strict=True):
            found[place] = own
    return found


def _conflicts(
    unit: Unit, entries: Sequence[_Entry], near: Sequence[Sequence[Row]], target: Row | None
) -> list[Conflict | None]:
    """The live memory that each new text contradicts, among its neighbours in the database and those before it
    in the batch; never the one it supersedes."""
    superseded = None if target is None else target["memory_id"]
    rows = [
        [] if entry.known else [row for row in own if row["memory_id"] != superseded]
        for entry, own in zip(entries, near, strict=True)
    ]
    beside = _beside(unit, entries)
    relations = _relations(unit, [row for own in rows for row in own])
    found: list[Conflict | None] = [None] * len(entries)
    for space_id in _spaces([entry.candidate for entry in entries]):
        places = [
            n for n, entry in enumerate(entries) if entry.candidate.space_id == space_id and not entry.known
        ]
        if not any(rows[n] or beside[n] for n in places):
            continue
        said = any(relations) or any(entries[n].candidate.request.relations for n in places)
        reader = Reader(graph.single_valued(unit, space_id) if said else ())
        for n in places:
            others = [_stored(row, relations) for row in rows[n]] + beside[n]
            others.sort(key=lambda other: (-other.cosine, other.memory_id))
            found[n] = reader.find(
                _said(entries[n].candidate.request), others[:NEIGHBOURS], entries[n].memory_id
            )
    return found


def _beside(unit: Unit, entries: Sequence[_Entry]) -> list[list[Neighbour]]:
    """For each new text the new ones before it in the batch that will be live when it comes, nearest first."""
    beside: list[list[Neighbour]] = [[] for _ in entries]
    fresh = [n for n, entry in enumerate(entries) if not entry.known]
    if len(fresh) < 2:
        return beside
    cosines = _cosines([entries[n].candidate.passages for n in fresh])
    live = [_is_live(unit, entries[n].candidate) for n in fresh]
    for later, n in enumerate(fresh):
        earlier = [
            (float(cosines[later, place]), entries[fresh[place]])
            for place in range(later)
            if live[place] and entries[fresh[place]].candidate.space_id == entries[n].candidate.space_id
        ]
        earlier.sort(key=lambda pair: (-pair[0], pair[1].memory_id))
        beside[n] = [
            Neighbour(entry.memory_id, 1, _said(entry.candidate.request), cosine)
            for cosine, entry in earlier[:NEIGHBOURS]
        ]
    return beside


def _cosines(texts: Sequence[Passages]) -> Vectors:
    """Of every two texts: the maximum over passages of both sides."""
    import numpy as np

    vectors = np.concatenate([text.vectors for text in texts])
    starts = np.cumsum([0, *(len(text.vectors) for text in texts[:-1])])
    by_row = np.maximum.reduceat(vectors @ vectors.T, starts, axis=0)
    cosines: Vectors = np.maximum.reduceat(by_row, starts, axis=1)
    return cosines


def _is_live(unit: Unit, candidate: Candidate) -> bool:
    request = candidate.request
    begun = request.valid_from is None or request.valid_from <= unit.now
    lasts = request.valid_to is None or unit.now < request.valid_to
    return begun and lasts and not candidate.held and not _is_over(unit, candidate)


def conflict_with(
    unit: Unit, space_id: UUID, request: IngestRequest | ProposalRequest, near: Sequence[Row]
) -> Conflict | None:
    """The live memory that the candidate contradicts, among its neighbours."""
    if not near:
        return None
    relations = _relations(unit, near)
    others = [_stored(row, relations) for row in near]
    return Reader(graph.single_valued(unit, space_id)).find(_said(request), others)


def _relations(unit: Unit, rows: Sequence[Row]) -> dict[UUID, list[Row]]:
    ids = list(dict.fromkeys(row["memory_id"] for row in rows if row["related"]))
    return graph.supported_by(unit, ids) if ids else {}


def _stored(row: Row, relations: Mapping[UUID, Sequence[Row]]) -> Neighbour:
    triples = tuple(_stored_triple(edge) for edge in relations.get(row["memory_id"], ()))
    return Neighbour(
        memory_id=row["memory_id"],
        version=row["version"],
        statement=Statement(row["content"], triples, row["valid_from"], row["valid_to"]),
        cosine=row["cosine"],
    )


def _said(request: IngestRequest | ProposalRequest) -> Statement:
    return Statement(
        request.content, tuple(map(_sent_triple, request.relations)), request.valid_from, request.valid_to
    )


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
        if value.type == "number":
            target, _ = in_base_unit(target, value.unit)
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
    lock(unit, "target", [supersedes.memory_id.bytes])
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
