"""The end of an attempt that failed: one typed terminal document, written once, whoever is told of it first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.attempt_objects import keys
from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.ids import format_id
from remembrancer.domain.problems import CATALOGUE, Code, FieldError, Problem, class_name, to_document
from remembrancer.domain.remember_requests import CONTRACT_VERSION
from remembrancer.flows.context import Services
from remembrancer.store import attempts
from remembrancer.store.database import Row, Unit

MAX_ERRORS = 100


def failure(row: Row, problem: Problem) -> dict[str, Any]:
    """The terminal document of a failed attempt: a problem document that has the members of a result too."""
    told = Problem(
        problem.code,
        problem.errors[:MAX_ERRORS] or [FieldError("", problem.code, problem.entry.title)],
        next_action=problem.next_action,
        extensions={
            **problem.extensions,
            "contract_version": CONTRACT_VERSION,
            "attempt_id": format_id("att", row["attempt_id"]),
            "state": "failed",
            "evidence": [],
            "relationships": [],
            "warnings": [],
        },
    )
    return to_document(told, row["correlation_id"])


def end(unit: Unit, row: Row, problem: Problem) -> bool:
    """Write the failure, audited, unless there is a terminal result already. The row need not be locked."""
    retryable = problem.entry.retryable
    done = attempts.finish(
        unit,
        row["attempt_id"],
        state="failed_retryable" if retryable else "failed_final",
        status=problem.status,
        result=canonical_json(failure(row, problem)),
    )
    if done:
        unit.audit(
            "remember_failed",
            format_id("att", row["attempt_id"]),
            code=problem.code,
            retryable=retryable,
            correlation_id=row["correlation_id"],
        )
    return done


def abandon(unit: Unit, limit: int) -> int:
    """Attempts whose lease ran out become retryable failures: nobody works on them; how many."""
    return sum(end(unit, row, Problem("request_timeout")) for row in attempts.abandoned(unit, limit))


def record_failure(services: Services, attempt_id: UUID, error: str) -> bool:
    """The typed terminal result of an attempt that ended otherwise, if it has none; whether it had none.

    `error` is a state machine's error name or a status of its execution. What it left in the work bucket is gone.
    """
    found = services.database.attempt(attempt_id)
    if found is None:
        return False
    tenant_id, _ = found
    problem = Problem(code_of(error))
    if problem.code in _FAULTS:
        observability.count("AttemptsBroken")

    def write(unit: Unit) -> bool:
        row = attempts.lock(unit, attempt_id)
        return row is not None and end(unit, row, problem)

    written = services.database.job(tenant_id, write, audited=False)
    if services.objects is None:
        raise Problem("configuration_invalid")
    services.objects.delete(keys(tenant_id, attempt_id))
    return written


_FAULTS: frozenset[Code] = frozenset(
    ("internal_failure", "configuration_invalid", "embedding_unavailable", "provider_unavailable")
)
"""Nobody's request makes these: an operator is told."""
_OTHERS: Mapping[str, Code] = {
    "States.Timeout": "request_timeout",
    "TIMED_OUT": "request_timeout",
    "ProviderThrottled": "provider_unavailable",
}


def code_of(error: str) -> Code:
    """The code behind the name of an error in a state machine (api/tasks.py names classes after codes)."""
    for code in CATALOGUE:
        if error == class_name(code):
            return code
    return _OTHERS.get(error, "internal_failure")
