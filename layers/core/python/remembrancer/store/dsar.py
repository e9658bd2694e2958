"""Requests of data subjects: when they came, until when they must be answered, what was done. No name in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.dsar import WARNINGS, warnings_due
from remembrancer.store.database import Row, Unit

_ANSWERS = {
    "export": ("register", "export"),
    "purge": ("register", "purge"),
    "both": ("register", "export", "purge", "both"),
    "refuse": ("register", "export", "purge", "both"),
}
"""Which open requests of the same subject an act answers."""


def insert(unit: Unit, dsar_id: UUID, values: Mapping[str, Any]) -> None:
    unit.run(
        """
        insert into dsar (tenant_id, dsar_id, action, state, jurisdiction, selectors, found_by, case_reference, reason,
          received_at, deadline, requested_by, created_at, closed_at, job_id, located)
        values (%(tenant)s, %(id)s, %(action)s, %(state)s, %(jurisdiction)s, %(selectors)s, %(found_by)s,
          %(case_reference)s, %(reason)s, %(received_at)s, %(deadline)s, %(by)s, %(now)s, %(closed_at)s, %(job_id)s,
          %(located)s)
        """,
        {
            **values,
            "located": Jsonb(values["located"]),
            "tenant": unit.tenant_id,
            "id": dsar_id,
            "by": unit.principal.principal_id,
            "now": unit.now,
        },
    )


def get(unit: Unit, dsar_id: UUID) -> Row | None:
    return unit.row(
        """
        select d.*, j.done, j.total, j.failure, j.object_key, j.expires_at, j.result
        from dsar d left join job j on j.tenant_id = d.tenant_id and j.job_id = d.job_id
        where d.tenant_id = %(tenant)s and d.dsar_id = %(id)s
        """,
        {"tenant": unit.tenant_id, "id": dsar_id},
    )


def page(unit: Unit, before: UUID | None, limit: int) -> list[Row]:
    """Newest first."""
    return unit.rows(
        """
        select * from dsar where tenant_id = %(tenant)s and (%(before)s::uuid is null or dsar_id < %(before)s)
        order by dsar_id desc limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "before": before, "limit": limit},
    )


def close(unit: Unit, dsar_id: UUID, certificate: Mapping[str, Any] | None) -> None:
    """Done; a certificate says what."""
    unit.run(
        """
        update dsar set state = 'done', closed_at = %(now)s, certificate = %(certificate)s
        where tenant_id = %(tenant)s and dsar_id = %(id)s
        """,
        {
            "now": unit.now,
            "certificate": None if certificate is None else Jsonb(dict(certificate)),
            "tenant": unit.tenant_id,
            "id": dsar_id,
        },
    )


def fail(unit: Unit, job_id: UUID) -> UUID | None:
    """The request whose job has failed: it stays due until another answers it. Its id, if the job is of one."""
    row = unit.row(
        """
        update dsar set state = 'failed' where tenant_id = %(tenant)s and job_id = %(job)s and closed_at is null
        returning dsar_id
        """,
        {"tenant": unit.tenant_id, "job": job_id},
    )
    return None if row is None else row["dsar_id"]


def answer_open(unit: Unit, dsar_id: UUID, selectors: bytes, action: str) -> list[UUID]:
    """Requests of the same subject or under the same case reference that this act answers too: registered before, or
    failed. They are closed."""
    rows = unit.rows(
        """
        update dsar set state = case when %(action)s = 'refuse' then 'refused' else 'done' end, closed_at = %(now)s,
          closed_by = %(id)s
        where tenant_id = %(tenant)s and dsar_id <> %(id)s
          and (selectors = %(selectors)s or case_reference = (select case_reference from dsar d
               where d.tenant_id = %(tenant)s and d.dsar_id = %(id)s))
          and state in ('open', 'failed') and action = any (%(answered)s)
        returning dsar_id
        """,
        {
            "action": action,
            "now": unit.now,
            "id": dsar_id,
            "tenant": unit.tenant_id,
            "selectors": selectors,
            "answered": list(_ANSWERS[action]),
        },
    )
    return sorted(row["dsar_id"] for row in rows)


def warn_due(unit: Unit) -> list[tuple[UUID, bool]]:
    """(request, whether its time is over) of those of which somebody must now be told, once for each warning."""
    told: list[tuple[UUID, bool]] = []
    for row in _due_soon(unit, max(WARNINGS)):
        number = warnings_due(unit.now, row["deadline"])
        if number > row["warned"]:
            unit.run(
                "update dsar set warned = %(n)s where tenant_id = %(tenant)s and dsar_id = %(id)s",
                {"n": number, "tenant": unit.tenant_id, "id": row["dsar_id"]},
            )
            told.append((row["dsar_id"], row["deadline"] <= unit.now))
    return told


def _due_soon(unit: Unit, within: timedelta) -> Sequence[Row]:
    return unit.rows(
        """
        select dsar_id, deadline, warned from dsar
        where tenant_id = %(tenant)s and closed_at is null and warned < %(all)s and deadline <= %(until)s
        order by dsar_id
        """,
        {"tenant": unit.tenant_id, "all": len(WARNINGS), "until": unit.now + within},
    )


def sweep(unit: Unit, before: datetime) -> int:
    """Certificates are kept as long as the tenant says; rows removed."""
    return unit.run(
        "delete from dsar where tenant_id = %(tenant)s and closed_at <= %(before)s",
        {"tenant": unit.tenant_id, "before": before},
    )
