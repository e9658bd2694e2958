"""The checkpoint machine, last step: record where the signed heads were stored."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.audit import record_checkpoint


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"recorded": n, "next": null}`."""
    for checkpoint in event["checkpoints"]:
        record_checkpoint(services(), checkpoint)
    return {"recorded": len(event["checkpoints"]), "next": event.get("next")}
