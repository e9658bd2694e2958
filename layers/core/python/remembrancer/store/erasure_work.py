"""What a long erasure has still to do, and what it has done so far. A row goes with what it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.store.database import Row, Unit
from remembrancer.store.jobs import UNFINISHED

KINDS = ("erase", "dsar")


def put(unit: Unit, job_id: UUID, kind: str, row_ids: Sequence[UUID]) -> None:
    """`kind` is memory, proposal, job, occurrence or attempt."""
    unit.run(
        """
        insert into erasure_item (tenant_id, job_id, kind, row_id)
        select %(tenant)s, %(job)s, %(kind)s, row_id from unnest(%(rows)s::uuid[]) as row_id
        """,
        {"tenant": unit.tenant_id, "job": job_id, "kind": kind, "rows": list(row_ids)},
    )


def next_items(unit: Unit, job_id: UUID, limit: int) -> dict[str, list[UUID]]:
    """By kind, in a fixed order; empty when nothing is left."""
    found: dict[str, list[UUID]] = {}
    for row in unit.rows(
        """
        select kind, row_id from erasure_item where tenant_id = %(tenant)s and job_id = %(job)s
        order by kind, row_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "job": job_id, "limit": limit},
    ):
        found.setdefault(row["kind"], []).append(row["row_id"])
    return found


def all_items(unit: Unit, job_id: UUID, kind: str, after: UUID | None, limit: int) -> list[UUID]:
    rows = unit.rows(
        """
        select row_id from erasure_item where tenant_id = %(tenant)s and job_id = %(job)s and kind = %(kind)s
          and (%(after)s::uuid is null or row_id > %(after)s)
        order by row_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "job": job_id, "kind": kind, "after": after, "limit": limit},
    )
    return [row["row_id"] for row in rows]


def done(unit: Unit, job_id: UUID, items: Mapping[str, Sequence[UUID]], result: Mapping[str, Any]) -> None:
    """These items are dealt with; `result` is what the job has done with all so far."""
    for kind, row_ids in items.items():
        unit.run(
            "delete from erasure_item where tenant_id = %(tenant)s and job_id = %(job)s and kind = %(kind)s"
            " and row_id = any (%(rows)s)",
            {"tenant": unit.tenant_id, "job": job_id, "kind": kind, "rows": list(row_ids)},
        )
    unit.run(
        """
        update job set done = done + %(n)s, result = %(result)s
        where tenant_id = %(tenant)s and job_id = %(job)s
        """,
        {
            "n": sum(map(len, items.values())),
            "result": Jsonb(dict(result)),
            "tenant": unit.tenant_id,
            "job": job_id,
        },
    )


def clear(unit: Unit, job_id: UUID) -> None:
    """Nothing more is to be erased."""
    unit.run(
        "delete from erasure_item where tenant_id = %(tenant)s and job_id = %(job)s",
        {"tenant": unit.tenant_id, "job": job_id},
    )


def keep_bundle(unit: Unit, job_id: UUID, key: str, result: Mapping[str, Any]) -> None:
    unit.run(
        "update job set object_key = %(key)s, result = %(result)s where tenant_id = %(tenant)s and job_id = %(job)s",
        {"key": key, "result": Jsonb(dict(result)), "tenant": unit.tenant_id, "job": job_id},
    )


def finish(unit: Unit, job_id: UUID) -> None:
    """A bundle that it made is removed UNFINISHED from now."""
    unit.run(
        """
        update job set state = 'done', done = total, claimed_until = null, finished_at = %(now)s,
          expires_at = %(expires)s
        where tenant_id = %(tenant)s and job_id = %(job)s
        """,
        {
            "now": unit.now,
            "expires": unit.now + UNFINISHED,
            "tenant": unit.tenant_id,
            "job": job_id,
        },
    )


def macs_of(unit: Unit, erasure_id: UUID) -> list[bytes]:
    """The tombstones of one erasure."""
    rows: list[Row] = unit.rows(
        "select mac from tombstone where tenant_id = %(tenant)s and erasure_id = %(id)s",
        {"tenant": unit.tenant_id, "id": erasure_id},
    )
    return [bytes(row["mac"]) for row in rows]
