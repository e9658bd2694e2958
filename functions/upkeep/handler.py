"""Scheduled: the centroids of domains, and the consistency report of every tenant."""

from __future__ import annotations

from typing import Any

from remembrancer import observability
from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.consistency import upkeep


@task
def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    done = upkeep(services())
    observability.logger.info("upkeep", extra=done)
    return done
