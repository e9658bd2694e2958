"""Handlers of workflow tasks and schedules: a failure leaves by its code alone.

An exception's text enters the execution's history, which erasure cannot reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.ports import ProviderUnavailable
from remembrancer.domain.problems import Problem, class_name

T = TypeVar("T")
Handler = Callable[[dict[str, Any], object], T]


def task(handler: Handler[T]) -> Handler[T]:
    """Raises, for a Problem `database_resuming`, an exception of class DatabaseResuming (the state machine
    retries by class name); for a provider that throttles ProviderThrottled; for anything else, InternalFailure."""

    def handle(event: dict[str, Any], context: object) -> T:
        try:
            return handler(event, context)
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
