"""The first step of an attempt: what it needs to know, and the assessor's first request."""

from __future__ import annotations

from typing import Any

from remembrancer.adapters.assessors import assessor_id
from remembrancer.api.tasks import task
from remembrancer.api.wiring import services, settings
from remembrancer.domain.ids import parse_id
from remembrancer.flows.remember_prepare import prepare


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{attempt_id}` in, the first turn out."""
    return prepare(services(), parse_id("att", event["attempt_id"]), assessor_id(settings())).to_state()
