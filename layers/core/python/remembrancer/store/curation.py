"""What people do with memories and entities later: versions are closed and added, bytes stay."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from remembrancer.store import conflicts, visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.edges import ENDS, LAST, believe, close_unsupported


def retract(unit: Unit, row: Row) -> int:
    """Close the version of a row of `memories.get` in transaction time, and what rested on it alone; edges
    closed. Open conflicts of the memory are moot, but those of what another memory still says."""
    scope = {
        "now": unit.now,
        "by": unit.principal.principal_id,
        "tenant": unit.tenant_id,
        "id": row["memory_id"],
        "version": row["version"],
    }
    unit.run(
        """
        update memory_version set superseded_at = %(now)s, retracted_by = %(by)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s
        """,
        scope,
    )
    closed = close_unsupported(unit, [row["memory_id"]])
    conflicts.stand_on_others(unit, [row["memory_id"]])
    unit.run(
        """
        update conflict set status = 'resolved', closed_at = %(now)s, closed_by = %(by)s
        where tenant_id = %(tenant)s and status = 'open' and (memory_id = %(id)s or other_id = %(id)s)
        """,
        scope,
    )
    return len(closed)


def is_said_again(unit: Unit, row: Row, keys: Collection[bytes]) -> bool:
    """Whether another memory that is believed, not held and not decayed says the same as the row of `memories.get`;
    `keys` are those that it may have, and the caller holds the space and them."""
    found = unit.row(
        f"""
        select true as found from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
                             and v.superseded_at is null and v.superseded_by is null
        where m.tenant_id = %(tenant)s and m.dedup_key = any (%(keys)s) and m.memory_id <> %(id)s
          and (m.dedup_key = %(key)s or (m.domain = %(domain)s and m.revision is not distinct from %(revision)s
            and v.valid_from is not distinct from %(from)s and v.valid_to is not distinct from %(to)s))
          and %(at)s < {visibility.EXPIRY} and {visibility.NOT_HELD} limit 1
        """,
        {
            "tenant": unit.tenant_id,
            "keys": list(keys),
            "key": row["dedup_key"],
            "domain": row["domain"],
            "revision": row["revision"],
            "from": row["valid_from"],
            "to": row["valid_to"],
            "id": row["memory_id"],
            **visibility.view(unit.principal.settings, unit.now),
        },
    )
    return found is not None


def restore(unit: Unit, row: Row) -> None:
    """Believe a retracted version again: a new version with its times, and the edges that closed with it, which
    hang on what their ends have been merged into meanwhile. They correct again what they had corrected."""
    add_version(unit, row, row["expires_at"])
    # Those that were moot only because of the retraction, while the other side is believed.
    unit.run(
        """
        update conflict c set status = 'open', closed_at = null, closed_by = null
        where c.tenant_id = %(tenant)s and c.status = 'resolved' and c.closed_at = %(at)s
          and (c.memory_id = %(id)s or c.other_id = %(id)s)
          and exists (select from memory_version v where v.tenant_id = c.tenant_id and v.superseded_at is null
                      and v.superseded_by is null and v.memory_id in (c.memory_id, c.other_id)
                      and v.memory_id <> %(id)s)
        """,
        {"tenant": unit.tenant_id, "id": row["memory_id"], "at": row["superseded_at"]},
    )
    # What it supports, and what had made way for that.
    touched = unit.rows(
        """
        with own as (select distinct relationship_id from support where tenant_id = %(tenant)s and memory_id = %(id)s)
        select relationship_id from own
        union
        select r.relationship_id from own join relationship r on r.superseded_by = own.relationship_id
        where r.tenant_id = %(tenant)s
        """,
        {"tenant": unit.tenant_id, "id": row["memory_id"]},
    )
    scope = {
        "now": unit.now,
        "tenant": unit.tenant_id,
        "ids": [one["relationship_id"] for one in touched],
        "at": row["superseded_at"],
    }
    closed = unit.rows(
        f"""
        select r.relationship_id, r.version, r.subject_id, r.object_id, {LAST} as last, {ENDS}
        where r.tenant_id = %(tenant)s and r.relationship_id = any (%(ids)s) and r.superseded_at = %(at)s
          and r.superseded_by is null
          and not exists (select from relationship o where o.tenant_id = r.tenant_id
                          and o.relationship_id = r.relationship_id and o.version > r.version
                          and o.created_at <> r.superseded_at)
        order by 1
        """,
        scope,
    )
    # What held again because of the retraction: it makes way once more for what it had made way for.
    unit.run(
        """
        update relationship r set superseded_at = %(now)s, superseded_by = coalesce(
          (select o.superseded_by from relationship o where o.tenant_id = r.tenant_id
             and o.relationship_id = r.relationship_id and o.version < r.version and o.superseded_by is not null
           order by o.version desc limit 1), r.relationship_id)
        where r.tenant_id = %(tenant)s and r.relationship_id = any (%(ids)s) and r.created_at = %(at)s
          and r.superseded_at is null
        """,
        scope,
    )
    for edge in closed:
        believe(unit, edge, edge["subject"], edge["object"], placed=True)


def add_version(unit: Unit, row: Row, expires_at: datetime | None) -> int:
    """A version like that of `row`, believed from now on, with this expiry; its number."""
    version: int = row["version"] + 1
    unit.run(
        """
        insert into memory_version (tenant_id, memory_id, space_id, version, valid_from, valid_to, created_at,
          expires_at)
        values (%(tenant)s, %(id)s, %(space)s, %(version)s, %(from)s, %(to)s, %(now)s, %(expires)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": row["memory_id"],
            "space": row["space_id"],
            "version": version,
            "from": row["valid_from"],
            "to": row["valid_to"],
            "now": unit.now,
            "expires": expires_at,
        },
    )
    return version


