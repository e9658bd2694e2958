"""Handlers of workflow tasks and schedules: a failure leaves by its code alone.

An exception's text enters the execution's history, which erasure cannot reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from remembrancer import observability
from remembrancer.domain.problems import Problem

T = TypeVar("T")
Handler = Callable[[dict[str, Any], object], T]


def task(handler: Handler[T]) -> Handler[T]:
    """Raises, for a Problem `database_resuming`, an exception of class DatabaseResuming (the state machine
    retries by class name); for anything else, InternalFailure."""

    def handle(event: dict[str, Any], context: object) -> T:
        try:
            return handler(event, context)
        except Problem as problem:
            raise _coded(problem.code) from None
        except Exception as error:  # noqa: BLE001 - the last line: logged by class, raised by code
            observability.failure(error)
            raise _coded("internal_failure") from None
        finally:
            observability.flush()

    return handle


def _coded(code: str) -> Exception:
    name = "".join(word.capitalize() for word in code.split("_"))
    failure: Exception = type(name, (Exception,), {})(code)
    return failure
