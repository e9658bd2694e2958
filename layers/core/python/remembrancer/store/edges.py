"""Edges that close with the memories they rest on, and go on when somebody else still says them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from remembrancer.store.database import Row, Unit


def close_unsupported(
    unit: Unit, memory_ids: Collection[UUID], only: Collection[UUID] | None = None
) -> list[UUID]:
    """Close the current relationships (`only` these, if given) that rest on these memories and on no memory that is
    believed; which. What one of them had corrected, and a memory that is believed still says, holds again."""
    rows = unit.rows(
        """
        update relationship r set superseded_at = %(now)s
        where r.tenant_id = %(tenant)s and r.superseded_at is null
          and r.relationship_id in (select s.relationship_id from support s
                                    where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s))
          and (%(only)s::uuid[] is null or r.relationship_id = any (%(only)s))
          and not exists (
            select from support s
            join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id
                                 and v.superseded_at is null
            where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id and s.version = r.version)
        returning r.relationship_id
        """,
        {
            "now": unit.now,
            "tenant": unit.tenant_id,
            "ids": sorted(memory_ids),
            "only": None if only is None else sorted(only),
        },
    )
    closed = [row["relationship_id"] for row in rows]
    for edge in _still_said(unit, closed) if closed else ():
        believe(unit, edge, edge["subject"], edge["object"])
    return closed


def _still_said(unit: Unit, relationship_ids: Sequence[UUID]) -> list[Row]:
    """Of each the newest version that a believed memory supports, with what its ends have been merged into since."""
    return unit.rows(
        """
        select distinct on (r.relationship_id) r.*, coalesce(subject.merged_into, r.subject_id) as subject,
               coalesce(object.merged_into, r.object_id) as object,
               (select max(o.version) from relationship o
                where o.tenant_id = r.tenant_id and o.relationship_id = r.relationship_id) as last
        from relationship r
        join entity subject on subject.tenant_id = r.tenant_id and subject.entity_id = r.subject_id
        left join entity object on object.tenant_id = r.tenant_id and object.entity_id = r.object_id
        where r.tenant_id = %(tenant)s and r.relationship_id = any (%(ids)s) and exists (
          select from support s
          join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id and v.superseded_at is null
          where s.tenant_id = r.tenant_id and s.relationship_id = r.relationship_id and s.version = r.version)
        order by r.relationship_id, r.version desc
        """,
        {"tenant": unit.tenant_id, "ids": list(relationship_ids)},
    )


def believe(unit: Unit, edge: Row, subject: UUID, other: UUID | None) -> bool:
    """Continue a closed version (a row of relationship) between these ends, with its supports; False for one that
    would now be about itself.

    `last` is the highest version there is. The same statement of the same owner is stated once: what another edge
    says already gets the supports.
    """
    if subject == other and edge["subject_id"] != edge["object_id"]:
        return False
    scope = {
        "tenant": unit.tenant_id,
        "id": edge["relationship_id"],
        "version": edge["version"],
        "now": unit.now,
        "subject": subject,
        "object": other,
    }
    stated = unit.row(
        """
        select o.relationship_id, o.version from relationship r
        join relationship o on o.tenant_id = r.tenant_id and o.space_id = r.space_id and o.owner_id = r.owner_id
          and o.subject_id = %(subject)s and o.predicate_key = r.predicate_key
          and o.object_id is not distinct from %(object)s::uuid and o.value_type is not distinct from r.value_type
          and o.value_canonical is not distinct from r.value_canonical
          and o.value_unit is not distinct from r.value_unit and o.polarity = r.polarity
          and o.valid_from is not distinct from r.valid_from and o.valid_to is not distinct from r.valid_to
          and o.superseded_at is null
        where r.tenant_id = %(tenant)s and r.relationship_id = %(id)s and r.version = %(version)s
        order by o.relationship_id limit 1
        """,
        scope,
    )
    if stated is None:
        unit.run(
            """
            insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id,
              predicate_key, object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from,
              valid_to, created_at)
            select tenant_id, relationship_id, %(next)s, space_id, owner_id, %(subject)s, predicate_key,
              %(object)s::uuid, value_type, value_canonical, value_original, value_unit, polarity, valid_from,
              valid_to, %(now)s
            from relationship
            where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
            """,
            {**scope, "next": edge["last"] + 1},
        )
        stated = {"relationship_id": edge["relationship_id"], "version": edge["last"] + 1}
    else:
        unit.run(
            "update relationship set superseded_by = %(by)s"
            " where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s",
            {**scope, "by": stated["relationship_id"]},
        )
    unit.run(
        """
        insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id,
          span_start, span_end)
        select tenant_id, gen_random_uuid(), space_id, %(into)s, %(into_version)s, memory_id, occurrence_id,
          span_start, span_end
        from support where tenant_id = %(tenant)s and relationship_id = %(id)s and version = %(version)s
        on conflict do nothing
        """,
        {**scope, "into": stated["relationship_id"], "into_version": stated["version"]},
    )
    return True
