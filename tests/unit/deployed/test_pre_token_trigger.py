"""A person's token carries exactly the scopes of the person's groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.manifest import FUNCTIONS, GROUP_SCOPES, HUMAN_GROUPS, SCOPES
from functions.pre_token.handler import handler, scopes_of


def _event(groups: list[str] | None) -> dict[str, Any]:
    """As Cognito sends it, event version 2."""
    return {
        "version": "2",
        "triggerSource": "TokenGeneration_HostedAuth",
        "request": {
            "userAttributes": {"sub": "0"},
            "groupConfiguration": {
                "groupsToOverride": groups,
                "iamRolesToOverride": [],
                "preferredRole": None,
            },
            "scopes": ["openid"],
        },
        "response": {"claimsAndScopeOverrideDetails": None},
    }


def _access(groups: list[str] | None) -> dict[str, list[str]]:
    details = handler(_event(groups), None)["response"]["claimsAndScopeOverrideDetails"]
    generation: dict[str, list[str]] = details["accessTokenGeneration"]
    return generation


@pytest.mark.parametrize("groups", [None, [], ["pii"], ["staff"]])
def test_without_a_group_that_counts_there_is_no_scope(groups: list[str] | None) -> None:
    assert _access(groups)["scopesToAdd"] == []
    assert set(_access(groups)["scopesToSuppress"]) == {f"memory/{scope}" for scope in SCOPES}


def test_a_reviewer_is_no_admin() -> None:
    granted = _access(["reviewer"])["scopesToAdd"]
    assert "memory/review" in granted
    assert not {"memory/admin", "memory/audit"} & set(granted)


@given(st.lists(st.sampled_from([*HUMAN_GROUPS, "other", "Admin", ""])))
def test_added_and_suppressed_are_the_whole_without_overlap(groups: list[str]) -> None:
    access = _access(groups)
    assert sorted(access["scopesToAdd"] + access["scopesToSuppress"]) == sorted(f"memory/{s}" for s in SCOPES)
    assert access["scopesToAdd"] == scopes_of(groups)


def test_every_group_is_mapped_and_every_human_route_is_within_reach_of_one() -> None:
    assert set(GROUP_SCOPES) == set(HUMAN_GROUPS)
    reachable = {scope for scopes in GROUP_SCOPES.values() for scope in scopes}
    for function in FUNCTIONS:
        for route in function.routes:
            if route.human:
                assert set(route.scopes) & reachable, route.path


def test_the_event_comes_back_whole() -> None:
    answer = handler(_event(["admin"]), None)
    assert answer["request"] == _event(["admin"])["request"]
    assert answer["version"] == "2"
