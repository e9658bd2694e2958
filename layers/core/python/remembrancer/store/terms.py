"""Statistics of the terms of a space: read by the lexical leg, recomputed by a scheduled job, never by a write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from remembrancer.domain.terms import scoped
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit

STALE = 0.05
"""A space is counted again when its passages grew or shrank by more than this share."""


@dataclass(frozen=True)
class Statistics:
    """Of the live passages of some spaces: how many, their average words, how many hold each form asked for."""

    passages: int
    average: float
    holding: list[int]

    @property
    def idf(self) -> list[float]:
        """Of each form, as BM25 wants it."""
        return [math.log(1 + (self.passages - n + 0.5) / (n + 0.5)) for n in self.holding]


def statistics(unit: Unit, spaces: Sequence[UUID], forms: Sequence[str]) -> Statistics:
    """As last computed."""
    numbers = [number for space in spaces for number in scoped(space, forms)]
    row = unit.row(
        """
        select coalesce(sum(passages), 0) as passages, coalesce(sum(words), 0) as words,
               (select coalesce(jsonb_object_agg(t.term, t.passages), '{}') from term_stats t
                where t.tenant_id = %(tenant)s and t.space_id = any (%(spaces)s::uuid[])
                  and t.term = any (%(terms)s::bigint[])) as holding
        from space_stats s where s.tenant_id = %(tenant)s and s.space_id = any (%(spaces)s::uuid[])
        """,
        {"tenant": unit.tenant_id, "spaces": list(spaces), "terms": numbers},
    )
    assert row is not None
    counted = [row["holding"].get(str(number), 0) for number in numbers]
    holding = [sum(counted[place :: len(forms)]) for place in range(len(forms))]
    passages = max(int(row["passages"]), max(holding, default=0), 1)
    return Statistics(passages, max(1.0, float(row["words"]) / passages), holding)


def choose(known: Statistics, forms: int, budget: int) -> list[int]:
    """Which forms bring the candidates: the rarest first, until about `budget` passages; at least one that is known
    to be there, since a form that was never counted most likely brings nothing."""
    chosen: list[int] = []
    total = 0
    for place in sorted(range(forms), key=lambda i: known.holding[i]):
        held = known.holding[place]
        if total and total + held > budget:
            break
        total += held
        chosen.append(place)
    return chosen


def stale(unit: Unit) -> list[Row]:
    """The spaces to count again: {space_id, stored, generation}, by the share of change or an erasure since."""
    return unit.rows(
        """
        select s.space_id, s.generation, p.stored from space s
        cross join lateral (select count(*) as stored from passage p
                            where p.tenant_id = s.tenant_id and p.space_id = s.space_id) p
        left join space_stats x on x.tenant_id = s.tenant_id and x.space_id = s.space_id
        where s.tenant_id = %(tenant)s and (
          (x.space_id is null and p.stored > 0) or x.generation <> s.generation
          or abs(p.stored - x.stored) > %(share)s * greatest(x.stored, 1))
        order by s.space_id
        """,
        {"tenant": unit.tenant_id, "share": STALE},
    )


def recompute(unit: Unit, space: Row) -> int:
    """Count the terms of a space's live passages (a row of `stale`); the number of passages."""
    parameters = {"tenant": unit.tenant_id, "space": space["space_id"]}
    live = f"""select p.terms, p.words from passage p
      join memory_version v on v.tenant_id = p.tenant_id and v.memory_id = p.memory_id and v.superseded_at is null
      cross join lateral (select p.tenant_id, p.memory_id) m
      where p.tenant_id = %(tenant)s and p.space_id = %(space)s and {visibility.NOT_HELD}"""
    unit.run("delete from term_stats where tenant_id = %(tenant)s and space_id = %(space)s", parameters)
    unit.run(
        f"""
        insert into term_stats (tenant_id, space_id, term, passages)
        select %(tenant)s, %(space)s, t.term, count(*)
        from ({live}) p, lateral (select distinct unnest(p.terms) as term) t
        group by t.term
        """,
        parameters,
    )
    row = unit.row(
        f"""
        insert into space_stats (tenant_id, space_id, stored, passages, words, generation, computed_at)
        select %(tenant)s, %(space)s, %(stored)s, count(*), coalesce(sum(p.words), 0), %(generation)s, %(now)s
        from ({live}) p
        on conflict (tenant_id, space_id) do update set stored = excluded.stored, passages = excluded.passages,
          words = excluded.words, generation = excluded.generation, computed_at = excluded.computed_at
        returning passages
        """,
        {**parameters, "stored": space["stored"], "generation": space["generation"], "now": unit.now},
    )
    assert row is not None
    counted: int = row["passages"]
    return counted
