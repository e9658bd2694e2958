"""The request bodies of the API: closed objects, bounds in code points unless they say bytes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.names import name_key
from remembrancer.domain.tenant_settings import (
    Burst,
    DailyBytes,
    Days,
    Kind,
    Passages,
    PiiKinds,
    ProposalTtl,
    Rate,
    Severity,
    SkipPrefix,
    Space,
    Threshold,
)
from remembrancer.domain.units import in_base_unit
from remembrancer.domain.values import canonical_value

MAX_CONTENT = 1_000_000
MAX_RECORDS = 5_000
"""Records, blocks or parts of one import."""
MAX_PROPOSAL_CONTENT = 2_000
MAX_SOURCE_PROMPT_BYTES = 2_048
MAX_NAME_KEY_BYTES = 1_000
MAX_ALIASES = 20

EntityKind = Literal["person", "organization", "project", "product", "place", "document", "concept", "other"]

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[Zz]|[+-]\d\d:\d\d)")
_SOURCE = re.compile(
    r"manual|memory|structured|markdown|ump|agent_end|memory_store|session|connector:[a-z0-9_-]{1,62}"
)


def _instant(value: Any) -> Any:
    """RFC 3339 with an offset, to the microsecond; years 1 to 9999 after conversion to UTC."""
    if not isinstance(value, str):
        return value
    if not _RFC3339.fullmatch(value):
        raise PydanticCustomError("instant", "not an RFC 3339 date-time with an offset")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("instant", "not a date-time that exists") from None


def not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return value


def _nameable(value: str) -> str:
    try:
        key = name_key(value)
    except ValueError:
        raise PydanticCustomError("blank", "must have a visible character") from None
    # Compatibility forms may be many times as long as what was sent, and an index entry has an end.
    if len(key.encode()) > MAX_NAME_KEY_BYTES:
        raise PydanticCustomError("too_long", "too long in its compatibility form")
    return value


def _source(value: str) -> str:
    if not _SOURCE.fullmatch(value):
        raise PydanticCustomError("source", "not a known source")
    return value


def _prompt_bytes(value: str) -> str:
    if len(value.encode()) > MAX_SOURCE_PROMPT_BYTES:
        raise PydanticCustomError("too_long", "longer than 2,048 bytes")
    return value


Instant = Annotated[AwareDatetime, BeforeValidator(_instant, json_schema_input_type=str)]
Text500 = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(not_blank)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(not_blank)]
EntityName = Annotated[Name, AfterValidator(_nameable)]
Domain = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
PredicateKey = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(not_blank)]
Source = Annotated[str, StringConstraints(max_length=80), AfterValidator(_source)]
Reason = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    AfterValidator(strip_invisible),
    AfterValidator(not_blank),
]
"""Of a person; characters that nobody sees are none."""
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PublicId = Annotated[str, StringConstraints(min_length=5, max_length=64)]


class Closed(BaseModel):
    # Built at first use: a function needs one or two of these, and building all is a third of its import.
    model_config = ConfigDict(
        extra="forbid", strict=True, hide_input_in_errors=True, frozen=True, defer_build=True
    )


def check_window(valid_from: datetime | None, valid_to: datetime | None) -> None:
    if valid_from is not None and valid_to is not None and valid_from >= valid_to:
        raise PydanticCustomError("window", "valid_from must be before valid_to")


class EntityIn(Closed):
    name: EntityName
    kind: EntityKind = "other"
    aliases: Annotated[list[EntityName], Field(max_length=MAX_ALIASES)] = []


class ValueIn(Closed):
    """A typed value. Numbers and booleans may be sent as JSON numbers and booleans; a number is text from here on, as
    the gate reads it, as it is digested and as it is shown."""

    type: Literal["string", "number", "boolean", "date", "date_time"]
    value: Annotated[str, StringConstraints(min_length=1, max_length=500)] | bool | int | float
    unit: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None

    @field_validator("value")
    @classmethod
    def _written(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("type") != "number" or not isinstance(value, int | float):
            return value
        try:
            return canonical_value("number", value)
        except ValueError:
            return value

    @model_validator(mode="after")
    def _of_its_type(self) -> ValueIn:
        try:
            text = canonical_value(self.type, self.value)
            # What is kept may be in the base of its unit, and is read again as a value.
            number, unit = in_base_unit(text if self.type == "number" else "0", self.unit)
            canonical_value("number", number)
        except (ValueError, OverflowError):
            raise PydanticCustomError("value", "not a value of the given type") from None
        if unit == "":
            raise PydanticCustomError("blank", "must not be blank")
        return self


class RelationIn(Closed):
    subject: EntityName
    subject_kind: EntityKind | None = None
    predicate: PredicateKey
    object: EntityName | None = None
    object_kind: EntityKind | None = None
    value: ValueIn | None = None
    polarity: Literal["+", "-"] = "+"
    valid_from: Instant | None = None
    valid_to: Instant | None = None

    @model_validator(mode="after")
    def _one_object(self) -> RelationIn:
        if (self.object is None) == (self.value is None):
            raise PydanticCustomError("one_object", "exactly one of object and value")
        check_window(self.valid_from, self.valid_to)
        return self


class Captured(Closed):
    """What an ingest request and a proposal have in common."""

    title: Text500 | None = None
    kind: Kind = "fact"
    domain: Domain | None = None
    author: Name | None = None
    source: Source = "structured"
    assertion_kind: Literal["stated", "inferred"] = "stated"
    observed_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    expires_at: Instant | None = None
    data_subjects: Annotated[list[Subject], Field(max_length=20)] = []
    source_uri: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = None
    revision: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    entities: Annotated[list[EntityIn], Field(max_length=200)] = []
    relations: Annotated[list[RelationIn], Field(max_length=200)] = []

    @model_validator(mode="after")
    def _window(self) -> Captured:
        check_window(self.valid_from, self.valid_to)
        return self


class IngestRequest(Captured):
    content: Annotated[
        str, StringConstraints(min_length=1, max_length=MAX_CONTENT), AfterValidator(not_blank)
    ]
    target_space: Space | None = None


class ProposalRequest(Captured):
    content: Annotated[
        str, StringConstraints(min_length=1, max_length=MAX_PROPOSAL_CONTENT), AfterValidator(not_blank)
    ]
    source_prompt: Annotated[str, AfterValidator(_prompt_bytes)] | None = None


class Supersedes(Closed):
    memory_id: PublicId
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


class ApproveRequest(Closed):
    content_digest: Digest
    supersedes: Supersedes | None = None
    override_reason: Reason | None = None
    reason: Reason | None = None


class RejectRequest(Closed):
    content_digest: Digest | None = None
    reason: Reason | None = None


class EditRequest(Closed):
    content_digest: Digest
    proposal: ProposalRequest


class DecideRow(Closed):
    proposal_id: PublicId
    decision: Literal["approve", "reject"]
    content_digest: Digest
    supersedes: Supersedes | None = None
    override_reason: Reason | None = None
    reason: Reason | None = None


class DecideRequest(Closed):
    rows: Annotated[list[DecideRow], Field(min_length=1, max_length=100)]


class ReleaseRequest(Closed):
    content_digest: Digest
    reason: Reason


class QuarantineRejectRequest(Closed):
    content_digest: Digest | None = None
    reason: Reason | None = None


class ResolveRequest(Closed):
    resolution: Literal["resolved", "dismissed"]
    reason: Reason | None = None


class RecallRequest(Closed):
    query: Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    spaces: Annotated[list[Space], Field(min_length=1, max_length=2)] | None = None
    domains: Annotated[list[Domain], Field(min_length=1, max_length=50)] | None = None
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=5)] | None = None
    sources: Annotated[list[Source], Field(min_length=1, max_length=20)] | None = None
    since: Instant | None = None
    at: Instant | None = None
    known_at: Instant | None = None
    min_relevance: Annotated[float, Field(ge=0, le=1)] | None = None
    """A calibrated probability: hits less likely to be part of the answer are left out."""
    include: Annotated[list[Literal["decayed", "nearest"]], Field(max_length=2)] = []
    context: Annotated[int, Field(ge=0, le=5)] = 0
    """Neighbouring turns of the same source, before and after each hit."""
    graph: bool = True
    token_budget: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    explain: bool = False


class VerifyRequest(Closed):
    """Checked against these memories, or against what recall finds for the query (the claim when neither)."""

    claim: Annotated[str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(not_blank)]
    memory_ids: Annotated[list[PublicId], Field(min_length=1, max_length=100)] | None = None
    query: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> VerifyRequest:
        if self.memory_ids is not None and self.query is not None:
            raise PydanticCustomError("one_source", "memory_ids or query, not both")
        return self


class PurgeRequest(Closed):
    """What is erased is named by exactly one of ids (of memories, proposals or both), data subject and owner."""

    memory_ids: Annotated[list[PublicId], Field(min_length=1, max_length=1_000)] | None = None
    proposal_ids: Annotated[list[PublicId], Field(min_length=1, max_length=1_000)] | None = None
    data_subject: Subject | None = None
    owner: PublicId | None = None
    dry_run: bool
    reason: Literal["data_subject_request", "poisoned", "secret", "unlawful", "retention", "other"]
    """A closed list: the tombstone and the audit row keep it, and free text would outlive the erasure."""

    @model_validator(mode="after")
    def _one_selector(self) -> PurgeRequest:
        ids = self.memory_ids is not None or self.proposal_ids is not None
        if sum((ids, self.data_subject is not None, self.owner is not None)) != 1:
            raise PydanticCustomError("one_selector", "exactly one of ids, data_subject and owner")
        return self


Issuer = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,500}$")]
CredentialSubject = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
Capabilities = Annotated[list[Literal["reviewer", "auditor", "admin", "pii"]], Field(max_length=4)]
TeamGrant = Literal["none", "read", "write"]


class PrincipalRequest(Closed):
    name: Name
    kind: Literal["agent", "human"]
    issuer: Issuer
    subject: CredentialSubject
    capabilities: Capabilities = []
    team_grant: TeamGrant = "none"


class CredentialIn(Closed):
    issuer: Issuer
    subject: CredentialSubject


class PrincipalPatch(Closed):
    """Members that are absent stay as they are."""

    name: Name | None = None
    active: bool | None = None
    capabilities: Capabilities | None = None
    team_grant: TeamGrant | None = None
    add_credential: CredentialIn | None = None
    remove_credential: CredentialIn | None = None
    revoke_keys: Annotated[list[PublicId], Field(max_length=20)] = []


class KeyRequest(Closed):
    algorithm: Literal["ed25519", "ecdsa-p256-sha256"]
    public_key: Annotated[str, StringConstraints(min_length=50, max_length=2_000)]


class RetentionPatch(Closed):
    fact: Days | None = None
    episodic: Days | None = None
    procedure: Days | None = None
    step: Days | None = None
    decision: Days | None = None


class ScreenPatch(Closed):
    """Members that are absent stay as they are; null is the deployment's own."""

    reject_at: Threshold | None = None
    hold_at: Threshold | None = None
    rules_reject: Severity | None = None


class PiiPatch(Closed):
    """Members that are absent stay as they are; a list takes the place of the one before."""

    hold: PiiKinds | None = None
    refuse: PiiKinds | None = None


class SettingsPatch(Closed):
    """Members that are absent stay as they are."""

    default_space: Space | None = None
    four_eyes: bool | None = None
    secrets: Literal["redact", "reject"] | None = None
    screen: ScreenPatch | None = None
    pii: PiiPatch | None = None
    proposal_ttl_s: ProposalTtl | None = None
    retention: RetentionPatch | None = None
    skip_prefixes: Annotated[list[SkipPrefix], Field(max_length=50)] | None = None
    route_at: Annotated[float, Field(ge=0, le=1)] | None = None
    principal_rate: Rate | None = None
    principal_burst: Burst | None = None
    tenant_rate: Rate | None = None
    tenant_burst: Burst | None = None
    principal_daily_bytes: DailyBytes | None = None
    tenant_daily_bytes: DailyBytes | None = None
    tenant_passages: Passages | None = None
    dsar_days: Days | None = None
