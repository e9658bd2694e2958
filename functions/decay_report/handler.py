"""Scheduled: the decay report of every tenant."""

from __future__ import annotations

from typing import Any

from remembrancer import observability
from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.reports import write_decay_reports


@task
def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    done = write_decay_reports(services())
    observability.logger.info("decay_reported", extra=done)
    return done
