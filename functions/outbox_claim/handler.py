"""The outbox machine, first step: take due alerts. Ids only; they enter the execution's history."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.sweep import claim_alerts


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"count", "alerts": [{delivery_id, tenant, kind, target, created_at}]}`."""
    alerts = [alert.document() for alert in claim_alerts(services())]
    return {"count": len(alerts), "alerts": alerts}
