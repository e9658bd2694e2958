"""The one commit of an attempt: every fence again, then evidence, graph and result, in one transaction.

Locks are taken in the order of model.md: space, sources, targets, content, entities, predicates, relationships.
What was decided on what has changed since is `stale_input`, with its place; what a retry may cure `commit_conflict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.domain.assessment import Assessment, Register, ValueView
from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import NewMemory, Passages, origin_of
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.remember_facts import (
    Correction,
    Fact,
    Ledger,
    Said,
    Statement,
    Value,
    is_repeated,
)
from remembrancer.domain.remember_plan import (
    Context,
    EdgePlan,
    Endpoint,
    Plan,
    Target,
    evidence_key,
    plan,
    text_keys,
    text_sha,
)
from remembrancer.domain.remember_requests import RememberRequest
from remembrancer.domain.scoring import confidence
from remembrancer.domain.time_rules import Window
from remembrancer.domain.units import as_kept
from remembrancer.flows.remember_context import allowed_context, bearing, check_vectors, space_of
from remembrancer.flows.remember_result import Opened, Told, result
from remembrancer.store import centroids, conflicts, edges, memories, remember_read, remember_write
from remembrancer.store.centroids import UNROUTED
from remembrancer.store.database import Row, Unit
from remembrancer.store.locks import lock
from remembrancer.store.remember_write import Submission

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

MAX_LOCKS = 100
"""A batch that needs more holds its space alone: the lock table is shared by all."""


@dataclass(frozen=True)
class Work:
    """What the attempt knows when its answer has been validated. `contract` is the search contract of now;
    `screened` is what the door kept (flows/remember_gate.py)."""

    attempt_id: UUID
    request: RememberRequest
    context: Context
    assessment: Assessment
    vectors: Mapping[bytes, Vector]
    contract: str
    screened: Mapping[str, Any]
    correlation_id: str


@dataclass(frozen=True)
class Committed:
    """The terminal result, and the rows whose erasure erases it."""

    document: dict[str, Any]
    refs: list[UUID]


def commit(unit: Unit, work: Work) -> Committed:
    """Call after the attempt's own fence; store the document and read it back before the transaction ends.

    Raises Problem forbidden, stale_input, commit_conflict, embedding_unavailable: then nothing is written.
    """
    context = work.context
    if space_of(unit, work.request) != context.space_id or unit.principal.principal_id != context.owner_id:
        raise Problem("forbidden")
    if work.contract != context.contract:
        raise Problem("commit_conflict")
    check_vectors(work.vectors, {index: item.passages for index, item in enumerate(context.evidence)})
    return _Commit(unit, work, plan(context, work.assessment)).run()


@dataclass(frozen=True)
class _Reused:
    memory_id: UUID
    same_bytes: bool


@dataclass(frozen=True)
class _Gone:
    """Evidence that a new revision of its source does not bring any more; the item that tells of it."""

    version: int
    item: int


@dataclass(frozen=True)
class _Names:
    """Subject and object of each edge; what is to be made: (id, kind, name, key)."""

    ends: list[tuple[UUID, UUID | None]]
    new: list[tuple[UUID, str, str, str]]


@dataclass(frozen=True)
class _Predicates:
    """(kind, cardinality) by key, and those that are to be registered."""

    known: Mapping[str, tuple[str, str]]
    new: list[Register]


@dataclass(frozen=True)
class _StoredFacts:
    """What stands in the places that are spoken of; of that what rests on text that ends now."""

    facts: list[Fact]
    ended: list[Fact]


class _Commit:
    def __init__(self, unit: Unit, work: Work, planned: Plan) -> None:
        self._unit = unit
        self._work = work
        self._plan = planned
        self._request = work.request
        self._context = work.context
        self._space_id = work.context.space_id
        self._owner_id = work.context.owner_id
        self._gone: dict[UUID, _Gone] = {}
        self._reused: dict[int, _Reused] = {}
        self._submissions: dict[int, Submission] = {}
        self._edges: dict[int, list[int]] = {}
        for place, edge in enumerate(planned.edges):
            self._edges.setdefault(edge.proposal, []).append(place)
        names = {end.key for edge in planned.edges for end in (edge.subject, edge.object) if end}
        wanted = 2 * len(planned.edges) + len(names) + 2 * len(work.context.evidence)
        revised = any(source.current not in (None, source.revision) for source in work.context.sources)
        # Who takes text out of belief is alone, as a retraction: support that is just coming would not be seen.
        self._alone = wanted > MAX_LOCKS or revised or bool(self._superseded())

    def run(self) -> Committed:
        """All locks and fences first; then the clock is read, so that nothing is closed before it was opened."""
        self._hold_space()
        sources = self._sources()
        self._targets()
        self._duplicates()
        named = self._names()
        predicates = self._predicates()
        said = [self._said(place, named) for place in range(len(self._plan.edges))]
        self._lock_places(said)
        remember_write.read_clock(self._unit)
        self._retire(said)
        stored = self._stored_facts(said, predicates.known)
        self._write_evidence(self._write_sources(sources))
        self._supersede()
        self._write_names(named)
        self._register(predicates)
        ledger, facts = self._say(said, stored, predicates.known)
        opened = self._write_facts(ledger)
        document = result(self._unit, self._space_id, self._told(facts, predicates.known, opened))
        self._read_back(facts)
        self._audit(document, opened)
        return Committed(document, sorted(self._spoken_of()))

    # Fences --------------------------------------------------------------------------------------------------
    def _hold_space(self) -> None:
        lock(self._unit, "space", [self._space_id.bytes], shared=not self._alone)
        if remember_read.generation(self._unit, self._space_id) != self._context.generation:
            raise Problem("commit_conflict")  # something was erased: what was read may be gone

    def _lock(self, kind: str, keys: Sequence[bytes]) -> None:
        if keys and not self._alone:
            lock(self._unit, kind, keys)

    def _sources(self) -> dict[str, Row]:
        """Compare: the revisions are still those that were found. The stored sources by key."""
        sources = self._context.sources
        self._lock("source", [self._owner_id.bytes + s.key.encode() for s in sources])
        stored = remember_read.sources(
            self._unit, self._space_id, self._owner_id, {source.key for source in sources}
        )
        for source in sources:
            row = stored.get(source.key)
            item = next(i for i, sent in enumerate(self._request.evidence) if sent.source_key == source.key)
            if (None if row is None else row["revision"]) != source.current:
                raise _stale([f"/evidence/{item}/previous_source_revision"])
            if row is not None and source.current != source.revision:
                old = remember_write.outdated(self._unit, row["source_id"], source.revision)
                self._gone |= {memory_id: _Gone(version, item) for memory_id, version in old.items()}
        return stored

    def _targets(self) -> None:
        """Everything stored that was decided on is locked, and still as it was: reused and cited evidence, what is
        superseded, what is corrected."""
        cited: dict[str, Target] = {}
        for index, planned in enumerate(self._plan.evidence):
            if planned.reuse is not None:
                cited[f"/evidence/{index}"] = planned.reuse
            for place, target in enumerate(self._context.evidence[index].supersedes):
                cited[f"/evidence/{index}/supersedes_evidence_ids/{place}"] = target
        known = {item.ref: item.target for item in self._context.known}
        for index, proposal in enumerate(self._context.proposals):
            for place, ref in enumerate(proposal.known):
                cited[f"/relationships/{index}/known_evidence_ids/{place}"] = known[ref]
        ids = {target.memory_id for target in cited.values()}
        corrected = [p.correction.relationship_id for p in self._context.proposals if p.correction]
        self._lock("target", [one.bytes for one in (*ids, *corrected)])
        rows = remember_read.live_memories(self._unit, ids)
        allowed = allowed_context(self._unit, self._space_id)
        stale = []
        for pointer, target in cited.items():
            row = rows.get(target.memory_id)
            if row is None or row["version"] != target.version or row["space_id"] not in allowed:
                stale.append(pointer)
        if stale:
            raise _stale(stale)
        # An item may take the place of what the source does not bring any more.
        named = self._superseded()
        self._gone = {one: gone for one, gone in self._gone.items() if one not in named}

    def _superseded(self) -> set[UUID]:
        return {target.memory_id for item in self._context.evidence for target in item.supersedes}

    def _duplicates(self) -> None:
        """What was decided to be reused, and whatever was stored meanwhile with the very same bytes: that needs no
        decision."""
        evidence = self._request.evidence
        keys = {
            index: text_keys(self._space_id, self._owner_id, evidence[index].content, UNROUTED)
            for index, item in enumerate(self._context.evidence)
            if item.exact is None
        }
        self._lock("content", sorted({of_one[0] for of_one in keys.values()}))
        rows = remember_read.same_text(
            self._unit, self._space_id, self._owner_id, {key for of_one in keys.values() for key in of_one}
        )
        stored = {row["content"]: row["memory_id"] for row in reversed(rows)}
        for index, planned in enumerate(self._plan.evidence):
            exact = self._context.evidence[index].exact
            memory_id = stored.get(evidence[index].content) if exact is None else exact.memory_id
            if memory_id is not None:
                self._reused[index] = _Reused(memory_id, True)
            elif planned.reuse is not None:
                self._reused[index] = _Reused(planned.reuse.memory_id, False)
        for reused in self._reused.values():
            self._gone.pop(reused.memory_id, None)

    # Evidence ------------------------------------------------------------------------------------------------
    def _write_sources(self, stored: Mapping[str, Row]) -> dict[str, UUID]:
        """Set what was compared; the ids by key."""
        ids: dict[str, UUID] = {}
        for source in self._context.sources:
            row = stored.get(source.key)
            if row is None:
                ids[source.key] = remember_write.add_source(
                    self._unit, self._space_id, source.key, source.revision
                )
            else:
                ids[source.key] = row["source_id"]
                if source.current != source.revision:
                    remember_write.revise_source(self._unit, row["source_id"], source.revision)
        return ids

    def _write_evidence(self, source_ids: Mapping[str, UUID]) -> None:
        """New texts, then one more occurrence of each that is known or repeats an item of the batch."""
        source = "manual" if self._unit.principal.human else "memory"
        evidence = self._request.evidence
        new = [
            index
            for index, planned in enumerate(self._plan.evidence)
            if index not in self._reused and planned.same_as is None
        ]
        passages = [self._passages(index) for index in new]
        at_least = self._unit.principal.settings.route_at
        domains = centroids.nearest(self._unit, self._space_id, passages, at_least)
        rows = [
            self._memory(index, source, texts, domain or UNROUTED)
            for index, texts, domain in zip(new, passages, domains, strict=True)
        ]
        occurrences = memories.insert_many(self._unit, rows, self._work.correlation_id, self._unit.now)
        written = {i: (row.memory_id, o) for i, row, o in zip(new, rows, occurrences, strict=True)}
        for index, planned in enumerate(self._plan.evidence):
            if planned.same_as is not None and index not in self._reused:
                self._reused[index] = _Reused(written[planned.same_as][0], True)
        again = [
            remember_write.Reuse(
                reused.memory_id,
                None if reused.same_bytes else evidence[index].content,
                source,
                evidence[index].source_revision,
            )
            for index, reused in sorted(self._reused.items())
        ]
        occurrences = remember_write.reuse(self._unit, self._space_id, again, self._work.correlation_id)
        for (index, reused), occurrence_id in zip(sorted(self._reused.items()), occurrences, strict=True):
            written[index] = (reused.memory_id, occurrence_id)
        for index, item in enumerate(evidence):
            source_id = None if item.source_key is None else source_ids[item.source_key]
            self._submissions[index] = Submission(index, *written[index], item, source_id)
        remember_write.submit(
            self._unit, self._space_id, self._work.attempt_id, list(self._submissions.values())
        )

    def _memory(self, index: int, source: str, passages: Passages, domain: str) -> NewMemory:
        item = self._request.evidence[index]
        assertion = "inferred" if item.authority == "inferred" else "stated"
        sure = confidence(source, False, assertion)
        return NewMemory(
            memory_id=self._unit.new_id(),
            space_id=self._space_id,
            owner_id=self._owner_id,
            domain=domain,
            kind="episodic",
            title=None,
            content=item.content,
            author=None,
            origin=origin_of(source),
            source=source,
            assertion_kind=assertion,
            admitted_by="remember",
            approved_by=None,
            proposal_id=None,
            data_subjects=tuple(item.data_subjects),
            observed_at=item.observed_at,
            valid_from=None,
            valid_to=None,
            expires_at=None,
            source_uri=item.source_key,
            revision=item.source_revision,
            pii=self._work.screened["pii"][index],
            screen=_report_of(self._work.screened["report"], index),
            screen_overridden=False,
            confidence=sure.value,
            confidence_parts=sure.to_dict(),
            dedup_key=evidence_key(self._space_id, self._owner_id, item.content),
            passages=passages,
            held=False,
        )

    def _passages(self, index: int) -> Passages:
        import numpy as np

        texts = self._context.evidence[index].passages
        if not texts:  # it was known when it was prepared, and is not any more
            raise _stale([f"/evidence/{index}"])
        vectors = np.stack([self._work.vectors[text_sha(text.rendered)] for text in texts])
        return Passages(texts, vectors, self._context.contract)

    def _supersede(self) -> None:
        """What an item names holds until now, and the item goes on."""
        for index, item in enumerate(self._context.evidence):
            for target in item.supersedes:
                row = memories.get(self._unit, target.memory_id)
                assert row is not None
                successor = self._submissions[index].memory_id
                memories.succeed(self._unit, row, successor, self._unit.now)
                conflicts.close_between(self._unit, successor, target.memory_id)

    # The graph -----------------------------------------------------------------------------------------------
    def _names(self) -> _Names:
        """A new name and kind is one entity, however often and by whomever it is mentioned at the same time."""
        ends = [end for edge in self._plan.edges for end in (edge.subject, edge.object) if end is not None]
        self._lock("entity", [self._space_id.bytes + key.encode() for key in {end.key for end in ends}])
        new = [end for end in ends if end.entity_id is None]
        merged = remember_read.merged(
            self._unit, {end.entity_id for end in ends if end.entity_id is not None}
        )
        bearers = remember_read.bearers(self._unit, self._space_id, {end.key for end in new})
        made: dict[str, dict[str, tuple[UUID, str]]] = {}
        # `other` is no kind of its own: it joins what bears the name.
        for end in sorted(new, key=lambda end: end.kind == "other"):
            kinds = made.setdefault(end.key, {})
            known = end.kind in kinds or (end.kind == "other" and kinds)
            if not known and not bearing(bearers.get(end.key, ()), end.kind):
                kinds[end.kind] = (self._unit.new_id(), end.name)

        def resolve(edge: EdgePlan, end: Endpoint) -> UUID:
            if end.entity_id is not None:
                found = merged.get(end.entity_id)
            else:
                rows = bearing(bearers.get(end.key, ()), end.kind)
                kinds = made[end.key]
                if len(rows) == 1:
                    found = rows[0]["entity_id"]
                elif rows:  # somebody else bears the name too, since it was read
                    found = None
                else:
                    found, _ = kinds.get(end.kind) or next(iter(kinds.values()))
            if found is None:
                raise _stale([f"/relationships/{edge.proposal}"])
            return found

        return _Names(
            [
                (resolve(edge, edge.subject), None if edge.object is None else resolve(edge, edge.object))
                for edge in self._plan.edges
            ],
            [
                (entity_id, kind, name, key)
                for key, kinds in made.items()
                for kind, (entity_id, name) in kinds.items()
            ],
        )

    def _write_names(self, named: _Names) -> None:
        remember_write.add_entities(self._unit, self._space_id, named.new)
        mentions = set()
        for edge, (subject, target) in zip(self._plan.edges, named.ends, strict=True):
            for span in edge.supports:
                by = self._submissions[span.item]
                mentions.add((by.memory_id, by.occurrence_id, subject, edge.subject.key))
                if edge.object is not None and target is not None:
                    mentions.add((by.memory_id, by.occurrence_id, target, edge.object.key))
        remember_write.mention(self._unit, self._space_id, mentions)

    def _predicates(self) -> _Predicates:
        """One that somebody registered otherwise meanwhile, or that is gone, is stale."""
        keys = {edge.predicate for edge in self._plan.edges}
        self._lock("predicate", [self._space_id.bytes + key.encode() for key in keys])
        found = remember_read.kinds(self._unit, self._space_id, keys)
        new: dict[str, Register] = {}
        for edge in self._plan.edges:
            stored, asked = found.get(edge.predicate), edge.register
            if stored is None and asked is not None:
                new.setdefault(edge.predicate, asked)
            elif stored is None or (asked is not None and stored != (asked.kind, asked.cardinality)):
                raise _stale([f"/relationships/{edge.proposal}/predicate"])
        known = found | {key: (made.kind, made.cardinality) for key, made in new.items()}
        return _Predicates(known, list(new.values()))

    def _register(self, predicates: _Predicates) -> None:
        """The new ones, and the keys under which they were proposed."""
        if predicates.new:
            remember_write.register(self._unit, self._space_id, predicates.new)
            made = remember_read.kinds(self._unit, self._space_id, {one.key for one in predicates.new})
            if made != {one.key: (one.kind, one.cardinality) for one in predicates.new}:
                raise Problem("commit_conflict")
        aliases: set[tuple[str, str, UUID]] = set()
        for edge in self._plan.edges:
            proposed = self._context.proposals[edge.proposal].predicate.proposed_key
            if edge.register is not None and proposed not in (None, edge.predicate):
                assert proposed is not None
                memory_id = self._submissions[edge.supports[0].item].memory_id
                aliases.add((proposed, edge.predicate, memory_id))
        remember_write.add_aliases(self._unit, self._space_id, aliases)

    def _said(self, place: int, named: _Names) -> Said:
        """A proposal corrects once, whatever it is split into."""
        edge = self._plan.edges[place]
        sent = self._request.relationships[edge.proposal]
        correction = self._context.proposals[edge.proposal].correction
        value, original = (None, None) if edge.value is None else _value(edge.value)
        subject, target = named.ends[place]
        corrects = correction is not None and place == self._edges[edge.proposal][0]
        return Said(
            Statement(subject, edge.predicate, target, value, sent.polarity),
            sent.valid_from,
            sent.valid_to,
            edge.supports,
            original,
            Correction(correction.relationship_id) if corrects and correction else None,
        )

    def _lock_places(self, said: Sequence[Said]) -> None:
        """Of everything that is said or corrected."""
        corrected = {one.correction.relationship_id for one in said if one.correction}
        before = remember_read.relationships(self._unit, self._space_id, corrected).values()
        places = {one.statement.place for one in said} | {_statement(row).place for row in before}
        self._lock(
            "relationship",
            [self._space_id.bytes + subject.bytes + key.encode() for subject, key in places],
        )

    def _retire(self, said: Sequence[Said]) -> None:
        """What a source does not bring any more is not believed, nor what rests on that alone and is not said again:
        before anything is said, so that nothing is placed beside it."""
        if not self._gone:
            return
        remember_write.disbelieve(self._unit, {one: gone.version for one, gone in self._gone.items()})
        corrected = {one.correction.relationship_id for one in said if one.correction}
        rest = [_fact(row) for row in remember_write.resting_on(self._unit, self._gone)]
        kept = {
            fact.relationship_id
            for fact in rest
            if any(is_repeated(fact, one, self._owner_id, self._unit.now) for one in said)
        }
        closed = edges.close_unsupported(self._unit, self._gone, corrected | kept)
        remember_write.settle_conflicts(self._unit, closed)

    def _stored_facts(self, said: Sequence[Said], predicates: Mapping[str, tuple[str, str]]) -> _StoredFacts:
        corrected = {one.correction.relationship_id: p for p, one in enumerate(said) if one.correction}
        superseded = self._superseded()
        resting = remember_write.resting_on(self._unit, superseded, {*superseded, *self._gone})
        ended = {row["relationship_id"] for row in resting} - corrected.keys()
        single = {key for key, (_, cardinality) in predicates.items() if cardinality == "one"}
        rows = remember_read.facts(
            self._unit, self._space_id, {o.statement for o in said}, single, {*corrected, *ended}
        )
        facts = {row["relationship_id"]: _fact(row) for row in rows}
        for relationship_id, place in corrected.items():
            proposal = self._plan.edges[place].proposal
            correction = self._context.proposals[proposal].correction
            fact = facts.get(relationship_id)
            if fact is None or correction is None or fact.version != correction.version:
                raise _stale([f"/relationships/{proposal}/correction_target"])
        return _StoredFacts(list(facts.values()), [facts[one] for one in sorted(ended)])

    def _say(
        self, said: Sequence[Said], stored: _StoredFacts, predicates: Mapping[str, tuple[str, str]]
    ) -> tuple[Ledger, list[Fact]]:
        """The ledger after everything was said, and the fact of each edge."""
        ledger = Ledger(self._owner_id, stored.facts, predicates, self._unit.now, self._unit.new_id)
        spoken: dict[int, Fact] = {}
        # Corrections first: what they correct is what the caller saw.
        for place in sorted(range(len(said)), key=lambda place: said[place].correction is None):
            try:
                spoken[place] = ledger.say(said[place])
            except LookupError:
                proposal = self._plan.edges[place].proposal
                raise _stale([f"/relationships/{proposal}/correction_target"]) from None
        for fact in stored.ended:
            ledger.end(fact)
        return ledger, [spoken[place] for place in range(len(said))]

    def _write_facts(self, ledger: Ledger) -> list[Opened]:
        """The versions and their supports; then what contradicts what, for review. Nothing is overwritten by that."""
        touched = [fact for fact in ledger.facts if fact.supports or fact.changed]
        remember_write.write_facts(self._unit, self._space_id, touched, self._submissions)
        over = [
            fact.relationship_id for fact in touched if fact.stored and (fact.restated or not fact.window)
        ]
        remember_write.settle_conflicts(self._unit, over)
        opened: list[Opened] = []
        for found in ledger.contradictions():
            ends = [
                remember_write.witness(self._unit, fact.relationship_id, fact.final_version)
                for fact in (found.fact, found.other)
            ]
            if ends[0] is None or ends[1] is None:
                continue  # what nothing believed supports contradicts nobody
            conflict_id = remember_write.open_conflict(
                self._unit, self._space_id, found, ends[0], ends[1], _EXPLANATIONS[found.reason]
            )
            if conflict_id is not None:
                opened.append((conflict_id, found))
        return opened

    # The result ----------------------------------------------------------------------------------------------
    def _told(
        self, facts: Sequence[Fact], predicates: Mapping[str, tuple[str, str]], opened: Sequence[Opened]
    ) -> Told:
        superseded: dict[int, list[UUID]] = {
            index: [target.memory_id for target in item.supersedes]
            for index, item in enumerate(self._context.evidence)
        }
        for memory_id, gone in self._gone.items():
            superseded[gone.item].append(memory_id)
        return Told(
            attempt_id=self._work.attempt_id,
            correlation_id=self._work.correlation_id,
            request=self._request,
            plan=self._plan,
            submissions=self._submissions,
            reused={index: reused.same_bytes for index, reused in self._reused.items()},
            superseded=superseded,
            facts=facts,
            predicates=predicates,
            opened=opened,
        )

    def _spoken_of(self) -> set[UUID]:
        """The memories whose erasure erases the result."""
        submitted = {one.memory_id for one in self._submissions.values()}
        return submitted | self._superseded() | self._gone.keys()

    def _read_back(self, facts: Sequence[Fact]) -> None:
        """Everything that the result tells of is there, as a reader of this transaction finds it."""
        memory_ids = {one.memory_id for one in self._submissions.values()}
        edges = {(fact.relationship_id, fact.final_version) for fact in facts}
        if not remember_write.read_back(self._unit, memory_ids, edges):
            raise Problem("internal_failure")

    def _audit(self, document: Mapping[str, Any], opened: Sequence[Opened]) -> None:
        evidence, relationships = document["evidence"], document["relationships"]
        self._unit.audit(
            "remembered",
            document["attempt_id"],
            evidence=sorted({item["evidence_id"] for item in evidence if item["disposition"] == "stored"}),
            reused=sorted({item["evidence_id"] for item in evidence if item["disposition"] == "reused"}),
            superseded=sorted(one for item in evidence for one in item["superseded_ids"]),
            relationships=sorted(
                {split["relationship_id"] for result in relationships for split in result["splits"]}
            ),
            not_stored=sum(result["disposition"] == "not_stored" for result in relationships),
            conflicts=[format_id("con", conflict_id) for conflict_id, _ in opened],
            correlation_id=self._work.correlation_id,
        )


_EXPLANATIONS = {
    "opposite_polarity": "One says that it holds, the other that it does not.",
    "other_object": "Only one can hold at a time, and two are stated.",
}


def _value(view: ValueView) -> tuple[Value, str]:
    """What is stored, a number in the base of its unit, and how it was written."""
    if view.type != "number":
        return Value(view.type, view.text, view.unit), view.original
    number, unit, written = as_kept(view.text, view.original, view.unit)
    return Value(view.type, number, unit), written


def _fact(row: Row) -> Fact:
    window = Window(row["valid_from"], row["valid_to"])
    fact = Fact.of_store(row["relationship_id"], row["owner_id"], row["version"], _statement(row), window)
    fact.original = row["value_original"]
    return fact


def _statement(row: Row) -> Statement:
    value = None
    if row["value_type"] is not None:
        value = Value(row["value_type"], row["value_canonical"], row["value_unit"])
    return Statement(row["subject_id"], row["predicate_key"], row["object_id"], value, row["polarity"])


def _report_of(report: Mapping[str, Any], index: int) -> dict[str, Any]:
    """What the screen said of one item, with pointers into its text."""
    lead = f"/evidence/{index}"
    signals = [
        {**signal, "field": signal["field"].removeprefix(lead)}
        for signal in report["signals"]
        if signal["field"].startswith(lead + "/")
    ]
    return {**report, "signals": signals}


def _stale(pointers: Sequence[str]) -> Problem:
    return Problem("stale_input", [FieldError(p, "stale", "has changed since it was read") for p in pointers])
