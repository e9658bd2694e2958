"""What a request means here and now: duplicates, names, predicates, known evidence, sources and targets resolved.

Every reference of the caller's is checked, all faults are told at once, with pointers. A reference that does not
hold is `stale_input`: absent, foreign and erased are one answer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.domain.assessment import (
    AssessmentRequest,
    DuplicateOption,
    EntityOption,
    EvidenceView,
    KnownView,
    MentionView,
    PredicateOption,
    PredicateView,
    ProposalView,
    ValueView,
)
from remembrancer.domain.ids import parse_id
from remembrancer.domain.memory import PassageText
from remembrancer.domain.names import name_key
from remembrancer.domain.ports import Embedder
from remembrancer.domain.principal import authorize, may_change_others
from remembrancer.domain.problems import Code, FieldError, Problem
from remembrancer.domain.remember_plan import (
    MAX_CANDIDATES,
    MAX_DUPLICATES,
    MAX_PREDICATES,
    Context,
    CorrectionContext,
    DuplicateCandidate,
    EntityCandidate,
    EvidenceContext,
    KnownContext,
    Mention,
    PredicateContext,
    ProposalContext,
    SourceContext,
    Target,
    text_keys,
    text_sha,
)
from remembrancer.domain.remember_requests import EntityRef, EvidenceIn, RelationshipIn, RememberRequest
from remembrancer.domain.values import canonical_value
from remembrancer.flows.index import Text, cut_text
from remembrancer.flows.instants import instant
from remembrancer.store import remember_read
from remembrancer.store.centroids import UNROUTED
from remembrancer.store.database import Row, Unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

DIMENSIONS = 384
OFFERED = 20
"""Predicates offered for a proposed key that none has, best first (at most MAX_PREDICATES)."""


def known_texts(unit: Unit, request: RememberRequest, space_id: UUID) -> frozenset[int]:
    """The items whose bytes are stored already, or come earlier in the batch: they need no vector."""
    stored = _stored_texts(unit, request, space_id)
    repeated = _repeated(request.evidence)
    return frozenset(
        index for index, item in enumerate(request.evidence) if index in repeated or item.content in stored
    )


def cut_new(
    embedder: Embedder, request: RememberRequest, known: frozenset[int]
) -> dict[int, tuple[PassageText, ...]]:
    """The passages of the items that are not known: what is embedded is `rendered` of each, once a text."""
    return {
        index: cut_text(embedder, Text(item.content, None, item.observed_at))
        for index, item in enumerate(request.evidence)
        if index not in known
    }


def check_vectors(vectors: Mapping[bytes, Any], texts: Mapping[int, Sequence[PassageText]]) -> None:
    """One finite vector of the contract's size for each passage. Raises Problem embedding_unavailable."""
    import numpy as np

    for passage in (passage for passages in texts.values() for passage in passages):
        vector = vectors.get(text_sha(passage.rendered))
        if vector is None or np.shape(vector) != (DIMENSIONS,) or not np.isfinite(vector).all():
            raise Problem("embedding_unavailable")


def space_of(unit: Unit, request: RememberRequest) -> UUID:
    """The destination, authorized. Raises Problem forbidden: a target that is not allowed is never redirected."""
    who = unit.principal
    space = who.team_space if request.target_space == "team_shared" else who.private_space
    authorize(who, "write", space=space)
    return space


def gather(
    unit: Unit,
    request: RememberRequest,
    space_id: UUID,
    texts: Mapping[int, tuple[PassageText, ...]],
    vectors: Mapping[bytes, Vector],
    contract: str,
    *,
    floor: float,
) -> Context:
    """`texts` are the passages of the items that were not known, `vectors` theirs by `text_sha`.

    `floor` is the least cosine of a semantic duplicate. Raises Problem forbidden, stale_input, invalid_target,
    invalid_input, input_budget_exceeded, embedding_unavailable; commit_conflict when a text that was known is not
    any more.
    """
    check_vectors(vectors, texts)
    return _Gathering(unit, request, space_id).context(texts, vectors, contract, floor)


def _repeated(evidence: Sequence[EvidenceIn]) -> dict[int, int]:
    """Items that repeat the bytes of an earlier one, with its index."""
    first: dict[str, int] = {}
    return {
        index: first[item.content]
        for index, item in enumerate(evidence)
        if first.setdefault(item.content, index) != index
    }


