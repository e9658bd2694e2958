"""Edges that close with the memories they rest on, and go on when somebody else still says them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from remembrancer.store.database import Row, Unit

_CONTENT = (
    "subject_id",
    "object_id",
    "value_type",
    "value_canonical",
    "value_unit",
    "valid_from",
    "valid_to",
)
_GONE = "(s.memory_id = any (%(ids)s) or s.occurrence_id = any (%(occurrences)s))"
_OF_GONE = """(select s.relationship_id from support s where s.tenant_id = %(tenant)s and s.memory_id = any (%(ids)s)
            union select s.relationship_id from occurrence o join support s on s.tenant_id = o.tenant_id
              and s.memory_id = o.memory_id and s.occurrence_id = o.occurrence_id
            where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s))"""
_BELIEVED = f"""join memory_version v on v.tenant_id = s.tenant_id and v.memory_id = s.memory_id
                           and v.superseded_at is null and not {_GONE}"""
_GOES_ON = f"{_BELIEVED} and v.superseded_by is null"


def _same(one: str, two: str) -> str:
    """Whether two versions of a relationship say the same."""
    columns = [", ".join(f"{alias}.{name}" for name in _CONTENT) for alias in (one, two)]
    return f"({columns[0]}) is not distinct from ({columns[1]})"


def _supports(version: str) -> str:
    return (
        f"s.tenant_id = {version}.tenant_id and s.relationship_id = {version}.relationship_id"
        f" and s.version = {version}.version"
    )


def _first(version: str) -> str:
    """The first version that says what this one says."""
    return f"""(select min(o.version) from relationship o where o.tenant_id = {version}.tenant_id
      and o.relationship_id = {version}.relationship_id and {_same("o", version)})"""


def _says(version: str) -> str:
    """Whether a support of a version says just that, and was not carried on from when another thing was said."""
    return f"""{_supports(version)} and not exists (
      select from support c where c.tenant_id = s.tenant_id and c.relationship_id = s.relationship_id
        and c.memory_id = s.memory_id and c.occurrence_id = s.occurrence_id and c.version < {_first(version)})"""


def close_unsupported(
    unit: Unit,
    memory_ids: Collection[UUID],
    kept: Collection[UUID] = (),
    *,
    occurrence_ids: Collection[UUID] = (),
) -> list[UUID]:
    """Undo what these memories and submissions alone say, which are not believed any more, or are just going; which
    relationships are closed. `kept` are left as they are.

    A current relationship that nothing else supports is closed; so is one to which they gave the window that it has,
    while the others said another. What they had corrected or succeeded, and a memory that goes on still says, holds
    again, where one holds at a time until the next one starts.
    """
    scope = {**_gone(unit, memory_ids, occurrence_ids), "now": unit.now, "kept": sorted(kept)}
    closed = unit.rows(
        f"""
        update relationship r set superseded_at = %(now)s
        where r.tenant_id = %(tenant)s and r.superseded_at is null and r.relationship_id <> all (%(kept)s)
          and r.relationship_id in {_OF_GONE}
          and (not exists (select from support s {_BELIEVED} where {_supports("r")})
            or (r.version > 1 and exists (select from support s where {_says("r")} and {_GONE})
              and not exists (select from support s {_BELIEVED} where {_says("r")})
              and exists (select from relationship e where e.tenant_id = r.tenant_id
                          and e.relationship_id = r.relationship_id and e.version < r.version and not {_same("e", "r")}
                          and exists (select from support s {_GOES_ON} where {_supports("e")}))))
        returning r.relationship_id, r.version
        """,
        scope,
    )
    scope["closed"] = [row["relationship_id"] for row in closed]
    scope["versions"] = [row["version"] for row in closed]
    for edge in _still_said(unit, scope) if closed else ():
        believe(unit, edge, edge["subject"], edge["object"], placed=True)
    for edge in _gave_way(unit, scope):
        if edge["last"] > edge["version"]:
            unit.run(
                "update relationship set superseded_at = %(now)s where tenant_id = %(tenant)s"
                " and relationship_id = %(id)s and version = %(last)s",
                {**scope, "id": edge["relationship_id"], "last": edge["last"]},
            )
        believe(unit, edge, edge["subject"], edge["object"], placed=True)
    return [row["relationship_id"] for row in closed]


def forget(unit: Unit, memory_ids: Collection[UUID], occurrence_ids: Collection[UUID]) -> int:
    """After `close_unsupported`: remove the closed versions that these alone have said, though others are carried on
    under them, and what was left of others beside them; how many."""
    scope = {**_gone(unit, memory_ids, occurrence_ids), "now": unit.now}
    beside = unit.run(
        f"""
        delete from relationship r
        where r.tenant_id = %(tenant)s and r.superseded_at = %(now)s and r.superseded_by is null
          and r.relationship_id in (select g.relationship_id from relationship g
                                    where g.tenant_id = %(tenant)s and g.superseded_by in {_OF_GONE})
        """,
        scope,
    )
    return beside + unit.run(
        f"""
        delete from relationship r
        where r.tenant_id = %(tenant)s and r.superseded_at is not null and r.version > 1
          and r.relationship_id in {_OF_GONE}
          and exists (select from support s where {_says("r")} and {_GONE})
          and not exists (select from support s where {_says("r")} and not {_GONE})
          and exists (select from support s where {_supports("r")} and not {_GONE})
        """,
        scope,
    )


def _gone(unit: Unit, memory_ids: Collection[UUID], occurrence_ids: Collection[UUID]) -> dict[str, Any]:
    return {"tenant": unit.tenant_id, "ids": sorted(memory_ids), "occurrences": sorted(occurrence_ids)}


ENDS = """coalesce(subject.merged_into, r.subject_id) as subject, coalesce(object.merged_into, r.object_id) as object
        from relationship r
        join entity subject on subject.tenant_id = r.tenant_id and subject.entity_id = r.subject_id
        left join entity object on object.tenant_id = r.tenant_id and object.entity_id = r.object_id"""
LAST = """(select max(o.version) from relationship o
                where o.tenant_id = r.tenant_id and o.relationship_id = r.relationship_id)"""


def _still_said(unit: Unit, scope: Mapping[str, Any]) -> list[Row]:
    """Of each that was closed the last thing said that a memory says that goes on, with what its ends have been
    merged into since."""
    return unit.rows(
        f"""
        with closed as (select * from unnest(%(closed)s::uuid[], %(versions)s::int[]) as c (relationship_id, version))
        select distinct on (r.relationship_id) r.*, {LAST} as last, {ENDS}
        join closed using (relationship_id)
        join relationship c on c.tenant_id = r.tenant_id and c.relationship_id = r.relationship_id
                           and c.version = closed.version
        where r.tenant_id = %(tenant)s and not {_same("r", "c")}
          and exists (select from support s {_GOES_ON} where {_supports("r")})
        order by r.relationship_id,
                 exists (select from support s {_GOES_ON} where {_says("r")}) desc, {_first("r")} desc, r.version desc
        """,
        scope,
    )


def _gave_way(unit: Unit, scope: Mapping[str, Any]) -> list[Row]:
    """What was replaced, or closed earlier, by relationships that these memories support and nobody said then or
    since: as it was, its last version being that one or what was left of it."""
    return unit.rows(
        f"""
        select r.*, {LAST} as last, {ENDS}
        left join relationship l on l.tenant_id = r.tenant_id and l.relationship_id = r.relationship_id
                                and l.version = r.version + 1 and l.created_at = r.superseded_at
                                and l.superseded_at is null
        where r.tenant_id = %(tenant)s and r.superseded_by <> r.relationship_id
          and r.superseded_by in {_OF_GONE}
          and r.superseded_by <> all (%(kept)s)
          and (l.version is not null or r.version = {LAST})
          and not exists (select from support s {_BELIEVED}
                          join occurrence o on o.tenant_id = s.tenant_id and o.memory_id = s.memory_id
                                           and o.occurrence_id = s.occurrence_id and o.submitted_at >= r.superseded_at
                          where s.tenant_id = r.tenant_id and s.relationship_id = r.superseded_by)
          and exists (select from support s {_GOES_ON} where {_supports("r")})
          and not exists (select from support s {_BELIEVED}
                          join support t on t.tenant_id = s.tenant_id and t.memory_id = s.memory_id
                                        and t.relationship_id = r.superseded_by
                          where {_supports("r")})
        order by r.relationship_id
        """,
        scope,
    )


_NEXT = """(select min(o.valid_from) from relationship o
    join predicate p on p.tenant_id = o.tenant_id and p.space_id = o.space_id and p.predicate_key = o.predicate_key
    where %(placed)s and o.tenant_id = relationship.tenant_id and o.space_id = relationship.space_id
      and o.owner_id = relationship.owner_id and o.subject_id = %(subject)s
      and o.predicate_key = relationship.predicate_key and o.relationship_id <> relationship.relationship_id
      and o.superseded_at is null and o.polarity = '+' and relationship.polarity = '+'
      and (p.kind, p.cardinality) = ('state', 'one')
      and o.valid_from > coalesce(relationship.valid_from, '-infinity'))"""
"""Where one holds at a time, the start of the next one of the same owner's."""


def believe(unit: Unit, edge: Row, subject: UUID, other: UUID | None, *, placed: bool = False) -> bool:
    """Continue a closed version (a row of relationship) between these ends, with its supports; False for one that
    would now be about itself. `placed`: where one holds at a time, until the next one starts.

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
        "placed": placed,
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
            f"""
            insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id,
              predicate_key, object_id, value_type, value_canonical, value_original, value_unit, polarity, valid_from,
              valid_to, created_at)
            select tenant_id, relationship_id, %(next)s, space_id, owner_id, %(subject)s, predicate_key,
              %(object)s::uuid, value_type, value_canonical, value_original, value_unit, polarity, valid_from,
              least(valid_to, {_NEXT}), %(now)s
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
