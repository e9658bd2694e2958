"""Commits an attempt as a whole, with its terminal result."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.domain.ids import parse_id
from remembrancer.flows.remember_finish import finish


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """A valid turn in, the attempt's id out."""
    finish(services(), parse_id("att", event["attempt_id"]))
    return {"attempt_id": event["attempt_id"]}
