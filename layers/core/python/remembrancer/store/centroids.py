"""Where the domains of a space lie in the vector space: recomputed apart from any write, read by all."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.domain.memory import Passages
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store import visibility
from remembrancer.store.database import Unit
from remembrancer.store.vectors import vector_text

UNROUTED = "global"
"""The domain of what lies near no other: it has no centroid."""


def nearest(unit: Unit, space_id: UUID, texts: Sequence[Passages], at_least: float) -> list[str | None]:
    """For each text the domain whose centroid is nearest to the mean of its passages, None below `at_least`
    (cosine)."""
    if not texts:
        return []
    rows = unit.rows(
        """
        select t.place, n.domain, n.cosine
        from unnest(%(means)s::vector[], %(contracts)s::text[]) with ordinality as t (mean, contract, place)
        cross join lateral (
          select c.domain, 1 - (c.embedding <=> t.mean) as cosine from centroid c
          where c.tenant_id = %(tenant)s and c.space_id = %(space)s and c.contract = t.contract
          order by c.embedding <=> t.mean, c.domain limit 1
        ) n
        """,
        {
            "means": [vector_text(text.vectors.mean(axis=0)) for text in texts],
            "contracts": [text.contract for text in texts],
            "tenant": unit.tenant_id,
            "space": space_id,
        },
    )
    near = {row["place"] - 1: row for row in rows}
    return [
        near[place]["domain"] if place in near and near[place]["cosine"] >= at_least else None
        for place in range(len(texts))
    ]


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
