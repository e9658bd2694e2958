"""Reading the audit chain. It is written by the unit of work alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from remembrancer.domain.audit import GENESIS, AuditEvent, AuditRow, ChainPoint
from remembrancer.store.database import Row, Unit

_BATCH = 1_000


def page(unit: Unit, before: int | None, limit: int) -> list[Row]:
    """Newest first, keyset by sequence number."""
    return unit.rows(
        """
        select e.*, p.name as actor_name from audit_event e
        left join principal p on p.tenant_id = e.tenant_id and p.principal_id = e.actor_id
        where e.tenant_id = %(tenant)s and (%(before)s::bigint is null or e.seq < %(before)s)
        order by e.seq desc limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "before": before, "limit": limit},
    )


def head(unit: Unit) -> ChainPoint:
    row = unit.row(
        "select seq, hash from audit_head where tenant_id = %(tenant)s", {"tenant": unit.tenant_id}
    )
    return GENESIS if row is None else ChainPoint(row["seq"], bytes(row["hash"]))


def rows_between(unit: Unit, after: int, head: ChainPoint) -> Iterator[AuditRow]:
    """The chain in order from the row behind `after`, in batches: a chain need not fit in memory.

    Up to `head`, for others go on appending meanwhile; then the rows that no head knows, which nobody may write.
    """
    while after < head.seq:
        batch = unit.rows(
            "select * from audit_event where tenant_id = %(tenant)s and seq > %(after)s and seq <= %(until)s"
            " order by seq limit %(n)s",
            {"tenant": unit.tenant_id, "after": after, "until": head.seq, "n": _BATCH},
        )
        yield from map(_row, batch)
        if len(batch) < _BATCH:
            break
        after = batch[-1]["seq"]
    # One statement sees the rows and the head as they are at one time.
    beyond = unit.rows(
        """
        select e.* from audit_event e
        where e.tenant_id = %(tenant)s
          and e.seq > coalesce((select h.seq from audit_head h where h.tenant_id = e.tenant_id), 0)
        order by e.seq limit %(n)s
        """,
        {"tenant": unit.tenant_id, "n": _BATCH},
    )
    yield from map(_row, beyond)


def _row(row: Row) -> AuditRow:
    return AuditRow(
        AuditEvent(
            tenant=row["tenant_id"],
            seq=row["seq"],
            at=row["at"],
            actor_id=row["actor_id"],
            actor_kind=row["actor_kind"],
            action=row["action"],
            target=row["target"],
            detail=row["detail"],
            prev_hash=bytes(row["prev_hash"]),
        ),
        bytes(row["hash"]),
    )


def checkpoints(unit: Unit) -> dict[int, bytes]:
    """What was signed and stored outside: number to hash."""
    rows = unit.rows(
        "select seq, head from audit_checkpoint where tenant_id = %(tenant)s", {"tenant": unit.tenant_id}
    )
    return {row["seq"]: bytes(row["head"]) for row in rows}


def unsigned_head(unit: Unit) -> ChainPoint | None:
    """The head, unless it is empty or a checkpoint holds it already."""
    row = unit.row(
        """
        select h.seq, h.hash from audit_head h
        where h.tenant_id = %(tenant)s and h.seq > 0
          and not exists (select from audit_checkpoint c where c.tenant_id = h.tenant_id and c.seq = h.seq)
        """,
        {"tenant": unit.tenant_id},
    )
    return None if row is None else ChainPoint(row["seq"], bytes(row["hash"]))


def record_checkpoint(unit: Unit, checkpoint: Mapping[str, Any]) -> None:
    unit.run(
        """
        insert into audit_checkpoint (tenant_id, seq, head, at, object_key, version_id, signature)
        values (%(tenant)s, %(sequence)s, decode(%(head)s, 'hex'), %(at)s, %(object_key)s,
          %(version_id)s, %(signature)s)
        on conflict (tenant_id, seq) do nothing
        """,
        {"tenant": unit.tenant_id, **checkpoint},
    )


def first_after(unit: Unit, seq: int, action: str, target: str) -> Row | None:
    """{seq, hash in hexadecimal, detail} of the first such row behind `seq`."""
    row = unit.row(
        """
        select seq, encode(hash, 'hex') as hash, detail from audit_event
        where tenant_id = %(tenant)s and seq > %(after)s and action = %(action)s and target = %(target)s
        order by seq limit 1
        """,
        {"tenant": unit.tenant_id, "after": seq, "action": action, "target": target},
    )
    return None if row is None else {**row, "detail": json.loads(row["detail"])}


def point_at(unit: Unit, seq: int) -> ChainPoint | None:
    """Where the chain stood after that row; the beginning for 0."""
    if seq == GENESIS.seq:
        return GENESIS
    row = unit.row(
        "select seq, hash from audit_event where tenant_id = %(tenant)s and seq = %(seq)s",
        {"tenant": unit.tenant_id, "seq": seq},
    )
    return None if row is None else ChainPoint(row["seq"], bytes(row["hash"]))
