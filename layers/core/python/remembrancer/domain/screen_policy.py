"""What decides about a text at the gate: the deployment's policy, which a tenant's settings can only tighten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from remembrancer.domain.canonical import canonical_json, digest
from remembrancer.domain.problems import FieldError
from remembrancer.domain.screen_thresholds import QUARANTINE_AT, REJECT_AT
from remembrancer.domain.tenant_settings import ScreenSettings, Severity, TenantSettings

SEVERITIES: Final[tuple[Severity, ...]] = ("medium", "high", "critical")
"""Of a rule, the least first."""

Decision = Literal["clean", "quarantine", "reject"]
"""The values of `screen.Verdict`, whose package every function would have to load for them."""


@dataclass(frozen=True)
class ScreenPolicy:
    """The deployment's own: the thresholds of layer 2, and whether it is configured at all.

    Configured and missing (`required` without a model) fails closed: everything is quarantined.
    """

    required: bool = False
    reject_at: float = REJECT_AT
    quarantine_at: float = QUARANTINE_AT


@dataclass(frozen=True)
class WritePolicy:
    """What holds for the writes of one tenant."""

    required: bool
    reject_at: float
    hold_at: float
    rules_reject: Severity
    secrets: Literal["redact", "reject"]
    pii_hold: frozenset[str]
    pii_refuse: frozenset[str]

    def by_score(self, score: float) -> Decision:
        """Of layer 2's score, 0..1; both thresholds are inclusive."""
        if score >= self.reject_at:
            return "reject"
        return "quarantine" if score >= self.hold_at else "clean"

    def by_severity(self, severities: Iterable[str]) -> Decision:
        """What the findings of the rules come to beyond the rules' own verdict."""
        least = SEVERITIES.index(self.rules_reject)
        return "reject" if any(SEVERITIES.index(one) >= least for one in severities) else "clean"

    def by_pii(self, kinds: Iterable[str]) -> Decision:
        found = frozenset(kinds)
        if found & self.pii_refuse:
            return "reject"
        return "quarantine" if found & self.pii_hold else "clean"

    @property
    def watches_pii(self) -> bool:
        return bool(self.pii_hold or self.pii_refuse)

    def to_dict(self) -> dict[str, Any]:
        """What is kept beside every verdict and shown as effective: enough to explain a decision later."""
        return {"version": self.version, **self._rules()}

    @cached_property
    def version(self) -> str:
        """Names these rules: equal policies have equal names, in every tenant and after every change."""
        return digest({"policy": canonical_json(self._rules())}).hex()[:16]

    def _rules(self) -> dict[str, Any]:
        return {
            "layer2": self.required,
            "reject_at": self.reject_at,
            "hold_at": self.hold_at,
            "rules_reject": self.rules_reject,
            "secrets": self.secrets,
            "pii_hold": sorted(self.pii_hold),
            "pii_refuse": sorted(self.pii_refuse),
        }


def effective(deployment: ScreenPolicy, tenant: TenantSettings) -> WritePolicy:
    """The stricter of the two in every member, whatever is stored: a deployment may have become stricter since."""
    own = tenant.screen
    reject_at = min(deployment.reject_at, 1.0 if own.reject_at is None else own.reject_at)
    hold_at = min(deployment.quarantine_at, 1.0 if own.hold_at is None else own.hold_at)
    refuse = frozenset(tenant.pii.refuse)
    return WritePolicy(
        required=deployment.required,
        reject_at=reject_at,
        hold_at=min(hold_at, reject_at),
        rules_reject=own.rules_reject or "critical",
        secrets=tenant.secrets,
        pii_hold=frozenset(tenant.pii.hold) - refuse,
        pii_refuse=refuse,
    )


def faults(deployment: ScreenPolicy, asked: Mapping[str, Any], merged: ScreenSettings) -> list[FieldError]:
    """Why a tenant cannot have the thresholds that it asks for: weaker than the deployment's, or without a layer 2;
    or crossed, once `merged` with those it has."""
    found = []
    for name, floor in (("reject_at", deployment.reject_at), ("hold_at", deployment.quarantine_at)):
        value = asked.get(name)
        if value is None:
            continue
        if not deployment.required:
            found.append(FieldError(f"/screen/{name}", "layer2_off", "this deployment has no layer 2"))
        elif value > floor:
            found.append(
                FieldError(f"/screen/{name}", "weaker_than_deployment", "is weaker than the deployment's own")
            )
    crossed = (
        merged.reject_at is not None and merged.hold_at is not None and merged.hold_at > merged.reject_at
    )
    if asked and crossed:
        found.append(FieldError("/screen/hold_at", "above_reject_at", "is above reject_at"))
    return found
