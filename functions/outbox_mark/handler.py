"""The outbox machine, last step: record what was delivered."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.sweep import mark_delivered


@task
def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    """`{"marked": n}`."""
    delivered = [(UUID(entry["tenant"]), UUID(entry["delivery_id"])) for entry in event["delivered"]]
    return {"marked": mark_delivered(services(), delivered)}
