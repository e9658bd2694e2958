"""Rows that only the migration role writes: what comes back after a restore, an admin when none is left, the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from remembrancer.store.database import Unit

_KINDS = {
    "memory": "select memory_id as id from memory",
    "proposal": "select proposal_id as id from proposal",
    "job": "select distinct job_id as id from job_item",
    "occurrence": "select occurrence_id as id from occurrence",
    "attempt": "select attempt_id as id from attempt",
}
_WITH_TEXT = {
    "memory": "true",
    "proposal": "true",
    "job_item": "true",
    "entity_name": "true",
    "attempt": "state <> 'erased'",
    "exchange": "true",
    "checkpoint": "true",
}
"""Tables, and which of their rows hold text."""


def erasable(unit: Unit) -> Iterator[tuple[str, UUID]]:
    """(kind, id) of every row that a tombstone may be of."""
    for kind, query in _KINDS.items():
        states = " and state <> 'erased'" if kind == "attempt" else ""
        rows = unit.rows(
            f"{query} where tenant_id = %(tenant)s{states}",
            {"tenant": unit.tenant_id},
        )
        for row in rows:
            yield kind, row["id"]


def put_hold(unit: Unit, order: Mapping[str, Any], memory_ids: Sequence[UUID]) -> int:
    """The order as it stood, with those of its memories that are there; 1 when anything changed."""
    scope = {**order, "tenant": unit.tenant_id, "memories": list(memory_ids)}
    changed = unit.run(
        """
        insert into legal_order (tenant_id, hold_id, reason, case_reference, subject, placed_at, placed_by, released_at,
          released_by, release_reason)
        values (%(tenant)s, %(hold)s, %(reason)s, %(case)s, %(subject)s, %(placed_at)s, %(placed_by)s, %(released_at)s,
          %(released_by)s, %(release_reason)s)
        on conflict (tenant_id, hold_id) do update set released_at = excluded.released_at,
          released_by = excluded.released_by, release_reason = excluded.release_reason
        where legal_order.released_at is null and excluded.released_at is not null
        """,
        scope,
    )
    changed += unit.run(
        """
        insert into legal_hold (tenant_id, legal_hold_id, hold_id, memory_id, reason, placed_at, placed_by, released_at,
          released_by)
        select m.tenant_id, gen_random_uuid(), %(hold)s, m.memory_id, %(reason)s, %(placed_at)s, %(placed_by)s,
          %(released_at)s, %(released_by)s
        from memory m where m.tenant_id = %(tenant)s and m.memory_id = any (%(memories)s)
          and not exists (select from legal_hold h where h.tenant_id = m.tenant_id and h.hold_id = %(hold)s
                          and h.memory_id = m.memory_id)
        """,
        scope,
    )
    changed += unit.run(
        """
        update legal_hold set released_at = %(released_at)s, released_by = %(released_by)s
        where tenant_id = %(tenant)s and hold_id = %(hold)s and released_at is null
          and %(released_at)s::timestamptz is not null
        """,
        scope,
    )
    return 1 if changed else 0


def drop_holds(unit: Unit, memory_ids: Sequence[UUID]) -> None:
    """Of memories that were erased after these holds were released, which the backup does not know."""
    unit.run(
        "delete from legal_hold where tenant_id = %(tenant)s and memory_id = any (%(ids)s)",
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )


def put_tombstones(unit: Unit, rows: Sequence[Mapping[str, Any]]) -> int:
    """Those that are new."""
    before = _tombstones(unit)
    unit.run_many(
        """
        insert into tombstone (tenant_id, tombstone_id, mac, erased_at, erased_by, reason, erasure_id)
        values (%(tenant)s, %(id)s, %(mac)s, %(at)s, %(by)s, %(reason)s, %(erasure)s) on conflict do nothing
        """,
        [{**row, "tenant": unit.tenant_id} for row in rows],
    )
    return _tombstones(unit) - before


def _tombstones(unit: Unit) -> int:
    row = unit.row(
        "select count(*) as n from tombstone where tenant_id = %(tenant)s", {"tenant": unit.tenant_id}
    )
    return 0 if row is None else row["n"]


def make_admin(unit: Unit, issuer: str, subject: str) -> UUID | None:
    """The person behind this credential is active and an admin from now on; None when there is none here."""
    row = unit.row(
        """
        update principal p set active = true, capabilities = array(
          select distinct c from unnest(p.capabilities || '{admin}') as c order by c)
        from credential c
        where c.tenant_id = %(tenant)s and c.issuer = %(issuer)s and c.subject = %(subject)s and p.kind = 'human'
          and p.tenant_id = c.tenant_id and p.principal_id = c.principal_id
        returning p.principal_id
        """,
        {"tenant": unit.tenant_id, "issuer": issuer, "subject": subject},
    )
    return None if row is None else row["principal_id"]


def left(unit: Unit) -> dict[str, int]:
    """Rows that hold text, by table, and the legal holds that stand."""
    scope = {"tenant": unit.tenant_id}
    found = {}
    for table, holds in _WITH_TEXT.items():
        row = unit.row(f"select count(*) as n from {table} where tenant_id = %(tenant)s and {holds}", scope)
        found[table] = 0 if row is None else row["n"]
    row = unit.row(
        "select count(*) as n from legal_order where tenant_id = %(tenant)s and released_at is null", scope
    )
    return {**found, "legal_order": 0 if row is None else row["n"]}


def close_tenant(unit: Unit) -> int:
    """No credential, no key, no name; how many principals there were."""
    scope = {"tenant": unit.tenant_id, "now": unit.now}
    # Jobs and attempts name the credential they went on with, attempts the caller's key too.
    for table in ("credential", "idempotency", "nonce", "job", "attempt"):
        unit.run(f"delete from {table} where tenant_id = %(tenant)s", scope)
    unit.run(
        "update signing_key set revoked_at = %(now)s where tenant_id = %(tenant)s and revoked_at is null",
        scope,
    )
    unit.run(
        "update tenant set name = 'closed', settings = '{}', offboarded_at = coalesce(offboarded_at, %(now)s)"
        " where tenant_id = %(tenant)s",
        scope,
    )
    return unit.run(
        "update principal set active = false, name = 'closed', capabilities = '{}' where tenant_id = %(tenant)s",
        scope,
    )