def renew(unit: Unit, row: Row, expires_at: datetime) -> int:
    """The same belief with another expiry; the number of its version."""
    unit.run(
        """
        update memory_version set superseded_at = %(now)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s
        """,
        {"now": unit.now, "tenant": unit.tenant_id, "id": row["memory_id"], "version": row["version"]},
    )
    return add_version(unit, row, expires_at)


def entity(unit: Unit, entity_id: UUID) -> Row | None:
    """{entity_id, space_id, kind, merged_into}"""
    return unit.row(
        "select entity_id, space_id, kind, merged_into from entity where tenant_id = %(tenant)s and entity_id = %(id)s",
        {"tenant": unit.tenant_id, "id": entity_id},
    )


def merge(unit: Unit, source: UUID, target: UUID) -> int:
    """Make `source` a part of `target`; edges moved.

    Its names become aliases, its current edges are closed and continued there, and whoever writes one of its
    names finds `target`. An edge between the two, which would point at itself, is closed for good; one that says
    what an edge of `target` says already becomes a part of that.
    """
    scope = {"source": source, "target": target, "tenant": unit.tenant_id, "now": unit.now}
    unit.run(
        "update entity set merged_into = %(target)s, merged_at = coalesce(merged_at, %(now)s)"
        " where tenant_id = %(tenant)s and (entity_id = %(source)s or merged_into = %(source)s)",
        scope,
    )
    unit.run(
        """
        insert into entity_name (tenant_id, entity_id, space_id, kind, name, name_key, canonical)
        select tenant_id, %(target)s, space_id, kind, name, name_key, false from entity_name
        where tenant_id = %(tenant)s and entity_id = %(source)s
        on conflict (tenant_id, entity_id, name_key) do nothing
        """,
        scope,
    )
    # Erasure of the last memory that brought a name takes the name from both.
    unit.run(
        """
        insert into mention (tenant_id, space_id, memory_id, occurrence_id, entity_id, name_key, merged_at)
        select tenant_id, space_id, memory_id, occurrence_id, %(target)s, name_key, %(now)s from mention
        where tenant_id = %(tenant)s and entity_id = %(source)s
        on conflict do nothing
        """,
        scope,
    )
    edges = unit.rows(
        """
        select * from relationship
        where tenant_id = %(tenant)s and superseded_at is null and (subject_id = %(source)s or object_id = %(source)s)
        order by relationship_id
        """,
        scope,
    )
    return sum(_move_edge(unit, edge, source, target) for edge in edges)


def _move_edge(unit: Unit, edge: Row, source: UUID, target: UUID) -> bool:
    unit.run(
        "update relationship set superseded_at = %(now)s"
        " where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s",
        {
            "tenant": unit.tenant_id,
            "id": edge["relationship_id"],
            "version": edge["version"],
            "now": unit.now,
        },
    )
    subject = target if edge["subject_id"] == source else edge["subject_id"]
    other = target if edge["object_id"] == source else edge["object_id"]
    return believe(unit, {**edge, "last": edge["version"]}, subject, other)
