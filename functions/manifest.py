"""The one list of functions, routes and schedules.

`infra/` deploys from it, `local/` serves from it, the handlers register their routes against it, and the
OpenAPI file and the authorization tests read it. Pure data: importing it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCOPES = ("propose", "read", "write", "review", "audit", "admin")
"""OAuth scopes of the resource server `memory`; a token spells them `memory/read`."""

HUMAN_GROUPS = ("reviewer", "auditor", "admin", "pii")
"""Capabilities of people: Cognito groups, intersected with the principal row."""

GROUP_SCOPES: dict[str, tuple[str, ...]] = {
    "reviewer": ("read", "write", "propose", "review"),
    "auditor": ("read", "audit"),
    "admin": ("read", "admin"),
    "pii": (),
}
"""What a person's token may carry for each group: the sign-in adds these scopes and no others."""


@dataclass(frozen=True)
class Route:
    """One method on one path. `scopes` are alternatives; empty means any signed-in principal."""

    method: Literal["GET", "POST", "PUT", "PATCH"]
    path: str
    scopes: tuple[str, ...]
    human: bool = False
    signed: bool = False
    text: bool = False
    """The body carries text that becomes memory, so it must pass the screen (a test proves it)."""
    idempotent: bool = False
    """Creates or decides: `Idempotency-Key` is honoured."""


@dataclass(frozen=True)
class Function:
    """One Lambda. A database role is set exactly when `network` is `vpc` (the rule of reach)."""

    name: str
    purpose: str
    network: Literal["vpc", "none"] = "vpc"
    db_role: str | None = None
    embeds: bool = False
    timeout_s: int = 29
    memory_mb: int = 512
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """One EventBridge schedule; `every_s` is the profile prod, `dev_every_s` lets a dev cluster pause."""

    name: str
    target: str
    """A function's name or, with the suffix `.asl`, a state machine's file in infra/."""
    every_s: int
    dev_every_s: int


@dataclass(frozen=True)
class Machine:
    """One Step Functions machine: `infra/{name}.asl.json`, whose tasks are these functions."""

    name: str
    tasks: tuple[str, ...]


HEALTH = Route("GET", "/v1/health", ())
"""Answered by the gateway itself (a MOCK integration), without a token."""

