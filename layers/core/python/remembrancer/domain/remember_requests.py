"""The request of `POST /v1/remember`: evidence, and the relationships that the caller reads in it.

The server owns identity, spans and lifecycle: a caller names things, or an id that must hold exactly.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from remembrancer.domain.requests import (
    Closed,
    EntityKind,
    EntityName,
    Instant,
    PredicateKey,
    Subject,
    ValueIn,
    check_window,
    not_blank,
)
from remembrancer.domain.tenant_settings import Space

CONTRACT_VERSION = "1"
OPERATION = "remember"
"""Scope of the idempotency key, with the tenant and the permanent owner."""

MAX_EVIDENCE = 20
MAX_EVIDENCE_CONTENT = 4_000
MAX_RELATIONSHIPS = 200
MAX_TEXT = 200

SourceType = Literal["conversation", "document", "observation", "manual"]
Authority = Literal["authoritative", "primary", "secondary", "inferred", "unknown"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _printable(value: str) -> str:
    if _CONTROL.search(value):
        raise PydanticCustomError("key", "must not have a control character")
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("number", "must be finite")
    return value


def _unique(values: list[Any]) -> list[Any]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("unique", "must not repeat an item")
    return values


IdempotencyKey = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128),
    AfterValidator(_printable),
    AfterValidator(not_blank),
]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT), AfterValidator(not_blank)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(not_blank)]
Ref = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$")]
MetadataKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
Scalar = Annotated[
    Annotated[str, StringConstraints(max_length=500)]
    | bool
    | int
    | Annotated[float, AfterValidator(_finite)],
    Field(union_mode="smart"),
]
MemoryId = Annotated[str, StringConstraints(pattern=r"^mem_[0-9a-f]{32}$")]
EntityId = Annotated[str, StringConstraints(pattern=r"^ent_[0-9a-f]{32}$")]
RelationshipId = Annotated[str, StringConstraints(pattern=r"^rel_[0-9a-f]{32}$")]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class EvidenceIn(Closed):
    """One submitted text, kept byte-exact."""

    content: Annotated[
        str, StringConstraints(min_length=1, max_length=MAX_EVIDENCE_CONTENT), AfterValidator(not_blank)
    ]
    force_insert: bool = False
    """No semantic duplicate is looked for; exact reuse still holds."""
    source_type: SourceType = "conversation"
    source: ShortText | None = None
    source_group: ShortText | None = None
    authority: Authority = "unknown"
    source_key: ShortText | None = None
    source_revision: ShortText | None = None
    previous_source_revision: ShortText | None = None
    supersedes_evidence_ids: Annotated[list[MemoryId], Field(max_length=50), AfterValidator(_unique)] = Field(
        default_factory=list
    )
    labels: Annotated[list[Label], Field(max_length=20), AfterValidator(_unique)] = Field(
        default_factory=list
    )
    metadata: Annotated[dict[MetadataKey, Scalar], Field(max_length=20)] = Field(default_factory=dict)
    observed_at: Instant | None = None
    data_subjects: Annotated[list[Subject], Field(max_length=20), AfterValidator(_unique)] = Field(
        default_factory=list
    )

    @model_validator(mode="after")
    def _revision_of_a_source(self) -> EvidenceIn:
        if (self.source_key is None) != (self.source_revision is None):
            raise PydanticCustomError("source_revision", "source_key and source_revision go together")
        if self.previous_source_revision is not None and self.source_key is None:
            raise PydanticCustomError("source_revision", "a previous revision needs source_key")
        if (
            self.previous_source_revision is not None
            and self.previous_source_revision == self.source_revision
        ):
            raise PydanticCustomError("source_revision", "the previous revision is another one")
        return self

    @property
    def has_lifecycle(self) -> bool:
        """Whether it follows the write rules of its own, so that no semantic duplicate stands in for it."""
        return self.source_key is not None or bool(self.supersedes_evidence_ids)


class EntityRef(Closed):
    """By name, to be resolved; or by an id, an exact constraint that is revalidated."""

    name: EntityName | None = None
    known_entity_id: EntityId | None = None
    entity_kind: EntityKind = "other"

    @model_validator(mode="after")
    def _one_way(self) -> EntityRef:
        if (self.name is None) == (self.known_entity_id is None):
            raise PydanticCustomError("one_name", "exactly one of name and known_entity_id")
        return self


class PredicateRef(Closed):
    proposed_key: PredicateKey | None = None
    known_predicate_key: PredicateKey | None = None

    @model_validator(mode="after")
    def _one_key(self) -> PredicateRef:
        if (self.proposed_key is None) == (self.known_predicate_key is None):
            raise PydanticCustomError("one_key", "exactly one of proposed_key and known_predicate_key")
        return self


class ObjectRef(Closed):
    entity: EntityRef | None = None
    value: ValueIn | None = None

    @model_validator(mode="after")
    def _one_object(self) -> ObjectRef:
        if (self.entity is None) == (self.value is None):
            raise PydanticCustomError("one_object", "exactly one of entity and value")
        return self


class CorrectionTarget(Closed):
    relationship_id: RelationshipId
    expected_version: Version


class RelationshipIn(Closed):
    """A proposal: what the caller reads in the cited evidence."""

    ref: Ref
    subject: EntityRef
    predicate: PredicateRef
    object: ObjectRef
    polarity: Literal["+", "-"] = "+"
    evidence_indices: Annotated[
        list[Annotated[int, Field(ge=0, lt=MAX_EVIDENCE)]],
        Field(min_length=1, max_length=MAX_EVIDENCE),
        AfterValidator(_unique),
    ]
    known_evidence_ids: Annotated[list[MemoryId], Field(max_length=20), AfterValidator(_unique)] = Field(
        default_factory=list
    )
    """Read-only context; never newly submitted evidence."""
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    correction_target: CorrectionTarget | None = None
    client_comment: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None

    @model_validator(mode="after")
    def _window(self) -> RelationshipIn:
        check_window(self.valid_from, self.valid_to)
        return self


class RememberRequest(Closed):
    idempotency_key: IdempotencyKey
    target_space: Space
    evidence: Annotated[list[EvidenceIn], Field(min_length=1, max_length=MAX_EVIDENCE)]
    relationships: Annotated[list[RelationshipIn], Field(min_length=1, max_length=MAX_RELATIONSHIPS)]

    @model_validator(mode="after")
    def _covered(self) -> RememberRequest:
        refs = [relationship.ref for relationship in self.relationships]
        if len(set(refs)) != len(refs):
            raise PydanticCustomError("unique_ref", "each relationship has a ref of its own")
        cited = {index for relationship in self.relationships for index in relationship.evidence_indices}
        if max(cited) >= len(self.evidence):
            raise PydanticCustomError("evidence_index", "an evidence index names no item")
        if cited != set(range(len(self.evidence))):
            raise PydanticCustomError("coverage", "at least one relationship cites each evidence item")
        return self


class CancelRequest(Closed):
    reason: Literal["no_longer_needed", "wrong_request", "other"] = "other"
    """A closed list: the chain keeps it."""


def hashed_form(request: RememberRequest) -> dict[str, Any]:
    """What an idempotency key is bound to: JSON-ready, defaults dropped, the members that are sets sorted.

    The order of evidence counts, since relationships cite it by index; texts are byte-exact. The key itself
    is not part of it.
    """
    body = request.model_dump(mode="json", exclude={"idempotency_key"}, exclude_defaults=True)
    for item in body["evidence"]:
        _sort(item, "supersedes_evidence_ids", "labels", "data_subjects")
    for proposal in body["relationships"]:
        _sort(proposal, "evidence_indices", "known_evidence_ids")
    return body


def _sort(members: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in members:
            members[name] = sorted(members[name])
