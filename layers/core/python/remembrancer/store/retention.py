"""What has decayed and what soon will: evaluated at a given time, never written anywhere."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit

_REASON = "case when v.expires_at is not null then 'per_chunk' else 'kind_policy' end"
# Held rows are for the quarantine to decide; what is superseded has no expiry that matters.
_CURRENT = f"""
from memory m
join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
                     and v.superseded_at is null and v.superseded_by is null
where m.tenant_id = %(tenant)s and {visibility.NOT_HELD}
"""
_COLUMNS = f"""
m.memory_id, m.space_id, m.owner_id, m.kind, m.domain, m.source, m.created_at, v.version,
{visibility.EXPIRY} as expiry, {_REASON} as retention_reason
"""


def decayed(
    unit: Unit,
    settings: TenantSettings,
    at: datetime,
    after: tuple[datetime, UUID] | None,
    limit: int,
    reason: str | None = None,
) -> list[Row]:
    """Memories that are over at `at`, longest first: ids, kinds, dates, `retention_reason`; keyset by
    (expiry, memory_id). Those of one `reason` when it is given."""
    return unit.rows(
        f"""
        select {_COLUMNS} {_CURRENT} and {visibility.EXPIRY} <= %(at)s
          and (%(reason)s::text is null or {_REASON} = %(reason)s)
          and (%(after_at)s::timestamptz is null
               or ({visibility.EXPIRY}, m.memory_id) > (%(after_at)s, %(after_id)s))
        order by expiry, m.memory_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "after_at": None if after is None else after[0],
            "after_id": None if after is None else after[1],
            "limit": limit,
            "reason": reason,
            **visibility.view(settings, at),
        },
    )


def expiring(unit: Unit, settings: TenantSettings, at: datetime, until: datetime, limit: int) -> list[Row]:
    """Memories whose expiry lies in (at, until], soonest first."""
    return unit.rows(
        f"""
        select {_COLUMNS} {_CURRENT} and {visibility.EXPIRY} > %(at)s and {visibility.EXPIRY} <= %(until)s
        order by expiry, m.memory_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "until": until, "limit": limit, **visibility.view(settings, at)},
    )


def totals(unit: Unit, settings: TenantSettings, at: datetime, until: datetime) -> list[Row]:
    """{decayed, retention_reason, kind, n}: all that `decayed` and `expiring` list a part of."""
    return unit.rows(
        f"""
        select {visibility.EXPIRY} <= %(at)s as decayed, {_REASON} as retention_reason, m.kind, count(*) as n
        {_CURRENT} and {visibility.EXPIRY} <= %(until)s
        group by 1, 2, 3 order by 1, 2, 3
        """,
        {"tenant": unit.tenant_id, "until": until, **visibility.view(settings, at)},
    )