FUNCTIONS: tuple[Function, ...] = (
    Function(
        "ingest",
        "direct admission",
        db_role="rem_ingest",
        embeds=True,
        memory_mb=1769,
        routes=(
            Route("POST", "/v1/ingest", ("write",), text=True, idempotent=True),
            Route("POST", "/v1/ingest/markdown", ("write",), text=True, idempotent=True),
            Route("POST", "/v1/ingest/memory", ("write",), text=True, idempotent=True),
            Route("POST", "/v1/ingest/ump", ("write",), text=True, idempotent=True),
        ),
    ),
    Function(
        "proposal",
        "capture for review",
        db_role="rem_proposal",
        embeds=True,
        memory_mb=1769,
        routes=(
            Route("POST", "/v1/ingest/proposal", ("propose", "review"), text=True, idempotent=True),
            Route("GET", "/v1/proposals", ("propose", "review")),
            Route("GET", "/v1/proposals/{id}", ("propose", "review")),
        ),
    ),
    Function(
        "approve",
        "human decisions",
        db_role="rem_approve",
        embeds=True,
        memory_mb=1769,
        routes=(
            Route("POST", "/v1/proposals/{id}/approve", ("review",), human=True, idempotent=True),
            Route("POST", "/v1/proposals/{id}/reject", ("review",), human=True, idempotent=True),
            Route("POST", "/v1/proposals/{id}/edit", ("review",), human=True, text=True, idempotent=True),
            Route("POST", "/v1/proposals/decide", ("review",), human=True, idempotent=True),
            Route("GET", "/v1/quarantine", ("review",), human=True),
            Route("POST", "/v1/quarantine/{id}/release", ("review",), human=True, idempotent=True),
            Route("POST", "/v1/quarantine/{id}/reject", ("review",), human=True, idempotent=True),
            Route("GET", "/v1/conflicts", ("review",), human=True),
            Route("POST", "/v1/conflicts/{id}/resolve", ("review",), human=True, idempotent=True),
            Route("GET", "/v1/stats/review", ("review",), human=True),
        ),
    ),
    Function(
        "recall",
        "reading",
        db_role="rem_recall",
        embeds=True,
        memory_mb=1769,
        routes=(
            Route("POST", "/v1/recall", ("read",)),
            Route("POST", "/v1/verify", ("read",)),
            Route("GET", "/v1/memories", ("read",)),
            Route("GET", "/v1/memories/{id}", ("read",)),
            Route("GET", "/v1/memories/{id}/history", ("read",)),
            Route("GET", "/v1/entities", ("read",)),
            Route("GET", "/v1/entities/{id}", ("read",)),
            Route("GET", "/v1/relationships/{id}/history", ("read",)),
            Route("GET", "/v1/predicates", ("read",)),
        ),
    ),
    Function(
        "remember",
        "takes evidence and relationships on, waits for the one answer",
        db_role="rem_remember",
        embeds=True,
        memory_mb=1769,
        routes=(
            Route("POST", "/v1/remember", ("write",), text=True, idempotent=True),
            Route("GET", "/v1/remember/{id}", ("write",)),
            Route("POST", "/v1/remember/{id}/cancel", ("write",)),
        ),
    ),
    Function(
        "curate",
        "retraction, renewal, merging",
        db_role="rem_curate",
        routes=(
            Route("POST", "/v1/memories/{id}/retract", ("write",), idempotent=True),
            Route("POST", "/v1/memories/{id}/renew", ("write",), idempotent=True),
            Route("POST", "/v1/entities/{id}/merge", ("review",), human=True, idempotent=True),
        ),
    ),
    Function(
        "report",
        "decay, consistency, exports",
        db_role="rem_report",
        routes=(
            Route("GET", "/v1/decayed", ("review",), human=True),
            Route("GET", "/v1/decay-reports", ("review",), human=True),
            Route("GET", "/v1/decay-reports/{id}", ("review",), human=True),
            Route("GET", "/v1/consistency", ("review",), human=True),
            Route("POST", "/v1/export", ("review",), human=True, idempotent=True),
        ),
    ),
    Function(
        "purge",
        "signed erasure, requests of data subjects, legal holds",
        db_role="rem_purge",
        routes=(
            Route("POST", "/v1/purge", ("admin",), human=True, signed=True, idempotent=True),
            Route("POST", "/v1/offboard", ("admin",), human=True, signed=True, idempotent=True),
            Route("POST", "/v1/dsar", ("admin",), human=True, signed=True, idempotent=True),
            Route("GET", "/v1/dsar", ("admin",), human=True),
            Route("GET", "/v1/dsar/{id}", ("admin",), human=True),
            Route("GET", "/v1/dsar/{id}/certificate", ("admin",), human=True),
            Route("GET", "/v1/private-memories/{id}", ("admin",), human=True),
            Route("GET", "/v1/legal-holds", ("admin",), human=True),
            Route("POST", "/v1/legal-holds", ("admin",), human=True, idempotent=True),
            Route(
                "POST", "/v1/legal-holds/{id}/release", ("admin",), human=True, signed=True, idempotent=True
            ),
        ),
    ),
    Function(
        "audit",
        "the audit chain and the tombstones",
        db_role="rem_audit",
        routes=(
            Route("GET", "/v1/audit", ("audit",), human=True),
            Route("GET", "/v1/audit/verify", ("audit",), human=True),
            Route("GET", "/v1/audit/export", ("audit",), human=True),
            Route("GET", "/v1/tombstones", ("audit",), human=True),
            Route("GET", "/v1/pii-reads", ("audit",), human=True),
            Route("GET", "/v1/attempts/{id}/diagnostics", ("audit",), human=True),
        ),
    ),
    Function(
        "admin",
        "principals, keys, settings",
        db_role="rem_admin",
        routes=(
            Route("GET", "/v1/settings", ("admin",), human=True),
            Route("PATCH", "/v1/settings", ("admin",), human=True, signed=True),
            Route("GET", "/v1/retention", ("admin",), human=True),
            Route("PUT", "/v1/retention", ("admin",), human=True, signed=True),
            Route("GET", "/v1/principals", ("admin",), human=True),
            Route("POST", "/v1/principals", ("admin",), human=True, signed=True, idempotent=True),
            Route("PATCH", "/v1/principals/{id}", ("admin",), human=True, signed=True),
            Route("POST", "/v1/principals/{id}/keys", ("admin",), human=True, signed=True, idempotent=True),
        ),
    ),
    Function(
        "system",
        "who am I, is it ready, what is the contract",
        db_role="rem_system",
        routes=(
            Route("GET", "/v1/me", ()),
            Route("GET", "/v1/jobs/{id}", ()),
            Route("GET", "/v1/ready", ()),
            Route("GET", "/v1/openapi.json", ()),
        ),
    ),
    Function("sweep", "expiry of proposals and operational rows", db_role="rem_sweep", timeout_s=120),
    Function(
        "job_step",
        "embeds and publishes long imports, writes bundles",
        db_role="rem_job",
        embeds=True,
        timeout_s=600,
        memory_mb=1769,
    ),
    Function(
        "remember_prepare",
        "finds what an attempt needs to know",
        db_role="rem_remember_prepare",
        embeds=True,
        timeout_s=30,
        memory_mb=1769,
    ),
    Function("remember_call_model", "one call of the assessor's model", network="none", timeout_s=120),
    Function("remember_check", "validates the assessor's answer", db_role="rem_remember_check", timeout_s=30),
    Function(
        "remember_commit",
        "commits an attempt as a whole",
        db_role="rem_remember_commit",
        embeds=True,
        timeout_s=30,
        memory_mb=1769,
    ),
    Function(
        "remember_failed",
        "writes the end of an attempt that failed",
        db_role="rem_remember_failed",
        timeout_s=30,
    ),
    Function(
        "erase_step",
        "long erasures and bundles of data subjects",
        db_role="rem_purge",
        timeout_s=600,
        memory_mb=1024,
    ),
    Function("upkeep", "centroids of domains, the consistency report", db_role="rem_upkeep", timeout_s=600),
    Function("decay_report", "what has decayed and what soon will", db_role="rem_upkeep", timeout_s=300),
    Function("term_stats", "statistics of terms for recall", db_role="rem_statistics", timeout_s=600),
    Function("migrate", "schema migrations", db_role="rem_migrate", timeout_s=600),
    Function("outbox_claim", "takes due alerts", db_role="rem_outbox", timeout_s=30),
    Function("outbox_publish", "delivers alerts", network="none", timeout_s=30, memory_mb=256),
    Function("outbox_mark", "records deliveries", db_role="rem_outbox", timeout_s=30),
    Function("checkpoint_head", "reads the heads of audit chains", db_role="rem_audit", timeout_s=30),
    Function("checkpoint_sign", "signs and stores heads", network="none", timeout_s=60, memory_mb=256),
    Function("checkpoint_record", "records stored checkpoints", db_role="rem_audit", timeout_s=30),
    Function(
        "list_erased",
        "lists tombstones and legal holds outside the database",
        db_role="rem_listing",
        timeout_s=300,
    ),
    Function("pre_token", "turns a person's groups into scopes", network="none", timeout_s=5, memory_mb=256),
)

