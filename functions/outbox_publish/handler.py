"""The outbox machine, second step: deliver. This function has reach and no database."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer import observability
from remembrancer.adapters.alerts import EventBridgePublisher, LogPublisher, WebhookPublisher
from remembrancer.api.wiring import now, settings
from remembrancer.domain.alerts import Alert, AlertPublisher


@functools.cache
def _publishers() -> tuple[AlertPublisher, ...]:
    read = settings()
    found: list[AlertPublisher] = []
    if read.event_bus is not None:
        import boto3
        from botocore.config import Config

        quick = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2})
        found.append(EventBridgePublisher(boto3.client("events", config=quick), read.event_bus))
    else:
        found.append(LogPublisher(observability.logger))
    if read.webhook_url is not None and read.webhook_secret is not None:
        found.append(WebhookPublisher(read.webhook_url, read.webhook_secret, clock=now))
    return tuple(found)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """The alerts that every receiver took; the others stay due."""
    alerts = [
        Alert(
            UUID(entry["delivery_id"]),
            UUID(entry["tenant"]),
            entry["kind"],
            entry["target"],
            datetime.fromisoformat(entry["created_at"]),
        )
        for entry in event["alerts"]
    ]
    taken = {alert.delivery_id for alert in alerts}
    for publisher in _publishers():
        deliveries = publisher.publish(alerts)
        taken &= deliveries.delivered
        if deliveries.failed:
            observability.logger.warning(
                "alerts_not_delivered", extra={"codes": sorted(set(deliveries.failed.values()))}
            )
    return {
        "delivered": [
            {"tenant": str(alert.tenant), "delivery_id": str(alert.delivery_id)}
            for alert in alerts
            if alert.delivery_id in taken
        ]
    }
