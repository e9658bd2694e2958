"""Where the domains of a space lie in the vector space: recomputed apart from any write, read by all."""

from __future__ import annotations

from uuid import UUID

from remembrancer.domain.memory import Passages
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store import visibility
from remembrancer.store.database import Unit
from remembrancer.store.vectors import vector_text

UNROUTED = "global"
"""The domain of what lies near no other: it has no centroid."""


def nearest(unit: Unit, space_id: UUID, passages: Passages, at_least: float) -> str | None:
    """The domain whose centroid is nearest to the mean of the passages, None below `at_least` (cosine)."""
    mean = passages.vectors.mean(axis=0)
    row = unit.row(
        """
        select domain, 1 - (embedding <=> %(vector)s::vector) as cosine from centroid
        where tenant_id = %(tenant)s and space_id = %(space)s and contract = %(contract)s
        order by embedding <=> %(vector)s::vector, domain limit 1
        """,
        {
            "vector": vector_text(mean),
            "tenant": unit.tenant_id,
            "space": space_id,
            "contract": passages.contract,
        },
    )
    return row["domain"] if row is not None and row["cosine"] >= at_least else None


def recompute(unit: Unit, settings: TenantSettings) -> int:
    """The centroids of every space of the tenant, made anew from its live memories; how many there are.

    A space at a time: what is private moves no centroid of the team's. A text that was routed counts like one
    that was filed, so a domain follows what it holds.
    """
    unit.run("delete from centroid where tenant_id = %(tenant)s", {"tenant": unit.tenant_id})
    return unit.run(
        f"""
        insert into centroid (tenant_id, space_id, domain, contract, embedding, members, computed_at)
        select m.tenant_id, m.space_id, m.domain, p.contract, l2_normalize(avg(p.embedding::vector)),
               count(distinct m.memory_id), %(now)s
        from passage p {visibility.JOIN}
        where m.tenant_id = %(tenant)s and m.domain <> %(unrouted)s and {visibility.live()}
        group by m.tenant_id, m.space_id, m.domain, p.contract
        """,
        {
            "tenant": unit.tenant_id,
            "unrouted": UNROUTED,
            "now": unit.now,
            **visibility.view(settings, unit.now),
        },
    )
