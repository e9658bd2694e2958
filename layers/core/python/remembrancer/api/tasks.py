"""Handlers of workflow tasks and schedules: a failure leaves by its code alone.

An exception's text enters the execution's history, which erasure cannot reach.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.ports import ProviderUnavailable
from remembrancer.domain.problems import Problem, class_name

T = TypeVar("T")
Handler = Callable[[dict[str, Any], object], T]

PATIENCE_S = 120.0
"""A paused cluster resumes in half a minute, after days of pause more slowly."""
BETWEEN_S = 2.0
ROOM_S = 8.0
"""What one more try and an orderly end may take of a function's time."""


def awake(work: Callable[[], T], context: Any) -> T:
    """`work`, tried again while the database resumes: nobody waits here for a quick answer, and a failed invocation
    rings an alarm or stops a deployment.

    `context` is Lambda's; with None nothing is waited for. Raises Problem database_resuming when patience or the
    function's time is over.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return work()
        except Problem as problem:
            left_s = 0.0 if context is None else context.get_remaining_time_in_millis() / 1000
            over = left_s < BETWEEN_S + ROOM_S or time.monotonic() >= until
            if problem.code != "database_resuming" or over:
                raise
        time.sleep(BETWEEN_S)


def task(handler: Handler[T]) -> Handler[T]:
    """Waits for a database that resumes. Raises, when that takes too long, an exception of class DatabaseResuming (the
    state machine retries by class name); for a provider that throttles ProviderThrottled; for anything else,
    InternalFailure."""

    def handle(event: dict[str, Any], context: object) -> T:
        try:
            return awake(lambda: handler(event, context), context)
        except Problem as problem:
            raise _coded(problem.code) from None
        except ProviderUnavailable as error:
            observability.failure(error, kind=error.kind, code=error.code)
            throttled = error.kind == "throttled"
            raise _coded("provider_throttled" if throttled else "provider_unavailable") from None
        except Exception as error:  # noqa: BLE001 - the last line: logged by class, raised by code
            observability.failure(error)
            raise _coded("internal_failure") from None
        finally:
            observability.flush()

    return handle


def named_job(event: dict[str, Any]) -> tuple[UUID | None, UUID | None]:
    """Tenant and job that the state of a loop names; none at its start, which takes the oldest."""
    tenant_id, job_id = event.get("tenant_id"), event.get("job_id")
    return None if tenant_id is None else UUID(tenant_id), None if job_id is None else UUID(job_id)


def _coded(code: str) -> Exception:
    failure: Exception = type(class_name(code), (Exception,), {})(code)
    return failure
