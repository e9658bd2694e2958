"""Cognito's pre-token-generation trigger (event version 2): a person's groups become scopes.

Cognito grants custom scopes to an app client, not to a person. The page's client is allowed none, so a
person's token carries exactly what this function adds. It is not asked for an agent's token.
"""

from __future__ import annotations

from typing import Any

from functions.manifest import GROUP_SCOPES, SCOPES


def scopes_of(groups: list[str]) -> list[str]:
    """The scopes of all groups together, spelled `memory/x`; unknown groups give nothing."""
    granted = {scope for group in groups for scope in GROUP_SCOPES.get(group, ())}
    return [f"memory/{scope}" for scope in SCOPES if scope in granted]


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """The event with `claimsAndScopeOverrideDetails` set. A fault here refuses the sign-in."""
    groups = event["request"]["groupConfiguration"].get("groupsToOverride") or []
    granted = scopes_of(groups)
    event["response"] = {
        "claimsAndScopeOverrideDetails": {
            "accessTokenGeneration": {
                "scopesToAdd": granted,
                "scopesToSuppress": [f"memory/{s}" for s in SCOPES if f"memory/{s}" not in granted],
            },
        }
    }
    return event
