"""A tenant's settings tighten the deployment's policy and never weaken it, whatever is stored."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remembrancer.domain.pii import find_pii
from remembrancer.domain.requests import SettingsPatch
from remembrancer.domain.screen import Severity, Signal, Verdict
from remembrancer.domain.screen_policy import SEVERITIES, ScreenPolicy, effective, faults
from remembrancer.domain.tenant_settings import PiiKind, PiiSettings, ScreenSettings, TenantSettings

RANK = {Verdict.CLEAN: 0, Verdict.QUARANTINE: 1, Verdict.REJECT: 2}
KINDS = get_args(PiiKind)
thresholds = st.floats(0, 1, exclude_min=True)
deployments = st.tuples(thresholds, thresholds).map(lambda two: ScreenPolicy(True, max(two), min(two)))
screens = st.builds(
    ScreenSettings,
    reject_at=st.none() | thresholds,
    hold_at=st.none() | thresholds,
    rules_reject=st.none() | st.sampled_from(SEVERITIES),
)
kinds = st.lists(st.sampled_from(KINDS), unique=True, max_size=6).map(tuple)
tenants = st.builds(
    lambda screen, hold, refuse: TenantSettings(screen=screen, pii=PiiSettings(hold=hold, refuse=refuse)),
    screens,
    kinds,
    kinds,
)


def rank(decision: str) -> int:
    return RANK[Verdict(decision)]


@given(deployments, tenants, st.floats(0, 1), st.lists(st.sampled_from(SEVERITIES)), kinds)
def test_no_text_fares_better_than_with_the_deployment_alone(
    deployment: ScreenPolicy, tenant: TenantSettings, score: float, severities: list[str], found: Any
) -> None:
    own, alone = effective(deployment, tenant), effective(deployment, TenantSettings())
    assert rank(own.by_score(score)) >= rank(alone.by_score(score))
    assert rank(own.by_severity(severities)) >= rank(alone.by_severity(severities))
    assert rank(own.by_pii(found)) >= rank(alone.by_pii(found))
    assert own.hold_at <= own.reject_at


@given(deployments, screens)
def test_what_is_not_refused_is_exactly_what_then_holds(
    deployment: ScreenPolicy, asked: ScreenSettings
) -> None:
    errors = {error.code for error in faults(deployment, asked.model_dump(), asked)}
    policy = effective(deployment, TenantSettings(screen=asked))
    weaker = (asked.reject_at or 0) > deployment.reject_at or (asked.hold_at or 0) > deployment.quarantine_at
    assert ("weaker_than_deployment" in errors) == weaker
    if not errors:
        assert policy.reject_at == (deployment.reject_at if asked.reject_at is None else asked.reject_at)
        assert asked.hold_at is None or policy.hold_at == min(asked.hold_at, policy.reject_at)


def test_the_defaults_are_the_deployments_own() -> None:
    policy = effective(ScreenPolicy(True, 0.9, 0.7), TenantSettings())
    assert [policy.by_score(score) for score in (0.9, 0.8999, 0.7, 0.6999, 0.0)] == [
        "reject", "quarantine", "quarantine", "clean", "clean",
    ]  # fmt: skip
    assert policy.by_pii(KINDS) == "clean" and not policy.watches_pii
    for severity in Severity:
        own = Signal("/content", "f", "r", severity, 0, 1, "raw").verdict
        assert rank(policy.by_severity([severity])) <= rank(own), "the rules' own verdict stands"


@pytest.mark.parametrize(
    ("least", "refused"),
    [("critical", {"critical"}), ("high", {"critical", "high"}), ("medium", {"critical", "high", "medium"})],
)
def test_a_rule_refuses_from_the_severity_on_that_the_tenant_names(least: Any, refused: set[str]) -> None:
    policy = effective(ScreenPolicy(), TenantSettings(screen=ScreenSettings(rules_reject=least)))
    assert {s for s in SEVERITIES if policy.by_severity([s]) == "reject"} == refused


def test_refusal_wins_over_holding() -> None:
    pii = PiiSettings(hold=("card", "email"), refuse=("card",))
    policy = effective(ScreenPolicy(), TenantSettings(pii=pii))
    assert (policy.by_pii(["card", "email"]), policy.by_pii(["email"]), policy.by_pii(["ip"])) == (
        "reject", "quarantine", "clean",
    )  # fmt: skip
    assert (policy.pii_hold, policy.pii_refuse) == ({"email"}, {"card"})


def test_the_kinds_are_those_that_are_found() -> None:
    """A setting that names a kind which nothing finds would be a control that is not there."""
    texts = {
        "email": "ann@example.org",
        "phone": "call +41 44 668 18 00",
        "card": "4111 1111 1111 1111",
        "iban": "DE89 3704 0044 0532 0130 00",
        "ssn": "SSN 536-22-8726",
        "ip": "192.0.2.17",
    }
    assert set(texts) == set(KINDS)
    for kind, text in texts.items():
        assert kind in {finding.kind for finding in find_pii(f"It is {text} .")}, kind


@given(deployments, tenants, tenants)
def test_the_version_names_the_policy_and_nothing_else(
    deployment: ScreenPolicy, one: TenantSettings, other: TenantSettings
) -> None:
    first, second = effective(deployment, one), effective(deployment, other)
    assert (first.version == second.version) == (first.to_dict() == second.to_dict())
    assert len(first.version) == 16 and first == effective(deployment, one)


def test_thresholds_without_a_second_layer_are_refused_and_removing_them_is_not() -> None:
    off = ScreenPolicy(required=False)
    [error] = faults(off, {"reject_at": 0.5}, ScreenSettings(reject_at=0.5))
    assert (error.pointer, error.code) == ("/screen/reject_at", "layer2_off")
    assert faults(off, {"reject_at": None}, ScreenSettings()) == []


def test_a_change_elsewhere_is_not_held_up_by_what_a_deployment_has_made_weaker_since() -> None:
    stored = ScreenSettings(reject_at=0.9, hold_at=0.95)
    assert faults(ScreenPolicy(True, 0.5, 0.4), {}, stored) == []


@pytest.mark.parametrize(
    "body",
    [
        {"screen": {"reject_at": 0}},
        {"screen": {"hold_at": 1.01}},
        {"screen": {"reject_at": float("nan")}},
        {"screen": {"reject_at": True}},
        {"screen": {"rules_reject": "low"}},
        {"screen": {"required": False}},
        {"pii": {"refuse": ["passport"]}},
        {"pii": {"hold": ["ip"] * 7}},
        {"pii": {"mask": []}},
    ],
)
def test_what_is_no_setting_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SettingsPatch.model_validate(body)
