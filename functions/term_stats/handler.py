"""Scheduled: the statistics of terms, of the spaces that changed."""

from __future__ import annotations

from typing import Any

from remembrancer import observability
from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.term_stats import recount


@task
def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    done = recount(services())
    observability.logger.info("recounted", extra=done)
    return done
