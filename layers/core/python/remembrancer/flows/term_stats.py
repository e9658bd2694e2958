"""Scheduled: counting the terms of the spaces that changed by more than a twentieth, or were erased from."""

from __future__ import annotations

from functools import partial

from remembrancer.flows.context import Services
from remembrancer.store import terms


def recount(services: Services) -> dict[str, int]:
    """Spaces counted and their live passages, over all tenants; a transaction a space."""
    spaces = passages = 0
    for tenant_id, _ in services.database.tenants():
        for space in services.database.job(tenant_id, terms.stale, audited=False):
            passages += services.database.job(tenant_id, partial(terms.recompute, space=space), audited=False)
            spaces += 1
    return {"spaces": spaces, "passages": passages}
