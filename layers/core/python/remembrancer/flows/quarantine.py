"""Held memories: what a person sees of them, releases or keeps out for good; and open conflicts."""

from __future__ import annotations

from uuid import UUID

from remembrancer.domain.digests import memory_digest
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import (
    EntityIn,
    QuarantineRejectRequest,
    RelationIn,
    ReleaseRequest,
    ResolveRequest,
)
from remembrancer.flows.context import Call, Services, witness
from remembrancer.flows.curate import said_once
from remembrancer.flows.decide import public_id
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.store import conflicts, graph, memories
from remembrancer.store.database import Row, Unit


def _reviewer(unit: Unit) -> None:
    authorize(unit.principal, "review", space=unit.principal.team_space)


def release(services: Services, call: Call, memory: str, request: ReleaseRequest) -> Answer:
    """Close exactly one hold-out of the screen, and build the edges that were skipped; 200."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            row, hold_out_id = _held(unit, memory, request.content_digest)
            if unit.principal.settings.four_eyes and unit.principal.principal_id == row["owner_id"]:
                error = FieldError("", "four_eyes", "nobody decides on words of their own")
                raise Problem("forbidden", [error])
            said_once(unit, row, "")
            memories.close_hold_out(unit, hold_out_id)
            held_graph = row["held_graph"]
            if held_graph is not None:
                by = graph.Supported(
                    row["space_id"],
                    row["owner_id"],
                    row["memory_id"],
                    memories.first_occurrence(unit, row["memory_id"]),
                )
                graph.upsert(
                    unit,
                    by,
                    [EntityIn.model_validate(e) for e in held_graph["entities"]],
                    [RelationIn.model_validate(r) for r in held_graph["relations"]],
                )
            memories.release_graph(unit, row["memory_id"])
            shown = format_id("mem", row["memory_id"])
            unit.audit(
                "quarantine_released",
                shown,
                reason=witness(services, unit, request.reason),
                correlation_id=call.correlation_id,
            )
            unit.alert("released", shown)
            body = {
                "memory_id": shown,
                "status": "released",
                "correlation_id": call.correlation_id,
            }
            return start.answer(unit, 200, body, [row["memory_id"]])

        return services.database.write(call.credential, commit)


def reject(services: Services, call: Call, memory: str, request: QuarantineRejectRequest) -> Answer:
    """Keep it out for good; 200. The bytes stay: only signed erasure removes them."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            row, hold_out_id = _held(unit, memory, request.content_digest)
            memories.open_hold_out(unit, row["memory_id"], row["space_id"], "rejected")
            memories.close_hold_out(unit, hold_out_id)
            shown = format_id("mem", row["memory_id"])
            unit.audit(
                "quarantine_rejected",
                shown,
                reason=witness(services, unit, request.reason),
                correlation_id=call.correlation_id,
            )
            body = {"memory_id": shown, "status": "rejected", "correlation_id": call.correlation_id}
            return start.answer(unit, 200, body, [row["memory_id"]])

        return services.database.write(call.credential, commit)


def resolve(services: Services, call: Call, conflict: str, request: ResolveRequest) -> Answer:
    """Close an open conflict as resolved or dismissed; 200. Nothing else changes."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            _reviewer(unit)
            memories.lock(unit, "space", [unit.principal.team_space.bytes], shared=True)
            row = conflicts.get(unit, public_id("con", conflict))
            if row is None:
                raise Problem("not_found")
            if row["status"] != "open":
                raise Problem("already_decided", extensions={"outcome": {"status": row["status"]}})
            conflicts.close(unit, row["conflict_id"], request.resolution)
            shown = format_id("con", row["conflict_id"])
            unit.audit(
                "conflict_closed",
                shown,
                resolution=request.resolution,
                reason=witness(services, unit, request.reason),
                correlation_id=call.correlation_id,
            )
            body = {"conflict_id": shown, "status": request.resolution, "correlation_id": call.correlation_id}
            return start.answer(unit, 200, body, [row["memory_id"], row["other_id"]])

        return services.database.write(call.credential, commit)


def _held(unit: Unit, memory: str, digest: str | None) -> tuple[Row, UUID]:
    """The memory and its open hold-out of the screen, locked, if this person may decide on these bytes."""
    _reviewer(unit)
    memory_id = public_id("mem", memory)
    memories.lock(unit, "space", [unit.principal.team_space.bytes], shared=True)
    memories.lock(unit, "target", [memory_id.bytes])
    row = memories.get(unit, memory_id)
    if row is None or row["space_id"] != unit.principal.team_space:
        raise Problem("not_found")
    hold_out_id = memories.open_screen_hold(unit, memory_id)
    if hold_out_id is None:
        raise Problem("already_decided", extensions={"outcome": {"held_for": row["held_for"]}})
    if row["pii"] and not unit.principal.sees_pii:
        raise Problem("forbidden", [FieldError("", "masked", "the text is masked for you")])
    if digest is not None and digest != memory_digest(row):
        raise Problem("digest_mismatch")
    return row, hold_out_id
