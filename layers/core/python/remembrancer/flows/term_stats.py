"""Scheduled: counting the terms of the spaces that changed by more than a twentieth, or were erased from."""

from __future__ import annotations

from functools import partial

from remembrancer.flows.context import Services
from remembrancer.flows.tenants import Walk
from remembrancer.store import terms


def recount(services: Services) -> dict[str, int]:
    """Spaces counted and their live passages, over all tenants; a transaction a space."""
    spaces = passages = 0
    walk = Walk()
    for tenant_id, _ in services.database.tenants():
        with walk.part(tenant_id):
            for space in services.database.job(tenant_id, terms.stale, audited=False):
                count = partial(terms.recompute, space=space)
                passages += services.database.job(tenant_id, count, audited=False)
                spaces += 1
    walk.end()
    return {"spaces": spaces, "passages": passages}
