"""What people do with memories and entities later: versions are closed and added, bytes stay."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from remembrancer.store.database import Row, Unit
from remembrancer.store.sources import close_unsupported


def retract(unit: Unit, row: Row) -> int:
    """Close the version of a row of `memories.get` in transaction time, and what rested on it alone; edges
    closed. Open conflicts of the memory are moot."""
    scope = {
        "now": unit.now,
        "by": unit.principal.principal_id,
        "tenant": unit.tenant_id,
        "id": row["memory_id"],
        "version": row["version"],
    }
    unit.run(
        """
        update memory_version set superseded_at = %(now)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s
        """,
        scope,
    )
    unit.run(
        """
        update conflict set status = 'resolved', closed_at = %(now)s, closed_by = %(by)s
        where tenant_id = %(tenant)s and status = 'open' and (memory_id = %(id)s or other_id = %(id)s)
        """,
        scope,
    )
    return close_unsupported(unit, [row["memory_id"]])


def restore(unit: Unit, row: Row) -> None:
    """Believe a retracted version again: a new version with its times, and the edges that closed with it."""
    add_version(unit, row, row["expires_at"])
    closed = unit.rows(
        """
        select distinct r.relationship_id, r.version from relationship r
        join support s on s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id
                      and s.version = r.version
        where r.tenant_id = %(tenant)s and s.memory_id = %(id)s and r.superseded_at = %(at)s
          and r.superseded_by is null
          and not exists (select from relationship o where o.tenant_id = r.tenant_id
                          and o.relationship_id = r.relationship_id and o.version > r.version)
        order by 1
        """,
        {"tenant": unit.tenant_id, "id": row["memory_id"], "at": row["superseded_at"]},
    )
    for edge in closed:
        _copy_edge(unit, edge["relationship_id"], edge["version"])


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
    names finds `target`. An edge between the two, which would point at itself, is closed for good.
    """
    scope = {"source": source, "target": target, "tenant": unit.tenant_id, "now": unit.now}
    unit.run(
        "update entity set merged_into = %(target)s"
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
        insert into mention (tenant_id, space_id, memory_id, entity_id, name_key)
        select tenant_id, space_id, memory_id, %(target)s, name_key from mention
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
    subject = target if edge["subject_id"] == source else edge["subject_id"]
    other = target if edge["object_id"] == source else edge["object_id"]
    scope = {
        "tenant": unit.tenant_id,
        "id": edge["relationship_id"],
        "version": edge["version"],
        "now": unit.now,
        "subject": subject,
        "object": other,
    }
    unit.run(
        "update relationship set superseded_at = %(now)s"
        " where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s",
        scope,
    )
    if subject == other:
        return False
    _copy_edge(unit, edge["relationship_id"], edge["version"], subject, other)
    return True


def _copy_edge(
    unit: Unit,
    relationship_id: UUID,
    version: int,
    subject_id: UUID | None = None,
    object_id: UUID | None = None,
) -> None:
    """The next version of a closed edge, believed from now on, with the same supports; other ends if given."""
    scope = {
        "tenant": unit.tenant_id,
        "id": relationship_id,
        "version": version,
        "now": unit.now,
        "subject": subject_id,
        "object": object_id,
    }
    unit.run(
        """
        insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id, predicate_key,
          object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from, valid_to,
          created_at)
        select tenant_id, relationship_id, version + 1, space_id, owner_id, coalesce(%(subject)s, subject_id),
          predicate_key, coalesce(%(object)s, object_id), value_type, value_canonical, value_original, value_unit,
          polarity, valid_from, valid_to, %(now)s
        from relationship
        where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        """,
        scope,
    )
    unit.run(
        """
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id,
          span_start, span_end)
        select tenant_id, gen_random_uuid(), space_id, relationship_id, version + 1, memory_id, occurrence_id,
          span_start, span_end
        from support where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        """,
        scope,
    )
