"""Who asks, and what that lets them do. `authorize` is the one place that decides; every flow calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from remembrancer.domain.problems import Problem
from remembrancer.domain.tenant_settings import TenantSettings

Action = Literal["propose", "read", "write", "review", "audit", "admin"]

_HUMAN_CAPABILITY: dict[Action, str] = {"review": "reviewer", "audit": "auditor", "admin": "admin"}


@dataclass(frozen=True)
class Credential:
    """What a verified access token says. A person's groups only ever narrow the principal's row."""

    issuer: str
    subject: str
    scopes: frozenset[str]
    groups: frozenset[str]
    text_bytes: int = field(default=0, compare=False)
    """Of the request that came with it, when it carries text to be kept: counted against the day's quota."""
    principal_id: UUID | None = None
    """Of work that goes on after its request: whose the credential was then. It works for nobody who has it since."""


@dataclass(frozen=True)
class Principal:
    """A permanent identity of one tenant, as its row says in this very transaction."""

    tenant_id: UUID
    principal_id: UUID
    kind: Literal["agent", "human"]
    capabilities: frozenset[str]
    scopes: frozenset[str]
    team_grant: Literal["none", "read", "write"]
    team_space: UUID
    private_space: UUID
    settings: TenantSettings
    generations: Mapping[UUID, int] = field(default_factory=dict)
    """Of the spaces that this principal may see: raised by every erasure in them."""

    @property
    def human(self) -> bool:
        return self.kind == "human"

    @property
    def sees_pii(self) -> bool:
        return "pii" in self.capabilities

    @property
    def visible_spaces(self) -> tuple[UUID, ...]:
        """One's own private space always, the team's when granted."""
        return (self.private_space,) if self.team_grant == "none" else (self.private_space, self.team_space)


def effective_capabilities(kind: str, stored: frozenset[str], groups: frozenset[str]) -> frozenset[str]:
    """People: the row's capabilities that their token's groups confirm. Agents: at most `pii`, by the row."""
    return stored & groups if kind == "human" else stored & {"pii"}


def authorize(principal: Principal, action: Action, *, space: UUID | None = None) -> None:
    """Raises Problem forbidden unless the principal may do this (in that space).

    A scope is necessary, never sufficient. Deciding, auditing and administering need a human with the
    capability; writing to the team's space needs the stored grant. A foreign space is answered by the
    caller as absent; here it is forbidden too, so that no path can forget.
    """
    if action not in principal.scopes:
        raise Problem("forbidden")
    needed = _HUMAN_CAPABILITY.get(action)
    if needed is not None and not (principal.human and needed in principal.capabilities):
        raise Problem("forbidden")
    if space is None or space == principal.private_space:
        return
    if space != principal.team_space or principal.team_grant == "none":
        raise Problem("forbidden")
    if action == "write" and principal.team_grant != "write":
        raise Problem("forbidden")


def may_change_others(principal: Principal) -> bool:
    """Rows of other owners in the team's space are changed by human reviewers alone."""
    return principal.human and "reviewer" in principal.capabilities
