"""The front of remember: a request is screened, becomes an attempt once, and its one terminal answer is waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.digests import content_sha, request_hash
from remembrancer.domain.ids import format_id
from remembrancer.domain.ports import MachineUnavailable
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.remember_limits import LEASE, deadline
from remembrancer.domain.remember_requests import (
    CONTRACT_VERSION,
    OPERATION,
    CancelRequest,
    RememberRequest,
    hashed_form,
)
from remembrancer.domain.screen import Verdict
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows import gate, remember_gate
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.remember_end import end
from remembrancer.store import attempts
from remembrancer.store.database import Row, Unit

WAIT_CAP = timedelta(seconds=25)
GATEWAY = timedelta(seconds=27)
"""A request is answered within this time, counted from when the gateway took it: it gives up after 29 s."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 1.0
RETRY_AFTER_S = 2


@dataclass(frozen=True)
class Outcome:
    """A terminal result with the status it was stored with, or 202 for an attempt that is still at work."""

    status: int
    body: str
    attempt_id: UUID
    replayed: bool = False

    @property
    def location(self) -> str:
        return f"/v1/remember/{format_id('att', self.attempt_id)}"


@dataclass(frozen=True)
class Waiting:
    """How the caller wants to wait. `deadline` is the caller's own, for the attempt as a whole."""

    wait: timedelta
    deadline: datetime | None = None


@dataclass(frozen=True)
class _Start:
    """The admitted request, before it is screened."""

    request: RememberRequest
    digest: bytes
    entered_at: datetime
    deadline: datetime
    arrived: datetime
    """On the database's clock: what ended before this is an earlier call's."""
    settings: TenantSettings


def remember(services: Services, call: Call, request: RememberRequest, waiting: Waiting) -> Outcome:
    """Raises Problem: idempotency_conflict, result_erased, submission_policy_rejected, request_timeout, forbidden."""
    entered_at = services.clock()
    began = time.monotonic()
    _same_key(call, request)
    until = deadline(entered_at, waiting.deadline)
    if until <= entered_at:
        raise Problem("request_timeout")
    digest = request_hash(hashed_form(request))

    def look(unit: Unit) -> tuple[Row | None, datetime, TenantSettings]:
        _target(unit, request)
        seen = attempts.latest(unit, OPERATION, request.idempotency_key)
        if seen is not None:
            _same_request(seen, digest)
        return seen, unit.now, unit.principal.settings

    seen, arrived, settings = services.database.operate(call.credential, look)
    start = _Start(request, digest, entered_at, until, arrived, settings)
    if seen is None or seen["state"] == "failed_retryable" or _over(seen, arrived):
        seen, ours = _take_on(services, call, start)
    else:
        ours = False
    return _wait(services, call, seen["attempt_id"], waiting.wait, began, replayed=not ours)


def result(services: Services, call: Call, attempt: str) -> Outcome:
    """The attempt of the caller as it stands. Raises Problem not_found, also for one whose space the caller has lost:
    a result names what stands there; result_erased."""
    attempt_id = public_id("att", attempt)

    def look(unit: Unit) -> Row:
        authorize(unit.principal, "write")
        row = _own(unit, attempt_id)
        if row["target_id"] not in unit.principal.visible_spaces:
            raise Problem("not_found")
        return row

    row = services.database.read(call.credential, look)
    if _over(row, services.clock()):
        row = services.database.operate(call.credential, lambda unit: _abandoned(unit, attempt_id))
    return _outcome(row)


def cancel(services: Services, call: Call, attempt: str, request: CancelRequest) -> Outcome:
    """Call it off before its commit starts: the terminal result then says so.

    Raises Problem not_found, result_erased, already_decided when it has ended another way or is being committed.
    """
    attempt_id = public_id("att", attempt)

    def work(unit: Unit) -> Outcome:
        authorize(unit.principal, "write")
        _own(unit, attempt_id)
        row = attempts.lock(unit, attempt_id)  # waits for a commit that has begun
        assert row is not None
        if end(unit, row, Problem("cancelled")):
            unit.audit(
                "remember_cancelled", attempt, reason=request.reason, correlation_id=call.correlation_id
            )
        elif row["state"] != "erased" and not _was_cancelled(row):
            raise Problem("already_decided")
        return _outcome(_own(unit, attempt_id))

    return services.database.operate(call.credential, work)


def _take_on(services: Services, call: Call, start: _Start) -> tuple[Row, bool]:
    """The attempt that answers this call, and whether it is a new one."""
    if services.start_attempt is None:
        raise Problem("configuration_invalid")
    judged = remember_gate.judge(services, start.request, start.settings)
    if judged.verdict is not Verdict.CLEAN:
        raise remember_gate.refuse(services, call, judged)
    row, ours = services.database.operate(call.credential, lambda unit: _begin(unit, call, start, judged))
    if ours:
        _start(services, call, row)
    return row, ours