def _stored_texts(unit: Unit, request: RememberRequest, space_id: UUID) -> dict[str, Target]:
    owner_id = unit.principal.principal_id
    keys = {key for item in request.evidence for key in text_keys(space_id, owner_id, item.content, UNROUTED)}
    found: dict[str, Target] = {}
    for row in remember_read.same_text(unit, space_id, owner_id, keys):
        found.setdefault(row["content"], Target(row["memory_id"], row["version"]))
    return found


class _Gathering:
    """One pass over a request; faults are collected by the code they are told under."""

    def __init__(self, unit: Unit, request: RememberRequest, space_id: UUID) -> None:
        self._unit = unit
        self._request = request
        self._space_id = space_id
        self._owner_id = unit.principal.principal_id
        self._faults: dict[Code, list[FieldError]] = {}
        self._entities: dict[UUID, EntityCandidate] = {}
        self._known: dict[UUID, KnownContext] = {}
        self._duplicates = 0

    def context(
        self,
        texts: Mapping[int, tuple[PassageText, ...]],
        vectors: Mapping[bytes, Vector],
        contract: str,
        floor: float,
    ) -> Context:
        generation = remember_read.generation(self._unit, self._space_id)
        sources = self._sources()
        evidence = self._evidence(texts, vectors, contract, floor)
        known = self._known_evidence()
        corrections = self._corrections()
        mentions = self._mentions()
        predicates, chosen = self._predicates()
        proposals = [
            ProposalContext(
                ref=f"r{index + 1}",
                subject=mentions[index, "subject"],
                predicate=chosen[index],
                object=mentions.get((index, "object")),
                value=_value(proposal),
                known=known[index],
                correction=corrections.get(index),
            )
            for index, proposal in enumerate(self._request.relationships)
        ]
        self._raise()
        return Context(
            space_id=self._space_id,
            generation=generation,
            owner_id=self._owner_id,
            contract=contract,
            evidence=tuple(evidence),
            proposals=tuple(proposals),
            known=tuple(self._known.values()),
            entities=tuple(self._entities.values()),
            predicates=predicates,
            sources=sources,
        )

    def _fault(self, code: Code, pointer: str, rule: str, detail: str) -> None:
        self._faults.setdefault(code, []).append(FieldError(pointer, rule, detail))

    def _stale(self, pointer: str) -> None:
        self._fault("stale_input", pointer, "stale", "names nothing that holds now")

    def _raise(self) -> None:
        """The gravest kind of fault, all of its places."""
        order: tuple[Code, ...] = (
            "forbidden",
            "invalid_input",
            "stale_input",
            "invalid_target",
            "input_budget_exceeded",
        )
        for code in order:
            if code in self._faults:
                raise Problem(code, self._faults[code])

    # Evidence ------------------------------------------------------------------------------------------------
    def _sources(self) -> tuple[SourceContext, ...]:
        """One revision of each source a batch, compared with the one that stands (and again by the commit)."""
        asked: dict[str, tuple[str, str | None]] = {}
        items = self._request.evidence
        stored = remember_read.sources(
            self._unit, self._space_id, self._owner_id, {i.source_key for i in items if i.source_key}
        )
        found: dict[str, SourceContext] = {}
        for index, item in enumerate(items):
            if item.source_key is None or item.source_revision is None:
                continue
            pointer = f"/evidence/{index}"
            revision = (item.source_revision, item.previous_source_revision)
            if asked.setdefault(item.source_key, revision) != revision:
                detail = "a batch brings one revision of a source"
                self._fault("invalid_input", f"{pointer}/source_revision", "source_revision", detail)
                continue
            current = stored[item.source_key]["revision"] if item.source_key in stored else None
            goes_on = item.previous_source_revision is None and current == item.source_revision
            if not goes_on and item.previous_source_revision != current:
                self._stale(f"{pointer}/previous_source_revision")
            found[item.source_key] = SourceContext(item.source_key, current, item.source_revision)
        return tuple(found.values())

    def _evidence(
        self,
        texts: Mapping[int, tuple[PassageText, ...]],
        vectors: Mapping[bytes, Vector],
        contract: str,
        floor: float,
    ) -> list[EvidenceContext]:
        stored = _stored_texts(self._unit, self._request, self._space_id)
        repeated = _repeated(self._request.evidence)
        supersedes = self._supersedes(stored)
        ending = {target.memory_id for targets in supersedes.values() for target in targets}
        gathered: list[EvidenceContext] = []
        for index, item in enumerate(self._request.evidence):
            exact = stored.get(item.content)
            passages: tuple[PassageText, ...] = ()
            duplicates: tuple[DuplicateCandidate, ...] = ()
            if exact is None and index not in repeated:
                if index not in texts:  # it was known when it was cut
                    raise Problem("commit_conflict")
                passages = texts[index]
                if not item.force_insert and not item.has_lifecycle:
                    duplicates = self._similar(passages, vectors, contract, floor, ending)
            gathered.append(
                EvidenceContext(
                    ref=f"e{index + 1}",
                    same_as=repeated.get(index),
                    exact=exact,
                    duplicates=duplicates,
                    passages=passages,
                    supersedes=supersedes.get(index, ()),
                )
            )
        return gathered

    def _similar(
        self,
        passages: Sequence[PassageText],
        vectors: Mapping[bytes, Vector],
        contract: str,
        floor: float,
        ending: Collection[UUID],
    ) -> tuple[DuplicateCandidate, ...]:
        """Not of those that end with this batch: what is said now is no submission of them."""
        asked = [vectors[text_sha(passage.rendered)] for passage in passages]
        near = remember_read.near(
            self._unit, self._space_id, self._owner_id, asked, contract, floor, MAX_DUPLICATES
        )
        rows = [row for row in near if row["memory_id"] not in ending]
        start = self._duplicates + 1
        self._duplicates += len(rows)
        return tuple(
            DuplicateCandidate(f"d{number}", Target(row["memory_id"], row["version"]), row["content"])
            for number, row in enumerate(rows, start=start)
        )

    def _supersedes(self, stored: Mapping[str, Target]) -> dict[int, tuple[Target, ...]]:
        named: dict[UUID, tuple[int, str]] = {}
        for index, item in enumerate(self._request.evidence):
            for place, text in enumerate(item.supersedes_evidence_ids):
                pointer = f"/evidence/{index}/supersedes_evidence_ids/{place}"
                memory_id = parse_id("mem", text)
                if memory_id in named:
                    self._fault("invalid_target", pointer, "repeated", "is superseded by another item")
                named[memory_id] = (index, pointer)
        rows = remember_read.live_memories(self._unit, named)
        found: dict[int, tuple[Target, ...]] = {}
        for memory_id, (index, pointer) in named.items():
            row = rows.get(memory_id)
            if row is None or row["space_id"] != self._space_id:
                self._stale(pointer)
                continue
            self._may_change(row, pointer)
            if Target(memory_id, row["version"]) in stored.values():
                self._fault("invalid_target", pointer, "itself", "has the same bytes as an item of the batch")
            found[index] = (*found.get(index, ()), Target(memory_id, row["version"]))
        return found

    def _may_change(self, row: Row, pointer: str) -> None:
        """What stands in the space is changed by its owner, or by a human reviewer."""
        if row["owner_id"] != self._owner_id and not may_change_others(self._unit.principal):
            self._fault("forbidden", pointer, "owner", "belongs to somebody else")

    def _known_evidence(self) -> list[tuple[str, ...]]:
        """References of each proposal's context. What goes to the team is judged by the team's evidence alone."""
        named = [
            [parse_id("mem", text) for text in proposal.known_evidence_ids]
            for proposal in self._request.relationships
        ]
        rows = remember_read.live_memories(self._unit, {one for ids in named for one in ids})
        allowed = allowed_context(self._unit, self._space_id)
        refs: list[tuple[str, ...]] = []
        for index, ids in enumerate(named):
            of_one: list[str] = []
            for place, memory_id in enumerate(ids):
                row = rows.get(memory_id)
                if row is None or row["space_id"] not in allowed:
                    self._stale(f"/relationships/{index}/known_evidence_ids/{place}")
                    continue
                if memory_id not in self._known:
                    target = Target(memory_id, row["version"])
                    ref = f"k{len(self._known) + 1}"
                    self._known[memory_id] = KnownContext(ref, target, row["content"])
                of_one.append(self._known[memory_id].ref)
            refs.append(tuple(of_one))
        return refs

    # The graph -----------------------------------------------------------------------------------------------
    def _corrections(self) -> dict[int, CorrectionContext]:
        named: dict[int, UUID] = {}
        for index, proposal in enumerate(self._request.relationships):
            if proposal.correction_target is None:
                continue
            pointer = f"/relationships/{index}/correction_target"
            target = parse_id("rel", proposal.correction_target.relationship_id)
            if target in named.values():
                self._fault("invalid_target", pointer, "repeated", "is corrected by another relationship")
            named[index] = target
        rows = remember_read.relationships(self._unit, self._space_id, set(named.values()))
        found: dict[int, CorrectionContext] = {}
        for index, relationship_id in named.items():
            proposal = self._request.relationships[index]
            row = rows.get(relationship_id)
            pointer = f"/relationships/{index}/correction_target"
            assert proposal.correction_target is not None
            if row is None:
                self._stale(f"{pointer}/relationship_id")
                continue
            if row["version"] != proposal.correction_target.expected_version:
                self._stale(f"{pointer}/expected_version")
            self._may_change(row, pointer)
            if (_key_of(proposal), proposal.polarity) != (row["predicate_key"], row["polarity"]):
                detail = "a correction keeps predicate and polarity"
                self._fault("invalid_target", pointer, "other_statement", detail)
            found[index] = CorrectionContext(relationship_id, row["version"])
        return found

    def _mentions(self) -> dict[tuple[int, str], Mention]:
        """Of each proposal its `subject` and, when it is an entity, its `object`."""
        ends: dict[tuple[int, str], tuple[EntityRef, str]] = {}
        for index, proposal in enumerate(self._request.relationships):
            ends[index, "subject"] = (proposal.subject, f"/relationships/{index}/subject")
            if proposal.object.entity is not None:
                ends[index, "object"] = (proposal.object.entity, f"/relationships/{index}/object/entity")
        keys = {name_key(end.name) for end, _ in ends.values() if end.name is not None}
        bearers = remember_read.bearers(self._unit, self._space_id, keys)
        named = {
            place: parse_id("ent", end.known_entity_id)
            for place, (end, _) in ends.items()
            if end.known_entity_id is not None
        }
        known = remember_read.entities(self._unit, self._space_id, set(named.values()))
        mentions: dict[tuple[int, str], Mention] = {}
        for place, (end, pointer) in ends.items():
            if end.name is None:
                row = known.get(named[place])
                if row is None:
                    self._stale(f"{pointer}/known_entity_id")
                    mentions[place] = Mention("", "", end.entity_kind)
                    continue
                candidate = self._candidate(row)
                mentions[place] = Mention(
                    row["name"], row["name_key"], candidate.kind, (candidate.ref,), candidate.ref
                )
            else:
                mentions[place] = self._named(end.name, end, bearers, pointer)
        return mentions

    def _named(
        self, name: str, end: EntityRef, bearers: Mapping[str, Sequence[Row]], pointer: str
    ) -> Mention:
        key = name_key(name)
        rows = bearing(bearers.get(key, ()), end.entity_kind)
        if len(rows) > MAX_CANDIDATES:
            detail = f"more than {MAX_CANDIDATES} entities bear this name; name one by its id"
            self._fault("input_budget_exceeded", f"{pointer}/name", "candidates", detail)
            rows = []
        return Mention(name, key, end.entity_kind, tuple(self._candidate(row).ref for row in rows))

    def _candidate(self, row: Row) -> EntityCandidate:
        """One reference an entity, whoever mentions it."""
        entity_id: UUID = row["entity_id"]
        if entity_id not in self._entities:
            self._entities[entity_id] = EntityCandidate(
                f"n{len(self._entities) + 1}", entity_id, row["name"], row["kind"], tuple(row["aliases"])
            )
        return self._entities[entity_id]

    def _predicates(self) -> tuple[tuple[PredicateOption, ...], list[PredicateContext]]:
        proposals = self._request.relationships
        rows = remember_read.predicates(self._unit, self._space_id, {_key_of(p) for p in proposals})
        used: dict[str, PredicateOption] = {}

        def offer(row: Row) -> str:
            key = row["predicate_key"]
            if key not in used:
                used[key] = PredicateOption(
                    f"p{len(used) + 1}",
                    key,
                    row["kind"],
                    row["cardinality"],
                    tuple(row["subject_kinds"]),
                    tuple(row["object_kinds"]),
                    tuple(row["aliases"]),
                )
            return used[key].ref

        by_key = {row["predicate_key"]: row for row in rows}
        chosen: list[PredicateContext] = []
        for index, proposal in enumerate(proposals):
            known = proposal.predicate.known_predicate_key
            if proposal.correction_target is not None and _key_of(proposal) in by_key:
                known = _key_of(proposal)  # the corrected one's, which stays
            if known is not None:
                if known not in by_key:
                    self._stale(f"/relationships/{index}/predicate/known_predicate_key")
                    chosen.append(PredicateContext(None))
                    continue
                ref = offer(by_key[known])
                chosen.append(PredicateContext(None, (ref,), ref))
            else:
                options = ranked(_key_of(proposal), rows)
                chosen.append(PredicateContext(_key_of(proposal), tuple(map(offer, options))))
        return tuple(used.values()), chosen


