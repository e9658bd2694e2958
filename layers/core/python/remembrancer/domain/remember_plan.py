"""What an attempt found before it asked the assessor, and what it will do with the answer.

`Context` keeps the ids of the database behind the opaque references that go out; it lies in the attempt's row
as JSON. `plan` joins request, context and assessment into steps that need no reference any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from remembrancer.domain.assessment import (
    Ambiguous,
    Assessment,
    Chosen,
    Create,
    PredicateOption,
    ProposalVerdict,
    Register,
    Resolution,
    Reuse,
    Split,
    ValueView,
)
from remembrancer.domain.canonical import digest
from remembrancer.domain.digests import dedup_key
from remembrancer.domain.memory import PassageText
from remembrancer.domain.requests import EntityKind
from remembrancer.domain.tenant_settings import Kind

MAX_CANDIDATES = 50
"""Entities that bear the name of one endpoint."""
MAX_PREDICATES = 100
"""Predicates offered for one proposal."""
MAX_DUPLICATES = 10


def evidence_key(space_id: UUID, owner_id: UUID, content: str) -> bytes:
    """What makes two submissions the same evidence: space, owner and bytes."""
    return digest(
        [("evidence", 1), ("space", space_id.bytes), ("owner", owner_id.bytes), ("content", content)]
    )


def text_keys(space_id: UUID, owner_id: UUID, content: str, domain: str) -> list[bytes]:
    """The keys under which a memory of just this text may lie, whichever path brought it. `domain` is the one that
    a text without a domain is filed under by the other paths."""
    plain = [
        dedup_key(
            space_id=space_id,
            content=content,
            title=None,
            kind=kind,
            domain=domain,
            valid_from=None,
            valid_to=None,
            source_uri=None,
            revision=None,
        )
        for kind in get_args(Kind)
    ]
    return [evidence_key(space_id, owner_id, content), *plain]


def text_sha(rendered: str) -> bytes:
    """What the vector of a rendered passage is kept under."""
    return hashlib.sha256(rendered.encode()).digest()


@dataclass(frozen=True)
class Target:
    """A stored memory as it was found; another version is another state."""

    memory_id: UUID
    version: int


@dataclass(frozen=True)
class DuplicateCandidate:
    ref: str
    target: Target
    text: str


@dataclass(frozen=True)
class EvidenceContext:
    ref: str
    same_as: int | None = None
    """Index of the earlier item of the batch with the same bytes."""
    exact: Target | None = None
    """Live evidence of the same owner and space with the same bytes."""
    duplicates: tuple[DuplicateCandidate, ...] = ()
    passages: tuple[PassageText, ...] = ()
    """Of text that is new; none when the bytes are known."""
    supersedes: tuple[Target, ...] = ()


@dataclass(frozen=True)
class SourceContext:
    """A source that evidence of the batch is a revision of: `current` is None for one not seen before."""

    key: str
    current: str | None
    revision: str


@dataclass(frozen=True)
class KnownContext:
    ref: str
    target: Target
    text: str


@dataclass(frozen=True)
class EntityCandidate:
    ref: str
    entity_id: UUID
    name: str
    kind: EntityKind
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mention:
    """An endpoint: the name as written and its comparable form, and which entities it may mean."""

    name: str
    key: str
    kind: EntityKind
    options: tuple[str, ...] = ()
    required: str | None = None


@dataclass(frozen=True)
class PredicateContext:
    proposed_key: str | None
    options: tuple[str, ...] = ()
    required: str | None = None


@dataclass(frozen=True)
class CorrectionContext:
    relationship_id: UUID
    version: int


@dataclass(frozen=True)
class ProposalContext:
    ref: str
    subject: Mention
    predicate: PredicateContext
    object: Mention | None
    value: ValueView | None
    known: tuple[str, ...] = ()
    correction: CorrectionContext | None = None


@dataclass(frozen=True)
class Context:
    """Everything that a commit checks again, and everything that the assessor was shown."""

    space_id: UUID
    generation: int
    owner_id: UUID
    contract: str
    """Of the vectors that were computed."""
    evidence: tuple[EvidenceContext, ...]
    proposals: tuple[ProposalContext, ...]
    known: tuple[KnownContext, ...] = ()
    entities: tuple[EntityCandidate, ...] = ()
    predicates: tuple[PredicateOption, ...] = ()
    sources: tuple[SourceContext, ...] = ()

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Context:
        """Raises ValueError."""
        try:
            return _adapter().validate_python(document)
        except ValidationError:  # its text shows the content
            raise ValueError("not a context") from None

    @property
    def shown(self) -> frozenset[UUID]:
        """The memories whose text the assessor is shown: erasing one of them ends the attempt."""
        candidates = {d.target.memory_id for item in self.evidence for d in item.duplicates}
        return frozenset(candidates | {item.target.memory_id for item in self.known})


@cache
def _adapter() -> TypeAdapter[Context]:
    return TypeAdapter(Context)


# The plan ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class EvidencePlan:
    """`reuse` is the stored memory that the item is one more occurrence of; None and no `same_as`: it is new."""

    reuse: Target | None
    same_as: int | None


@dataclass(frozen=True)
class Endpoint:
    """`entity_id` is None for an entity to be created, or to be found when somebody created it meanwhile.

    `known` are the bearers of the name that the assessor saw and passed over.
    """

    name: str
    key: str
    kind: EntityKind
    entity_id: UUID | None
    known: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class Span:
    """Support in the submitted text of an item, half-open, in code points."""

    item: int
    start: int
    end: int


@dataclass(frozen=True)
class EdgePlan:
    """One relationship of a stored proposal. Exactly one of `object` and `value` is set."""

    proposal: int
    subject: Endpoint
    predicate: str
    register: Register | None
    object: Endpoint | None
    value: ValueView | None
    supports: tuple[Span, ...]


@dataclass(frozen=True)
class NotStored:
    reason: Literal["not_supported_by_evidence", "ambiguous_entity"]
    candidates: tuple[EntityCandidate, ...] = ()


@dataclass(frozen=True)
class Plan:
    """`edges` in the order of the proposals; a proposal without one is in `not_stored`, by its index."""

    evidence: tuple[EvidencePlan, ...]
    edges: tuple[EdgePlan, ...]
    not_stored: Mapping[int, NotStored]


def plan(context: Context, assessment: Assessment) -> Plan:
    """Raises KeyError or ValueError when the two do not belong together: an assessment is validated before."""
    resolver = _Resolver(context)
    edges: list[EdgePlan] = []
    not_stored: dict[int, NotStored] = {}
    for index, (proposal, verdict) in enumerate(zip(context.proposals, assessment.proposals, strict=True)):
        if verdict.ref != proposal.ref:
            raise ValueError("a verdict is about another proposal")
        reason = resolver.not_stored(proposal, verdict)
        if reason is not None:
            not_stored[index] = reason
        else:
            edges.extend(resolver.edge(index, proposal, split) for split in verdict.splits)
    return Plan(_evidence(context, assessment), tuple(edges), not_stored)


def _evidence(context: Context, assessment: Assessment) -> tuple[EvidencePlan, ...]:
    planned: list[EvidencePlan] = []
    for item, verdict in zip(context.evidence, assessment.evidence, strict=True):
        if verdict.ref != item.ref or verdict.rejected:
            raise ValueError("a verdict is about another item, or refuses it")
        offered = {candidate.ref: candidate.target for candidate in item.duplicates}
        if item.same_as is not None:
            planned.append(EvidencePlan(planned[item.same_as].reuse, item.same_as))
        elif item.exact is not None or verdict.duplicate is None:
            planned.append(EvidencePlan(item.exact, None))
        else:
            planned.append(EvidencePlan(offered[verdict.duplicate], None))
    return tuple(planned)


class _Resolver:
    """From references to what they stand for."""

    def __init__(self, context: Context) -> None:
        self._entities = {candidate.ref: candidate for candidate in context.entities}
        self._predicates = {candidate.ref: candidate for candidate in context.predicates}
        self._items = {item.ref: index for index, item in enumerate(context.evidence)}

    def not_stored(self, proposal: ProposalContext, verdict: ProposalVerdict) -> NotStored | None:
        """A proposal is stored as a whole: one ambiguous end of one split is enough to ask the caller."""
        if not verdict.stored:
            return NotStored("not_supported_by_evidence")
        for split in verdict.splits:
            for mention, resolution in ((proposal.subject, split.subject), (proposal.object, split.object)):
                if mention is not None and isinstance(resolution, Ambiguous):
                    return NotStored(
                        "ambiguous_entity", tuple(self._entities[ref] for ref in mention.options)
                    )
        return None

    def edge(self, index: int, proposal: ProposalContext, split: Split) -> EdgePlan:
        register = split.predicate if isinstance(split.predicate, Register) else None
        return EdgePlan(
            proposal=index,
            subject=self._endpoint(proposal.subject, split.subject),
            predicate=self._key(split.predicate),
            register=register,
            object=None if proposal.object is None else self._endpoint(proposal.object, split.object),
            value=proposal.value,
            supports=tuple(Span(self._items[s.evidence], s.start, s.end) for s in split.supports),
        )

    def _key(self, predicate: Chosen | Register) -> str:
        return predicate.key if isinstance(predicate, Register) else self._predicates[predicate.ref].key

    def _endpoint(self, mention: Mention, resolution: Resolution | None) -> Endpoint:
        match resolution:
            case Reuse(ref=ref):
                entity = self._entities[ref]
                return Endpoint(mention.name, mention.key, entity.kind, entity.entity_id)
            case Create():
                known = tuple(self._entities[ref].entity_id for ref in mention.options)
                return Endpoint(mention.name, mention.key, mention.kind, None, known)
        raise ValueError("an endpoint that is neither found nor new")