def _begin(unit: Unit, call: Call, start: _Start, judged: remember_gate.Judged) -> tuple[Row, bool]:
    """A new attempt, unless another call's is at work or ended while this call was here: then that one."""
    gate.same_policy(unit, start.settings)
    target_id = _target(unit, start.request)
    key = start.request.idempotency_key
    # A second look only when another caller began in between: then its row is there.
    for _ in range(2):
        last = attempts.latest(unit, OPERATION, key)
        if last is not None:
            _same_request(last, start.digest)
            if _over(last, unit.now):
                last = _abandoned(unit, last["attempt_id"])
            elif last["state"] != "failed_retryable" or last["finished_at"] > start.arrived:
                return last, False
        row = attempts.begin(unit, _new(unit, call, start, judged, target_id), last)
        if row is not None:
            return row, True
    raise Problem("commit_conflict")


def _new(
    unit: Unit, call: Call, start: _Start, judged: remember_gate.Judged, target_id: UUID
) -> attempts.NewAttempt:
    evidence = start.request.evidence
    return attempts.NewAttempt(
        operation=OPERATION,
        key=start.request.idempotency_key,
        request_hash=start.digest,
        target_id=target_id,
        credential=call.credential,
        correlation_id=call.correlation_id,
        entered_at=start.entered_at,
        deadline=start.deadline,
        lease_until=max(start.entered_at, unit.now) + LEASE,
        request=start.request.model_dump(mode="json", exclude_defaults=True),
        screened=judged.to_dict(),
        data_subjects=sorted({subject for item in evidence for subject in item.data_subjects}),
        content_shas=sorted({content_sha(item.content) for item in evidence}),
    )


def _start(services: Services, call: Call, row: Row) -> None:
    """After the commit. An attempt whose workflow cannot start is over at once."""
    assert services.start_attempt is not None
    try:
        services.start_attempt(row["attempt_id"])
    except MachineUnavailable:
        problem = Problem("internal_failure")
        services.database.operate(call.credential, lambda unit: end(unit, row, problem))


def _wait(
    services: Services, call: Call, attempt_id: UUID, wait: timedelta, began: float, *, replayed: bool
) -> Outcome:
    """Poll with backoff; no transaction and no lock is open between two looks."""
    until = began + _bound(services, call, wait).total_seconds()
    pause = FIRST_PAUSE_S
    while True:
        row = services.database.read(call.credential, lambda unit: _own(unit, attempt_id))
        if _over(row, services.clock()):
            row = services.database.operate(call.credential, lambda unit: _abandoned(unit, attempt_id))
        left = until - time.monotonic()
        if row["state"] != "processing" or left <= 0:
            return _outcome(row, replayed=replayed)
        time.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE_S, pause * 1.5)


def _bound(services: Services, call: Call, wait: timedelta) -> timedelta:
    bounded = min(wait, WAIT_CAP)
    if call.received_at is None:
        return bounded
    return min(bounded, call.received_at + GATEWAY - services.clock())


def _own(unit: Unit, attempt_id: UUID) -> Row:
    """For the submitting principal only."""
    row = attempts.outcome(unit, attempt_id)
    if row is None or row["principal_id"] != unit.principal.principal_id:
        raise Problem("not_found")
    return row


def _over(row: Row, now: datetime) -> bool:
    """Its lease ran out: nobody works on it any more."""
    return bool(row["state"] == "processing" and row["lease_until"] <= now)


def _abandoned(unit: Unit, attempt_id: UUID) -> Row:
    """The attempt, now a retryable failure if nobody ended it meanwhile. An owner that wakes up finds it so."""
    row = attempts.lock(unit, attempt_id)
    assert row is not None
    if _over(row, unit.now):
        end(unit, row, Problem("request_timeout"))
    return _own(unit, attempt_id)


def _outcome(row: Row, *, replayed: bool = False) -> Outcome:
    if row["state"] == "erased":
        raise Problem("result_erased")
    attempt_id = row["attempt_id"]
    if row["state"] != "processing":
        return Outcome(row["status"], row["result"], attempt_id, replayed)
    public = format_id("att", attempt_id)
    body: Mapping[str, Any] = {
        "contract_version": CONTRACT_VERSION,
        "attempt_id": public,
        "state": "processing",
        "location": f"/v1/remember/{public}",
        "retry_after_s": RETRY_AFTER_S,
        "correlation_id": row["correlation_id"],
    }
    return Outcome(202, canonical_json(body), attempt_id)


def _was_cancelled(row: Row) -> bool:
    """A second cancel is answered like the first."""
    return row["state"] == "failed_final" and bool(json.loads(row["result"])["code"] == "cancelled")


def _same_key(call: Call, request: RememberRequest) -> None:
    if call.idempotency_key is not None and call.idempotency_key != request.idempotency_key:
        error = FieldError("/header/Idempotency-Key", "differs", "is not the body's idempotency_key")
        raise Problem("invalid_input", [error])


def _same_request(row: Row, digest: bytes) -> None:
    if row["state"] == "erased":  # with its hash, from which a short text could be guessed
        raise Problem("result_erased")
    if bytes(row["request_hash"]) != digest:
        raise Problem("idempotency_conflict")


def _target(unit: Unit, request: RememberRequest) -> UUID:
    """The space that the request names; refused, never redirected. Only a person's hand is manual."""
    who = unit.principal
    target_id = who.private_space if request.target_space == "private" else who.team_space
    authorize(who, "write", space=target_id)
    for index, item in enumerate(request.evidence):
        if item.source_type == "manual" and not who.human:
            error = FieldError(f"/evidence/{index}/source_type", "manual", "is reserved for people")
            raise Problem("forbidden", [error])
    return target_id