def bearing(rows: Sequence[Row], kind: str) -> list[Row]:
    """Of the bearers of a name those that a mention of this kind may mean: of that kind, else of no particular one;
    `other` may mean any. Each once."""
    distinct = list({row["entity_id"]: row for row in rows}.values())
    if kind == "other":
        return distinct
    return [row for row in distinct if kind in (row["kind"], row["named_kind"])] or [
        row for row in distinct if row["kind"] == "other"
    ]


def allowed_context(unit: Unit, space_id: UUID) -> frozenset[UUID]:
    """The spaces whose evidence may be context of a write to this one."""
    return frozenset(
        unit.principal.visible_spaces if space_id == unit.principal.private_space else {space_id}
    )


def ranked(proposed: str, rows: Sequence[Row]) -> list[Row]:
    """The predicates to offer for a key: it alone, or those it is an alias of, or else the most alike."""
    exact = [row for row in rows if row["predicate_key"] == proposed]
    aliased = [row for row in rows if proposed in row["aliases"]]
    if exact or aliased:
        return (exact or aliased)[:MAX_PREDICATES]
    return sorted(rows, key=lambda row: (-_likeness(proposed, row["predicate_key"]), row["predicate_key"]))[
        :OFFERED
    ]


def _likeness(one: str, two: str) -> float:
    """Shared words (Jaccard), then shared letter triples: `works_for` is nearer to `works_at` than to `likes`."""
    return _jaccard(set(one.split("_")), set(two.split("_"))) + _jaccard(_triples(one), _triples(two))


