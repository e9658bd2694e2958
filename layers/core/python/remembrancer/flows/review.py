"""What reviewers and captors see of proposals, of the quarantine, of conflicts, and of their own habits."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain import packing
from remembrancer.domain.digests import HELD_TEXTS, memory_digest, proposal_digest
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import Principal, authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.screen import screen
from remembrancer.domain.screen_policy import WritePolicy, effective
from remembrancer.flows import gate, render
from remembrancer.flows.context import Call, Services
from remembrancer.flows.cursors import Cursors, instant_and_id
from remembrancer.flows.decide import public_id
from remembrancer.flows.propose import public_scores
from remembrancer.store import conflicts, memories, proposals
from remembrancer.store.database import Row, Unit

WARN_SECONDS = 3_600
CRITICAL_SECONDS = 300
RUBBER_STAMP_RATE = 0.9
RUBBER_STAMP_DECISIONS = 20
STATISTICS_DAYS = 7

Status = Literal["pending", "approved", "rejected", "expired"]


def list_proposals(
    services: Services, call: Call, status: Status, cursor: str | None, limit: int
) -> dict[str, Any]:
    """The queue for a reviewer; one's own captures for everybody else."""

    def read(unit: Unit) -> dict[str, Any]:
        who = unit.principal
        own = None if _reviews(who) else _own(who)
        filters = {"status": status, "own": None if own is None else str(own)}
        position = Cursors(services.macs).decode(unit.tenant_id, "proposals", filters, cursor)
        rows = proposals.queue(unit, status, own, instant_and_id(position), limit + 1)
        shown = packing.leading(
            map(partial(_proposal, services, unit), rows[:limit]), packing.sent, packing.SENT_BYTES
        )
        more = None
        if len(rows) > len(shown):
            row = rows[len(shown) - 1]
            last = [row["deadline"].isoformat(), str(row["proposal_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "proposals", filters, last)
        return {"proposals": shown, "next_cursor": more}

    return services.database.read(call.credential, read)


def get_proposal(services: Services, call: Call, proposal: str) -> dict[str, Any]:
    """One proposal, if this principal reviews or captured it; otherwise there is none."""

    def read(unit: Unit) -> dict[str, Any]:
        who = unit.principal
        own = None if _reviews(who) else _own(who)
        row = proposals.get(unit, public_id("prop", proposal))
        if row is None or (own is not None and row["submitted_by"] != own):
            raise Problem("not_found")
        return _proposal(services, unit, row)

    return services.database.read(call.credential, read)


def list_quarantine(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Held memories, the badge recomputed from the text."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review", space=unit.principal.team_space)
        position = Cursors(services.macs).decode(unit.tenant_id, "quarantine", {}, cursor)
        after = None if position is None else UUID(str(position[0]))
        rows = memories.quarantined(unit, after, limit + 1)
        shown = packing.leading(
            map(partial(_held, services, unit), rows[:limit]), packing.sent, packing.SENT_BYTES
        )
        more = None
        if len(rows) > len(shown):
            last = [str(rows[len(shown) - 1]["memory_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "quarantine", {}, last)
        return {"memories": shown, "next_cursor": more}

    return services.database.read(call.credential, read)


def list_conflicts(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Open conflicts with both texts beside each other."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review", space=unit.principal.team_space)
        position = Cursors(services.macs).decode(unit.tenant_id, "conflicts", {}, cursor)
        rows = conflicts.list_open(unit, None if position is None else UUID(str(position[0])), limit + 1)
        shown = packing.leading(map(partial(_conflict, unit), rows[:limit]), packing.sent, packing.SENT_BYTES)
        more = None
        if len(rows) > len(shown):
            last = [str(rows[len(shown) - 1]["conflict_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "conflicts", {}, last)
        return {"conflicts": shown, "next_cursor": more}

    return services.database.read(call.credential, read)


def statistics(services: Services, call: Call) -> dict[str, Any]:
    """The calibration strip: the last seven days of decisions."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review", space=unit.principal.team_space)
        row = proposals.review_statistics(unit, unit.now - timedelta(days=STATISTICS_DAYS))
        decided = row["approved"] + row["rejected"]
        rate = row["approved"] / decided if decided else None
        return {
            "days": STATISTICS_DAYS,
            "decisions": decided,
            "approved": row["approved"],
            "rejected": row["rejected"],
            "expired": row["expired"],
            "approve_rate": rate,
            "edit_rate": row["edited"] / decided if decided else None,
            "override_rate": row["overridden"] / decided if decided else None,
            "median_seconds_to_decide": None
            if row["median_seconds"] is None
            else round(float(row["median_seconds"]), 1),
            "warning": "approve_rate_high"
            if rate is not None and rate > RUBBER_STAMP_RATE and decided >= RUBBER_STAMP_DECISIONS
            else None,
        }

    return services.database.read(call.credential, read)


def _reviews(principal: Principal) -> bool:
    return "review" in principal.scopes and principal.human and "reviewer" in principal.capabilities


def _own(principal: Principal) -> UUID:
    authorize(principal, "propose")
    return principal.principal_id


def _proposal(services: Services, unit: Unit, row: Row) -> dict[str, Any]:
    """The review form: exactly what recall would render for this reader, and what a decision binds to."""
    reveal = render.reveals(unit, "prop", row)
    body: dict[str, Any] = row["body"]
    shown = render.clean(body, reveal_pii=reveal)
    status = row["status"]
    if status == "pending" and row["deadline"] <= unit.now:
        status = "expired"
    return {
        "proposal_id": format_id("prop", row["proposal_id"]),
        "status": status,
        "title": shown.get("title"),
        "content": shown["content"],
        "kind": body["kind"],
        "domain": body.get("domain"),
        "author": shown.get("author"),
        "source": body["source"],
        "assertion_kind": body["assertion_kind"],
        "observed_at": body.get("observed_at"),
        "valid_from": body.get("valid_from"),
        "valid_to": body.get("valid_to"),
        "memory_expires_at": body.get("expires_at"),
        "source_uri": shown.get("source_uri"),
        "revision": shown.get("revision"),
        "data_subjects": shown.get("data_subjects", []),
        "entities": shown.get("entities", []),
        "relations": shown.get("relations", []),
        "source_prompt": render.clean(row["source_prompt"], reveal_pii=reveal),
        "source_prompt_verdict": None
        if row["source_prompt"] is None
        else screen({"/source_prompt": row["source_prompt"]}).verdict.value,
        "pii": row["pii"],
        "masked": row["pii"] and not unit.principal.sees_pii,
        "screen": _screen(_policy(services, unit), body, shown, row["screen"]),
        "scores": {
            **public_scores(row["scores"]),
            "conflict": render.clean(row["scores"].get("conflict"), reveal_pii=reveal)
            if _reviews(unit.principal)
            else None,
        },
        "conflict": _conflicting(unit, row) if _reviews(unit.principal) else None,
        "content_digest": proposal_digest(row["proposal_id"], bytes(row["salt"]), row["space_id"], body),
        "submitted_by": {
            "principal_id": format_id("prin", row["submitted_by"]),
            "name": row["submitter_name"],
            "kind": row["submitter_kind"],
        },
        "created_at": render.instant(row["created_at"]),
        "expires_at": render.instant(row["deadline"]),
        "warn_secs": WARN_SECONDS,
        "critical_secs": CRITICAL_SECONDS,
        "edited_at": render.instant(row["edited_at"]),
        "decided_at": render.instant(row["decided_at"]),
        "decided_by": row["decider_name"],
        "decision": render.clean(row["decision"], reveal_pii=reveal),
        "memory_id": None if row["memory_id"] is None else format_id("mem", row["memory_id"]),
    }


def _policy(services: Services, unit: Unit) -> WritePolicy:
    return effective(services.screen_policy, unit.principal.settings)


def _screen(
    policy: WritePolicy, stored: dict[str, Any], shown: dict[str, Any], report: dict[str, Any]
) -> dict[str, Any]:
    """The fresh verdict on the stored text; its spans point into the text that is shown."""
    fresh = gate.fresh_verdict(gate.text_fields(stored), report, policy)
    if shown != stored:
        fresh["signals"] = screen(gate.text_fields(shown)).to_dict()["signals"]
    return fresh


def _conflicting(unit: Unit, row: Row) -> dict[str, Any] | None:
    if row["conflict_memory_id"] is None:
        return None
    other = memories.get(unit, row["conflict_memory_id"])
    if other is None:
        return None
    shown = render.memory(other, unit.principal.team_space, reveal_pii=render.reveals(unit, "mem", other))
    live = other["superseded_at"] is None and not other["held_for"]
    return {**shown, "scored_version": row["conflict_version"], "live": live}


def _held(services: Services, unit: Unit, row: Row) -> dict[str, Any]:
    # A private row's text is its owner's alone; reviewers see that it exists and why it is held.
    visible = row["space_id"] == unit.principal.team_space or row["owner_id"] == unit.principal.principal_id
    shown: dict[str, Any] = {
        "memory_id": format_id("mem", row["memory_id"]),
        "held_for": row["held_for"],
        "space": "team_shared" if row["space_id"] == unit.principal.team_space else "private",
        "created_at": render.instant(row["created_at"]),
        "source": row["source"],
        "masked": row["pii"] and not unit.principal.sees_pii,
    }
    if not visible:
        return shown
    # All that a release puts before readers: what the screen holds may stand in any of it.
    body = {name: row[name] for name in HELD_TEXTS} | {"claims": gate.names_and_texts(row["claimed"])}
    clean = render.clean(body, reveal_pii=render.reveals(unit, "mem", row))
    return {
        **shown,
        **{name: clean[name] for name in HELD_TEXTS if name != "held_graph"},
        "claims": clean["claims"],
        "kind": row["kind"],
        "domain": row["domain"],
        "observed_at": render.instant(row["observed_at"]),
        "valid_from": render.instant(row["valid_from"]),
        "valid_to": render.instant(row["valid_to"]),
        "graph": clean["held_graph"],
        "screen": _screen(
            _policy(services, unit),
            {k: v for k, v in body.items() if v is not None},
            {k: v for k, v in clean.items() if v is not None},
            row["screen"],
        ),
        "content_digest": memory_digest(row),
    }


def _conflict(unit: Unit, row: Row) -> dict[str, Any]:
    sides = []
    for side in (row["memory_id"], row["other_id"]):
        found = memories.get(unit, side)
        if found is not None:
            reveal = render.reveals(unit, "mem", found)
            sides.append(render.memory(found, unit.principal.team_space, reveal_pii=reveal))
    return {
        "conflict_id": format_id("con", row["conflict_id"]),
        "reason": row["reason"],
        "explanation": render.clean(row["explanation"], reveal_pii=unit.principal.sees_pii),
        "opened_at": render.instant(row["opened_at"]),
        "sides": sides,
        "relationships": [
            {"relationship_id": format_id("rel", relationship_id), "version": version}
            for relationship_id, version in (
                (row["relationship_id"], row["relationship_version"]),
                (row["other_relationship_id"], row["other_version"]),
            )
            if relationship_id is not None
        ],
    }
