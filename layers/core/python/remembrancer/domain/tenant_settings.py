"""What a tenant may decide about itself. Stored as JSON in the tenant's row, changed by a signed request."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["fact", "procedure", "step", "decision", "episodic"]
Space = Literal["team_shared", "private"]
Days = Annotated[int, Field(ge=1, le=36_500)]
SkipPrefix = Annotated[str, Field(min_length=1, max_length=100)]
Rate = Annotated[int, Field(ge=1, le=100_000)]
Burst = Annotated[int, Field(ge=10, le=1_000_000)]
DailyBytes = Annotated[int, Field(ge=10_000, le=10**13)]
Passages = Annotated[int, Field(ge=100, le=10**10)]
ProposalTtl = Annotated[int, Field(ge=600, le=90 * 86_400)]
Threshold = Annotated[float, Field(gt=0, le=1)]
Severity = Literal["medium", "high", "critical"]
PiiKind = Literal["card", "email", "iban", "ip", "phone", "ssn"]
PiiKinds = Annotated[tuple[PiiKind, ...], Field(max_length=6, strict=False)]


class _Stored(BaseModel):
    # Built at first use, as requests are.
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True
    )


class Retention(_Stored):
    """Days until a memory of a kind decays, unless its own expires_at says otherwise."""

    fact: Days = 365
    episodic: Days = 30
    procedure: Days = 730
    step: Days = 730
    decision: Days = 730


class ScreenSettings(_Stored):
    """How much stricter than the deployment the screen is here; None is the deployment's own."""

    reject_at: Threshold | None = None
    """Score of layer 2 from which a text is refused."""
    hold_at: Threshold | None = None
    """Score of layer 2 from which it is held for a person."""
    rules_reject: Severity | None = None
    """The least severity of a rule that refuses; what is below is held."""


class PiiSettings(_Stored):
    """Kinds of personal data that are not only flagged and masked: held for a person, or refused. Refusal wins."""

    hold: PiiKinds = ()
    refuse: PiiKinds = ()


class TenantSettings(_Stored):
    default_space: Space = "team_shared"
    four_eyes: bool = False
    """Nobody decides a proposal of their own, or releases a memory of their own that the screen holds."""
    secrets: Literal["redact", "reject"] = "redact"
    screen: ScreenSettings = ScreenSettings()
    pii: PiiSettings = PiiSettings()
    proposal_ttl_s: ProposalTtl = 7 * 86_400
    retention: Retention = Retention()
    skip_prefixes: tuple[SkipPrefix, ...] = Field(default=(), max_length=50, strict=False)
    """Entries of imported memory files that begin so are dropped."""
    route_at: Annotated[float, Field(ge=0, le=1)] = 0.30
    """Cosine to a domain's centroid from which a text without a domain is filed there."""

    dsar_days: Days = 1_825
    """How long a closed request of a data subject is kept, with its certificate."""

    principal_rate: Rate = 100
    """Requests a second that a principal may keep up; `burst` of them at once."""
    principal_burst: Burst = 1_000
    tenant_rate: Rate = 1_000
    """The same of all the tenant's principals together."""
    tenant_burst: Burst = 10_000
    principal_daily_bytes: DailyBytes = 500_000_000
    """Bytes of requests that carry text, in any 24 hours; what is not used does not add up."""
    tenant_daily_bytes: DailyBytes = 5_000_000_000
    tenant_passages: Passages = 20_000_000
    """Passages that the tenant may keep, as the scheduled statistics counted them last."""

    @property
    def proposal_ttl(self) -> timedelta:
        return timedelta(seconds=self.proposal_ttl_s)