def _triples(key: str) -> set[str]:
    padded = f"  {key} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two)


def _key_of(proposal: RelationshipIn) -> str:
    key = proposal.predicate.proposed_key or proposal.predicate.known_predicate_key
    assert key is not None
    return key


def _value(proposal: RelationshipIn) -> ValueView | None:
    value = proposal.object.value
    if value is None:
        return None
    original = value.value if isinstance(value.value, str) else json.dumps(value.value)
    return ValueView(value.type, canonical_value(value.type, value.value), original, value.unit)


# What the assessor is asked ----------------------------------------------------------------------------------
def assessment_request(request: RememberRequest, context: Context) -> AssessmentRequest:
    """The batch under opaque references: no id of the database goes out."""
    entities = {e.ref: EntityOption(e.ref, e.name, e.kind, e.aliases) for e in context.entities}
    predicates = {option.ref: option for option in context.predicates}

    def mention(found: Mention) -> MentionView:
        options = tuple(entities[ref] for ref in found.options)
        return MentionView(found.name, found.kind, options, found.required)

    def proposal(found: ProposalContext, sent: RelationshipIn) -> ProposalView:
        target = found.value if found.object is None else mention(found.object)
        assert target is not None
        return ProposalView(
            ref=found.ref,
            subject=mention(found.subject),
            predicate=PredicateView(
                found.predicate.proposed_key,
                tuple(predicates[ref] for ref in found.predicate.options),
                found.predicate.required,
            ),
            object=target,
            polarity=sent.polarity,
            valid_from=_when(sent.valid_from),
            valid_to=_when(sent.valid_to),
            evidence=tuple(context.evidence[index].ref for index in sorted(sent.evidence_indices)),
            known=found.known,
        )

    return AssessmentRequest(
        evidence=tuple(
            EvidenceView(
                item.ref, sent.content, tuple(DuplicateOption(d.ref, d.text) for d in item.duplicates)
            )
            for item, sent in zip(context.evidence, request.evidence, strict=True)
        ),
        proposals=tuple(
            proposal(found, sent)
            for found, sent in zip(context.proposals, request.relationships, strict=True)
        ),
        known=tuple(KnownView(item.ref, item.text) for item in context.known),
    )


def _when(at: datetime | None) -> str | None:
    return instant(at)
