"""Scheduled: expiry of proposals and of operational rows."""

from __future__ import annotations

from typing import Any

from remembrancer import observability
from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.sweep import sweep


@task
def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    done = sweep(services())
    observability.logger.info("swept", extra=done)
    return done
