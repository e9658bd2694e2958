"""Reports: ids, kinds, counts, dates and reasons, never text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.store.database import Row, Unit

KEPT = timedelta(days=400)


def add(unit: Unit, report_id: UUID, kind: str, document: Mapping[str, Any], object_key: str | None) -> None:
    unit.run(
        """
        insert into report (tenant_id, report_id, kind, document, object_key, created_at)
        values (%(tenant)s, %(id)s, %(kind)s, %(document)s, %(key)s, %(now)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": report_id,
            "kind": kind,
            "document": Jsonb(dict(document)),
            "key": object_key,
            "now": unit.now,
        },
    )


def get(unit: Unit, report_id: UUID, kind: str) -> Row | None:
    return unit.row(
        "select * from report where tenant_id = %(tenant)s and report_id = %(id)s and kind = %(kind)s",
        {"tenant": unit.tenant_id, "id": report_id, "kind": kind},
    )


def list_of(unit: Unit, kind: str, before: tuple[datetime, UUID] | None, limit: int) -> list[Row]:
    """{report_id, created_at, counts}, newest first."""
    return unit.rows(
        """
        select report_id, created_at, document -> 'counts' as counts from report
        where tenant_id = %(tenant)s and kind = %(kind)s
          and (%(at)s::timestamptz is null or (created_at, report_id) < (%(at)s, %(id)s))
        order by created_at desc, report_id desc limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "kind": kind,
            "at": None if before is None else before[0],
            "id": None if before is None else before[1],
            "limit": limit,
        },
    )


def sweep(unit: Unit) -> int:
    """Remove reports older than KEPT; rows removed."""
    return unit.run(
        "delete from report where tenant_id = %(tenant)s and created_at <= %(before)s",
        {"tenant": unit.tenant_id, "before": unit.now - KEPT},
    )
