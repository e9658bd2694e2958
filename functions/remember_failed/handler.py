"""Writes the typed end of an attempt that no step of its own could end; told by the workflow, or of the workflow."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.domain.ids import parse_id
from remembrancer.flows.remember_end import record_failure


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{attempt_id, error}`: an error's name, or the status of an execution that failed as a whole."""
    record_failure(services(), parse_id("att", event["attempt_id"]), event["error"])
    return {"attempt_id": event["attempt_id"]}
