"""Curation: a memory is retracted, restored or renewed by its owner or a reviewer, entities are merged by people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.digests import dedup_keys
from remembrancer.domain.ids import format_id
from remembrancer.domain.import_requests import MergeRequest, RenewRequest, RetractRequest
from remembrancer.domain.principal import authorize, may_change_others
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.flows.context import Call, Services, public_id, witness
from remembrancer.flows.instants import instant
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.store import curation, memories
from remembrancer.store.centroids import UNROUTED
from remembrancer.store.database import Row, Unit

_SAID = ("space_id", "content", "title", "kind", "valid_from", "valid_to", "source_uri", "revision")


def retract(services: Services, call: Call, memory: str, request: RetractRequest) -> Answer:
    """200. Nobody is shown it any more, as of now; the bytes stay, and `undo` brings it back: by who retracted it, or a
    reviewer."""

    def work(unit: Unit, row: Row) -> dict[str, Any]:
        if request.undo:
            if row["retracted_by"] is None:
                raise Problem("invalid_target", [FieldError("/undo", "not_retracted", "it is not retracted")])
            if row["retracted_by"] != unit.principal.principal_id and not may_change_others(unit.principal):
                raise Problem("forbidden")
            said_once(unit, row, "/undo")
            curation.restore(unit, row)
            return {"status": "restored", "version": row["version"] + 1}
        _must_be_current(row)
        closed = curation.retract(unit, row)
        return {"status": "retracted", "version": row["version"], "relationships_closed": closed}

    # Alone in the space: another memory that comes to support the same edges, or is retracted too, would not be seen.
    return _change(services, call, memory, request, request.version, work, alone=True)


def renew(services: Services, call: Call, memory: str, request: RenewRequest) -> Answer:
    """200 with the new version and its `expires_at`: the given instant, or the kind's retention from now."""

    def work(unit: Unit, row: Row) -> dict[str, Any]:
        _must_be_current(row)
        days = timedelta(days=unit.principal.settings.retention.model_dump()[row["kind"]])
        expires_at = request.expires_at or unit.now + days
        if expires_at <= unit.now:
            raise Problem("invalid_input", [FieldError("/expires_at", "past", "is over already")])
        if (row["expires_at"] or row["created_at"] + days) <= unit.now:
            said_once(unit, row, "")
        version = curation.renew(unit, row, expires_at)
        return {"status": "renewed", "version": version, "expires_at": instant(expires_at)}

    return _change(services, call, memory, request, request.version, work)


def merge(services: Services, call: Call, entity: str, request: MergeRequest) -> Answer:
    """200. The entity's names become aliases of `into`, its current relationships continue there."""

    def allowed(unit: Unit) -> None:
        authorize(unit.principal, "review", space=unit.principal.team_space)

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            allowed(unit)
            source, target = public_id("ent", entity), public_id("ent", request.into)
            if source == target:
                raise Problem("invalid_target", [FieldError("/into", "itself", "is the same entity")])
            memories.lock(unit, "space", [unit.principal.team_space.bytes])
            for pointer, entity_id in (("", source), ("/into", target)):
                _mergeable(unit, entity_id, pointer)
            moved = curation.merge(unit, source, target)
            unit.audit(
                "entities_merged",
                format_id("ent", source),
                into=format_id("ent", target),
                relationships=moved,
                reason=witness(services, unit, request.reason),
                correlation_id=call.correlation_id,
            )
            body = {
                "entity_id": format_id("ent", target),
                "merged": format_id("ent", source),
                "relationships_moved": moved,
                "correlation_id": call.correlation_id,
            }
            return start.answer(unit, 200, body, [])

        return services.database.write(call.credential, commit)


def _mergeable(unit: Unit, entity_id: UUID, pointer: str) -> None:
    row = curation.entity(unit, entity_id)
    if row is None or row["space_id"] != unit.principal.team_space:
        raise Problem("not_found")
    if row["merged_into"] is not None:
        raise Problem("invalid_target", [FieldError(pointer, "merged", "is part of another entity")])


def _change(
    services: Services,
    call: Call,
    memory: str,
    request: RetractRequest | RenewRequest,
    version: int,
    work: Callable[[Unit, Row], dict[str, Any]],
    *,
    alone: bool = False,
) -> Answer:
    """One change of a memory's times, on the version that the caller saw."""

    def allowed(unit: Unit) -> None:
        authorize(unit.principal, "write")

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            row = _lock(unit, public_id("mem", memory), alone=alone)
            if row["version"] != version:
                raise Problem("stale_target")
            done = work(unit, row)
            shown = format_id("mem", row["memory_id"])
            reason = request.reason if isinstance(request, RetractRequest) else None
            unit.audit(
                f"memory_{done['status']}",
                shown,
                version=done["version"],
                reason=witness(services, unit, reason),
                correlation_id=call.correlation_id,
            )
            body = {"memory_id": shown, **done, "correlation_id": call.correlation_id}
            return start.answer(unit, 200, body, [row["memory_id"]])

        return services.database.write(call.credential, commit)


def _lock(unit: Unit, memory_id: UUID, *, alone: bool) -> Row:
    """The memory, locked, if this principal may change it: its owner, or a human reviewer of the team's.

    Raises Problem not_found for what the principal does not see, forbidden for what it may not change.
    """
    found = memories.get(unit, memory_id)
    if found is None or found["held_for"]:
        raise Problem("not_found")
    authorize(unit.principal, "write", space=found["space_id"])
    own = found["owner_id"] == unit.principal.principal_id
    if not own and not may_change_others(unit.principal):
        raise Problem("forbidden")
    memories.lock(unit, "space", [found["space_id"].bytes], shared=not alone)
    memories.lock(unit, "target", [memory_id.bytes])
    row = memories.get(unit, memory_id)
    if row is None or row["held_for"]:
        raise Problem("not_found")
    return row


def said_once(unit: Unit, row: Row, pointer: str) -> None:
    """Raises Problem invalid_target when the text of what would be live again was sent again meanwhile, and is."""
    said = {name: row[name] for name in _SAID}
    keys = dedup_keys(**said, domains=(row["domain"], UNROUTED)) | {bytes(row["dedup_key"])}
    memories.lock(unit, "content", keys)
    if curation.is_said_again(unit, row, keys):
        raise Problem("invalid_target", [FieldError(pointer, "duplicate", "the text is a live memory")])


def _must_be_current(row: Row) -> None:
    if row["superseded_at"] is not None or row["superseded_by"] is not None:
        raise Problem("stale_target")
