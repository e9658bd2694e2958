"""Where the domains of a space lie in the vector space: recomputed apart from any write, read by all."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.domain.memory import Passages
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.vectors import vector_text

UNROUTED = "global"
"""The domain of what lies near no other: it has no centroid."""
STALE = 0.05
"""Centroids of a space are computed again when a domain grew or shrank by more than this share."""


def nearest(unit: Unit, space_id: UUID, texts: Sequence[Passages], at_least: float) -> list[str | None]:
    """For each text the domain whose centroid is nearest to the mean of its passages, None below `at_least`
    (cosine)."""
    if not texts:
        return []
    rows = unit.rows(
        "select * from centroid_near(%(space)s, %(means)s::vector[], %(contracts)s)",
        {
            "means": [vector_text(text.vectors.mean(axis=0)) for text in texts],
            "contracts": [text.contract for text in texts],
            "space": space_id,
        },
    )
    near = {row["place"] - 1: row for row in rows}
    return [
        near[place]["domain"] if place in near and near[place]["cosine"] >= at_least else None
        for place in range(len(texts))
    ]


def stale(unit: Unit, settings: TenantSettings) -> list[Row]:
    """The spaces to compute again: {space_id, generation}, where a domain came, went or changed by more than
    STALE since, or where something was erased, of which a mean keeps a trace."""
    return unit.rows(
        f"""
        with live as (
          select m.space_id, m.domain, p.contract, count(distinct m.memory_id) as members
          from passage p {visibility.JOIN}
          where m.tenant_id = %(tenant)s and m.domain <> %(unrouted)s and {visibility.live()}
          group by 1, 2, 3
        )
        select s.space_id, s.generation from space s
        where s.tenant_id = %(tenant)s and (
          exists (select from centroid c where c.tenant_id = s.tenant_id and c.space_id = s.space_id
                  and c.generation <> s.generation)
          or exists (
            select from (select * from live where live.space_id = s.space_id) l
            full join (select * from centroid c where c.tenant_id = s.tenant_id and c.space_id = s.space_id) c
              on c.domain = l.domain and c.contract = l.contract
            where abs(coalesce(l.members, 0) - coalesce(c.members, 0)) > %(share)s * coalesce(c.members, 0)))
        order by s.space_id
        """,
        {
            "tenant": unit.tenant_id,
            "unrouted": UNROUTED,
            "share": STALE,
            **visibility.view(settings, unit.now),
        },
    )


def recompute(unit: Unit, settings: TenantSettings, space: Row) -> int:
    """The centroids of a space (a row of `stale`), made anew from its live memories; how many there are.

    A space at a time: what is private moves no centroid of the team's. A text that was routed counts like one
    that was filed, so a domain follows what it holds.
    """
    parameters = {"tenant": unit.tenant_id, "space": space["space_id"]}
    unit.run("delete from centroid where tenant_id = %(tenant)s and space_id = %(space)s", parameters)
    return unit.run(
        f"""
        insert into centroid (tenant_id, space_id, domain, contract, embedding, members, generation, computed_at)
        select m.tenant_id, m.space_id, m.domain, p.contract, l2_normalize(avg(p.embedding::vector)),
               count(distinct m.memory_id), %(generation)s, %(now)s
        from passage p {visibility.JOIN}
        where m.tenant_id = %(tenant)s and m.space_id = %(space)s and m.domain <> %(unrouted)s
          and {visibility.live()}
        group by m.tenant_id, m.space_id, m.domain, p.contract
        """,
        {
            **parameters,
            "unrouted": UNROUTED,
            "generation": space["generation"],
            "now": unit.now,
            **visibility.view(settings, unit.now),
        },
    )
