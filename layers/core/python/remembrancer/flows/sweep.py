"""Scheduled housekeeping, one transaction a tenant: stale proposals, expired operational rows, the outbox."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.alerts import Alert
from remembrancer.domain.ids import format_id
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.context import Services
from remembrancer.flows.remember_end import abandon
from remembrancer.flows.review import WARN_SECONDS
from remembrancer.flows.tenants import Walk
from remembrancer.store import attempts, dsar, jobs, outbox, pii_reads, proposals, reports
from remembrancer.store.database import Unit

BATCH = 500
CLAIM = 100


def sweep(services: Services) -> dict[str, int]:
    """Rows touched, by kind, over all tenants."""
    total: dict[str, int] = {}
    walk = Walk()
    for tenant_id, settings in services.database.tenants():
        with walk.part(tenant_id):
            for kind, count in _sweep_tenant(services, tenant_id, settings).items():
                total[kind] = total.get(kind, 0) + count
    walk.end()
    return total


def claim_alerts(services: Services) -> list[Alert]:
    """Due alerts of all tenants, at most CLAIM, now ours for a while. Every tenant has its share first, in any order:
    however many one of them has, the others' go out too."""
    claimed: list[Alert] = []
    waiting = [tenant_id for tenant_id, _ in services.database.tenants()]
    random.shuffle(waiting)
    share = max(1, CLAIM // max(1, len(waiting)))
    for most in (share, CLAIM):
        turn, waiting = waiting, []
        for tenant_id in turn:
            room = min(most, CLAIM - len(claimed))
            if room == 0:
                break
            rows = services.database.job(tenant_id, partial(outbox.claim, limit=room), audited=False)
            claimed += [
                Alert(row["delivery_id"], row["tenant_id"], row["kind"], row["target"], row["created_at"])
                for row in rows
            ]
            if len(rows) == room:
                waiting.append(tenant_id)
    if claimed:
        oldest = min(alert.created_at for alert in claimed)
        observability.seconds("OutboxAgeSeconds", (services.clock() - oldest).total_seconds())
    return claimed


def mark_delivered(services: Services, delivered: Iterable[tuple[UUID, UUID]]) -> int:
    """(tenant, delivery) pairs that a receiver took; rows marked."""
    by_tenant: dict[UUID, list[UUID]] = {}
    for tenant_id, delivery_id in delivered:
        by_tenant.setdefault(tenant_id, []).append(delivery_id)
    return sum(
        services.database.job(tenant_id, partial(outbox.mark, delivery_ids=ids), audited=False)
        for tenant_id, ids in by_tenant.items()
    )


def _sweep_tenant(services: Services, tenant_id: UUID, settings: TenantSettings) -> dict[str, int]:
    def work(unit: Unit) -> dict[str, Any]:
        expired = proposals.expire_due(unit, BATCH)
        for proposal_id in expired:
            unit.audit("proposal_expired", format_id("prop", proposal_id))
            unit.alert("expired", format_id("prop", proposal_id))
        warned = proposals.warn_due(unit, unit.now + timedelta(seconds=WARN_SECONDS), BATCH)
        for proposal_id in warned:
            unit.alert("expiring", format_id("prop", proposal_id))
        for dsar_id, overdue in dsar.warn_due(unit):
            unit.alert("dsar_overdue" if overdue else "dsar_due", format_id("dsr", dsar_id))
        for day, reads, readers, digest in pii_reads.close_days(unit):
            unit.audit("pii_read", day.isoformat(), reads=reads, readers=readers, digest=digest.hex())
        removed = {
            **outbox.sweep(unit),
            "attempts_abandoned": abandon(unit, BATCH),
            "attempts": attempts.sweep(unit),
            "jobs": jobs.sweep(unit),
            "reports": reports.sweep(unit),
            "pii_reads": pii_reads.sweep(unit),
            "dsars": dsar.sweep(unit, unit.now - timedelta(days=settings.dsar_days)),
        }
        return {"proposals_expired": len(expired), "proposals_warned": len(warned), **removed}

    return services.database.job(tenant_id, work, audited=False)