MACHINES: tuple[Machine, ...] = (
    Machine("outbox", ("outbox_claim", "outbox_publish", "outbox_mark")),
    Machine("jobs", ("job_step",)),
    Machine("erasure", ("erase_step",)),
    Machine(
        "remember",
        ("remember_prepare", "remember_call_model", "remember_check", "remember_commit", "remember_failed"),
    ),
    Machine("checkpoint", ("checkpoint_head", "checkpoint_sign", "checkpoint_record")),
    Machine("listing", ("list_erased",)),
)

SCHEDULES: tuple[Schedule, ...] = (
    Schedule("sweep", "sweep", every_s=300, dev_every_s=86_400),
    Schedule("term_stats", "term_stats", every_s=900, dev_every_s=86_400),
    Schedule("outbox", "outbox.asl", every_s=60, dev_every_s=86_400),
    Schedule("jobs", "jobs.asl", every_s=600, dev_every_s=86_400),
    Schedule("erasure", "erasure.asl", every_s=600, dev_every_s=86_400),
    Schedule("upkeep", "upkeep", every_s=3600, dev_every_s=86_400),
    Schedule("decay_report", "decay_report", every_s=86_400, dev_every_s=86_400),
    Schedule("checkpoint", "checkpoint.asl", every_s=3600, dev_every_s=86_400),
    Schedule("listing", "listing.asl", every_s=300, dev_every_s=86_400),
)


def function(name: str) -> Function:
    """The function of that name. Raises KeyError."""
    for entry in FUNCTIONS:
        if entry.name == name:
            return entry
    raise KeyError(name)
