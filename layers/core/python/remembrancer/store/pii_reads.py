"""The log of who was shown personal data. It is written by the unit of work alone, past every transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from remembrancer.domain.pii_reads import day_digest
from remembrancer.store.database import Row, Unit

SETTLED = timedelta(minutes=5)
"""After midnight until a day is digested: what was being logged then is there."""
KEPT = timedelta(days=400)
_BATCH = 1_000


def bounds(day: date) -> tuple[datetime, datetime]:
    """Half-open, UTC."""
    start = datetime.combine(day, time.min, UTC)
    return start, start + timedelta(days=1)


def page(unit: Unit, day: date, after: tuple[datetime, str] | None, limit: int) -> list[Row]:
    """Of one day, in order."""
    start, end = bounds(day)
    return unit.rows(
        """
        select r.*, p.name as principal_name from pii_read r
        join principal p on p.tenant_id = r.tenant_id and p.principal_id = r.principal_id
        where r.tenant_id = %(tenant)s and r.at >= %(start)s and r.at < %(end)s
          and (%(at)s::timestamptz is null or (r.at, r.read_id) > (%(at)s, %(id)s::uuid))
        order by r.at, r.read_id limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "start": start,
            "end": end,
            "at": None if after is None else after[0],
            "id": None if after is None else after[1],
            "limit": limit,
        },
    )


def of_day(unit: Unit, day: date) -> Iterator[Row]:
    """All of them, in batches."""
    after = None
    while rows := page(unit, day, after, _BATCH):
        yield from rows
        after = (rows[-1]["at"], str(rows[-1]["read_id"]))


def recorded(unit: Unit, day: date) -> bytes | None:
    """The digest that was made of the day."""
    row = unit.row(
        "select digest from pii_day where tenant_id = %(tenant)s and day = %(day)s",
        {"tenant": unit.tenant_id, "day": day},
    )
    return None if row is None else bytes(row["digest"])


def close_days(unit: Unit) -> list[tuple[date, int, int, bytes]]:
    """Days that are over and have no digest yet get one: (day, reads, readers, digest) each."""
    closed = []
    for row in unit.rows(
        """
        select (r.at at time zone 'UTC')::date as day, count(*) as reads, count(distinct principal_id) as readers
        from pii_read r where r.tenant_id = %(tenant)s and r.at < %(until)s
          and not exists (select from pii_day d where d.tenant_id = r.tenant_id
                          and d.day = (r.at at time zone 'UTC')::date)
        group by 1 order by 1
        """,
        {"tenant": unit.tenant_id, "until": bounds((unit.now - SETTLED).astimezone(UTC).date())[0]},
    ):
        digest = day_digest(of_day(unit, row["day"]))
        unit.run(
            "insert into pii_day (tenant_id, day, reads, digest) values (%(tenant)s, %(day)s, %(reads)s, %(digest)s)",
            {"tenant": unit.tenant_id, "day": row["day"], "reads": row["reads"], "digest": digest},
        )
        closed.append((row["day"], row["reads"], row["readers"], digest))
    return closed


def sweep(unit: Unit) -> int:
    """Rows removed that are older than KEPT."""
    start = bounds((unit.now - KEPT).astimezone(UTC).date())[0]
    scope = {"tenant": unit.tenant_id, "before": start}
    return unit.run(
        "delete from pii_read where tenant_id = %(tenant)s and at < %(before)s", scope
    ) + unit.run("delete from pii_day where tenant_id = %(tenant)s and day < %(before)s::date", scope)
