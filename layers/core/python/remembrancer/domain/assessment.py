"""What an assessor is asked and what it decided, as plain values.

Every `ref` is opaque and means something in one request only (`e1` evidence, `d1` duplicate candidate, `k1`
known evidence, `n1` entity candidate, `p1` predicate, `r1` proposal): no tenant, owner or database id goes out.
Times are RFC 3339 texts in UTC. Spans are half-open, in code points of the evidence text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from remembrancer.domain.requests import EntityKind

ValueType = Literal["string", "number", "boolean", "date", "date_time"]
Polarity = Literal["+", "-"]
PredicateKind = Literal["state", "event"]
Cardinality = Literal["one", "many"]
ObjectKind = Literal[EntityKind, ValueType]
"""What the object of a predicate may be: an entity of a kind or a value of a type."""
FindingKind = Literal[
    "instruction_override",
    "role_spoofing",
    "active_markup",
    "hidden_control",
    "credential_extraction",
    "exfiltration",
    "other",
]

MAX_SPLITS = 50
MAX_SUPPORTS = 20
MAX_FINDINGS = 20
MAX_ISSUES = 100


@dataclass(frozen=True)
class DuplicateOption:
    ref: str
    text: str


@dataclass(frozen=True)
class EvidenceView:
    ref: str
    text: str
    """Byte-exact as submitted."""
    duplicates: tuple[DuplicateOption, ...] = ()
    """Stored evidence that may say the same; the only thing the item may be called a duplicate of."""


@dataclass(frozen=True)
class KnownView:
    """Stored evidence that the proposals name as context. It supports nothing."""

    ref: str
    text: str


@dataclass(frozen=True)
class EntityOption:
    """An entity that bears the mentioned name, or the one the caller named. It has one ref in a request."""

    ref: str
    name: str
    kind: EntityKind
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class MentionView:
    """An endpoint of a proposal. A `required` entity is among the options and is the only right choice."""

    name: str
    kind: EntityKind
    options: tuple[EntityOption, ...] = ()
    required: str | None = None


@dataclass(frozen=True)
class ValueView:
    type: ValueType
    text: str
    """The canonical form (domain/values.py)."""
    original: str
    unit: str | None = None


@dataclass(frozen=True)
class PredicateOption:
    """An active predicate. Empty kinds mean any."""

    ref: str
    key: str
    kind: PredicateKind
    cardinality: Cardinality
    subject_kinds: tuple[EntityKind, ...] = ()
    object_kinds: tuple[ObjectKind, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredicateView:
    """What the proposal says: a proposed key, or a key that must be used and is then among the options."""

    proposed_key: str | None
    options: tuple[PredicateOption, ...] = ()
    required: str | None = None


@dataclass(frozen=True)
class ProposalView:
    ref: str
    subject: MentionView
    predicate: PredicateView
    object: MentionView | ValueView
    polarity: Polarity
    valid_from: str | None
    valid_to: str | None
    evidence: tuple[str, ...]
    """Refs of the submitted evidence it cites; each of its supports lies in one of them."""
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class AssessmentRequest:
    evidence: tuple[EvidenceView, ...]
    proposals: tuple[ProposalView, ...]
    known: tuple[KnownView, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return _dump(AssessmentRequest, self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> AssessmentRequest:
        """Raises ValueError."""
        return _load(cls, document)


@dataclass(frozen=True)
class SecurityFinding:
    kind: FindingKind
    start: int
    end: int


@dataclass(frozen=True)
class EvidenceVerdict:
    """`rejected` has at least one finding. `duplicate` is a duplicate option's ref; None means new evidence."""

    ref: str
    rejected: bool
    findings: tuple[SecurityFinding, ...] = ()
    duplicate: str | None = None


@dataclass(frozen=True)
class Reuse:
    ref: str
    resolution: Literal["reuse"] = "reuse"


@dataclass(frozen=True)
class Create:
    """A new entity with the name and kind of the mention."""

    resolution: Literal["create"] = "create"


@dataclass(frozen=True)
class Ambiguous:
    """The text does not tell which of the mention's options is meant."""

    resolution: Literal["ambiguous"] = "ambiguous"


Resolution = Reuse | Create | Ambiguous


@dataclass(frozen=True)
class Chosen:
    ref: str
    choice: Literal["chosen"] = "chosen"


@dataclass(frozen=True)
class Register:
    """A predicate to add. `key` is snake_case of at most 64 characters. Empty kinds mean any."""

    key: str
    kind: PredicateKind
    cardinality: Cardinality
    subject_kinds: tuple[EntityKind, ...] = ()
    object_kinds: tuple[ObjectKind, ...] = ()
    choice: Literal["register"] = "register"


@dataclass(frozen=True)
class SupportSpan:
    evidence: str
    start: int
    end: int


@dataclass(frozen=True)
class Split:
    """One relationship of a stored proposal. Polarity, value and validity are the proposal's own."""

    subject: Resolution
    object: Resolution | None
    """None when the object is a value."""
    predicate: Chosen | Register
    supports: tuple[SupportSpan, ...]


@dataclass(frozen=True)
class ProposalVerdict:
    """`stored` has 1 to 50 splits, no two with the same subject, predicate and object; else there is none."""

    ref: str
    stored: bool
    splits: tuple[Split, ...] = ()


@dataclass(frozen=True)
class Assessment:
    """A validated answer: one verdict for each evidence item and each proposal, in the order of the request."""

    evidence: tuple[EvidenceVerdict, ...]
    proposals: tuple[ProposalVerdict, ...]

    def to_json(self) -> dict[str, Any]:
        return _dump(Assessment, self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Assessment:
        """Raises ValueError."""
        return _load(cls, document)


@dataclass(frozen=True)
class Issue:
    """One fault of an answer. The pointer (RFC 6901, into the answer) and the fixed sentence hold no text of
    the request and none of the answer."""

    pointer: str
    code: str
    detail: str


@dataclass(frozen=True)
class Turn:
    """An answer that did not validate, and why."""

    answer: str
    issues: tuple[Issue, ...]


@dataclass(frozen=True)
class Conversation:
    """All that the caller of the model is given: the request and the turns that failed, oldest first."""

    request: AssessmentRequest
    turns: tuple[Turn, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return _dump(Conversation, self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Conversation:
        """Raises ValueError."""
        return _load(cls, document)


_Value = TypeVar("_Value")


@cache
def _adapters() -> dict[Any, TypeAdapter[Any]]:
    return {kind: TypeAdapter(kind) for kind in (AssessmentRequest, Assessment, Conversation)}


def _dump(kind: type[_Value], value: _Value) -> dict[str, Any]:
    document: dict[str, Any] = _adapters()[kind].dump_python(value, mode="json")
    return document


def _load(kind: type[_Value], document: Mapping[str, Any]) -> _Value:
    try:
        value: _Value = _adapters()[kind].validate_python(document)
    except ValidationError:  # its text shows the content
        raise ValueError("not a document of this kind") from None
    return value
