"""Open contradictions between memories: surfaced, resolved by people, never acted upon by themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit


@dataclass(frozen=True)
class Opened:
    """A memory that contradicts another, found when it was admitted."""

    space_id: UUID
    memory_id: UUID
    other_id: UUID
    reason: str
    explanation: str


def open_conflicts(unit: Unit, found: Sequence[Opened]) -> None:
    unit.run_many(
        """
        insert into conflict (tenant_id, conflict_id, space_id, memory_id, other_id, reason, explanation, opened_at)
        values (%(tenant)s, %(id)s, %(space)s, %(memory)s, %(other)s, %(reason)s, %(explanation)s, %(now)s)
        """,
        [
            {
                "tenant": unit.tenant_id,
                "id": unit.new_id(),
                "space": one.space_id,
                "memory": one.memory_id,
                "other": one.other_id,
                "reason": one.reason,
                "explanation": one.explanation,
                "now": unit.now,
            }
            for one in found
        ],
    )


def of(
    unit: Unit,
    memory_ids: list[UUID],
    view: Mapping[str, Any],
    known_at: datetime | None,
    *,
    decayed: bool = False,
) -> dict[UUID, list[Row]]:
    """Open conflicts by memory, from whichever side, with an other side that a recall of this view may bring:
    {conflict_id, other_id, reason, content, pii} (the latter two of the other)."""
    sides = unit.rows(
        """
        select conflict_id, memory_id, other_id, reason from conflict
        where tenant_id = %(tenant)s and status = 'open' and memory_id = any (%(ids)s)
        union all
        select conflict_id, other_id, memory_id, reason from conflict
        where tenant_id = %(tenant)s and status = 'open' and other_id = any (%(ids)s)
        """,
        {"tenant": unit.tenant_id, "ids": memory_ids},
    )
    # Most memories are in no conflict, and to plan the look at the others costs four times this.
    if not sides:
        return {}
    visible = visibility.recallable(known_at=known_at, decayed=decayed)
    others = {
        row["memory_id"]: row
        for row in unit.rows(
            f"""
            select other.* from unnest(%(others)s::uuid[]) as o (id)
            cross join lateral {visibility.seen("o.id", "m.memory_id, m.content, m.pii", visible)} other
            """,
            {"tenant": unit.tenant_id, "others": sorted({row["other_id"] for row in sides}), **view},
        )
    }
    found: dict[UUID, list[Row]] = {}
    for row in sorted(sides, key=lambda row: row["conflict_id"]):
        if other := others.get(row["other_id"]):
            found.setdefault(row["memory_id"], []).append(
                {**row, "content": other["content"], "pii": other["pii"]}
            )
    return found


def list_open(unit: Unit, after: UUID | None, limit: int) -> list[Row]:
    return unit.rows(
        """
        select * from conflict where tenant_id = %(tenant)s and status = 'open'
          and (%(after)s::uuid is null or conflict_id > %(after)s)
        order by conflict_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "after": after, "limit": limit},
    )


def get(unit: Unit, conflict_id: UUID) -> Row | None:
    return unit.row(
        "select * from conflict where tenant_id = %(tenant)s and conflict_id = %(id)s for update",
        {"tenant": unit.tenant_id, "id": conflict_id},
    )


def stand_on_others(unit: Unit, memory_ids: Collection[UUID]) -> None:
    """What these memories leave while others still support the relationship that is a side of a conflict: the newest of
    those is what the side rests on now."""
    for memory, relationship in (("memory_id", "relationship_id"), ("other_id", "other_relationship_id")):
        unit.run(
            f"""
            with side as (
              select c.conflict_id, (
                select s.memory_id from relationship r
                join support s on s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id
                              and s.version = r.version
                join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id
                                     and v.superseded_at is null
                where r.tenant_id = c.tenant_id and r.relationship_id = c.{relationship} and r.superseded_at is null
                  and s.memory_id <> all (%(ids)s)
                order by s.memory_id desc limit 1) as memory_id
              from conflict c where c.tenant_id = %(tenant)s and c.{memory} = any (%(ids)s) and c.status = 'open'
            )
            update conflict c set {memory} = side.memory_id from side
            where c.tenant_id = %(tenant)s and c.conflict_id = side.conflict_id and side.memory_id is not null
            """,
            {"tenant": unit.tenant_id, "ids": sorted(memory_ids)},
        )


def close_between(unit: Unit, memory_id: UUID, other_id: UUID) -> None:
    """A supersession settles what stood open between the two."""
    unit.run(
        """
        update conflict set status = 'resolved', closed_at = %(now)s, closed_by = %(by)s
        where tenant_id = %(tenant)s and status = 'open'
          and ((memory_id = %(a)s and other_id = %(b)s) or (memory_id = %(b)s and other_id = %(a)s))
        """,
        {
            "now": unit.now,
            "by": unit.principal.principal_id,
            "tenant": unit.tenant_id,
            "a": memory_id,
            "b": other_id,
        },
    )


def close(unit: Unit, conflict_id: UUID, status: str) -> None:
    unit.run(
        "update conflict set status = %(status)s, closed_at = %(now)s, closed_by = %(by)s"
        " where tenant_id = %(tenant)s and conflict_id = %(id)s",
        {
            "status": status,
            "now": unit.now,
            "by": unit.principal.principal_id,
            "tenant": unit.tenant_id,
            "id": conflict_id,
        },
    )
