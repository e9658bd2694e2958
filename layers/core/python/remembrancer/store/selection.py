"""Which rows an erasure or a legal hold is about: memories, proposals of their own, staged work; in every space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from remembrancer.store.database import Unit

_STAGED = "i.body -> 'request' -> 'data_subjects'"


def declared_subjects(unit: Unit) -> list[str]:
    """Every spelling of a data subject in the tenant, once."""
    rows = unit.rows(
        f"""
        select unnest(m.data_subjects) as subject from memory m where m.tenant_id = %(tenant)s
        union
        select unnest(b.data_subjects) from submission b where b.tenant_id = %(tenant)s
        union
        select unnest(o.data_subjects) from occurrence o where o.tenant_id = %(tenant)s
        union
        select jsonb_array_elements_text(p.body -> 'data_subjects') from proposal p
        where p.tenant_id = %(tenant)s and p.body ? 'data_subjects'
        union
        select jsonb_array_elements_text({_STAGED}) from job_item i
        where i.tenant_id = %(tenant)s and i.body -> 'request' ? 'data_subjects'
        union
        select unnest(a.data_subjects) from attempt a where a.tenant_id = %(tenant)s
        """,
        {"tenant": unit.tenant_id},
    )
    return [row["subject"] for row in rows]


def memories_of_subjects(unit: Unit, subjects: Sequence[str], limit: int | None) -> list[UUID]:
    """Also those that only a later submission of the text says to be about one of them."""
    rows = unit.rows(
        """
        select memory_id from memory where tenant_id = %(tenant)s and data_subjects && %(subjects)s::text[]
        union
        select memory_id from submission where tenant_id = %(tenant)s and data_subjects && %(subjects)s::text[]
        union
        select memory_id from occurrence where tenant_id = %(tenant)s and data_subjects && %(subjects)s::text[]
        order by memory_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "subjects": list(subjects), "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def memories_of_owner(unit: Unit, owner_id: UUID, limit: int | None) -> list[UUID]:
    rows = unit.rows(
        "select memory_id from memory where tenant_id = %(tenant)s and owner_id = %(owner)s"
        " order by memory_id limit %(limit)s",
        {"tenant": unit.tenant_id, "owner": owner_id, "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def proposals_of_subjects(unit: Unit, subjects: Sequence[str], limit: int | None) -> list[UUID]:
    """Whatever became of them; one whose memory names the subject too is left to that memory."""
    rows = unit.rows(
        """
        select p.proposal_id from proposal p
        where p.tenant_id = %(tenant)s and p.body -> 'data_subjects' ?| %(subjects)s::text[]
          and not exists (select from memory m where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id
                          and m.data_subjects && %(subjects)s::text[])
        order by p.proposal_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "subjects": list(subjects), "limit": limit},
    )
    return [row["proposal_id"] for row in rows]


def memories_from(unit: Unit, proposal_ids: Sequence[UUID]) -> list[UUID]:
    """What these proposals became."""
    rows = unit.rows(
        "select memory_id from memory where tenant_id = %(tenant)s and proposal_id = any (%(ids)s)",
        {"tenant": unit.tenant_id, "ids": list(proposal_ids)},
    )
    return [row["memory_id"] for row in rows]


def proposals_of_submitter(unit: Unit, principal_id: UUID, limit: int | None) -> list[UUID]:
    """Whatever became of them; one whose memory is theirs is left to that memory."""
    rows = unit.rows(
        """
        select p.proposal_id from proposal p
        where p.tenant_id = %(tenant)s and p.submitted_by = %(principal)s
          and not exists (select from memory m where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id
                          and m.owner_id = %(principal)s)
        order by p.proposal_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "principal": principal_id, "limit": limit},
    )
    return [row["proposal_id"] for row in rows]


def authors(unit: Unit) -> list[str]:
    """Every spelling of an author in the tenant, once."""
    rows = unit.rows(
        """
        select author from memory where tenant_id = %(tenant)s and author is not null
        union
        select p.body ->> 'author' from proposal p where p.tenant_id = %(tenant)s and p.body ->> 'author' is not null
        union
        select i.body -> 'request' ->> 'author' from job_item i
        where i.tenant_id = %(tenant)s and i.body -> 'request' ->> 'author' is not null
        """,
        {"tenant": unit.tenant_id},
    )
    return [row["author"] for row in rows]


def memories_of_authors(unit: Unit, spellings: Sequence[str], limit: int | None) -> list[UUID]:
    rows = unit.rows(
        "select memory_id from memory where tenant_id = %(tenant)s and author = any (%(authors)s)"
        " order by memory_id limit %(limit)s",
        {"tenant": unit.tenant_id, "authors": list(spellings), "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def proposals_of_authors(unit: Unit, spellings: Sequence[str], limit: int | None) -> list[UUID]:
    """Those whose memory is not by the author anyway."""
    rows = unit.rows(
        """
        select p.proposal_id from proposal p
        where p.tenant_id = %(tenant)s and p.body ->> 'author' = any (%(authors)s)
          and not exists (select from memory m where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id
                          and m.author = any (%(authors)s))
        order by p.proposal_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "authors": list(spellings), "limit": limit},
    )
    return [row["proposal_id"] for row in rows]


def jobs_of_authors(unit: Unit, spellings: Sequence[str]) -> list[UUID]:
    rows = unit.rows(
        "select distinct job_id from job_item where tenant_id = %(tenant)s"
        " and body -> 'request' ->> 'author' = any (%(authors)s)",
        {"tenant": unit.tenant_id, "authors": list(spellings)},
    )
    return [row["job_id"] for row in rows]


def with_merged(unit: Unit, entity_ids: Sequence[UUID]) -> list[UUID]:
    """These entities and those that were merged into them."""
    rows = unit.rows(
        "select entity_id from entity where tenant_id = %(tenant)s"
        " and (entity_id = any (%(ids)s) or merged_into = any (%(ids)s))",
        {"tenant": unit.tenant_id, "ids": list(entity_ids)},
    )
    return [row["entity_id"] for row in rows]


def memories_of_entities(unit: Unit, entity_ids: Sequence[UUID], limit: int | None) -> list[UUID]:
    """What mentions one of them, or supports a relationship of one."""
    rows = unit.rows(
        """
        select memory_id from mention where tenant_id = %(tenant)s and entity_id = any (%(ids)s)
        union
        select s.memory_id from support s join relationship r on r.tenant_id = s.tenant_id
          and r.relationship_id = s.relationship_id and r.version = s.version
        where s.tenant_id = %(tenant)s and (r.subject_id = any (%(ids)s) or r.object_id = any (%(ids)s))
        order by memory_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "ids": list(entity_ids), "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def _spoken(graph: LiteralString) -> LiteralString:
    """Every name in the entities and relations of a JSON document, as a list of rows."""
    return f"""
      select e ->> 'name' as name from jsonb_array_elements({graph} -> 'entities') e
      union all
      select a from jsonb_array_elements({graph} -> 'entities') e, jsonb_array_elements_text(e -> 'aliases') a
      union all
      select n from jsonb_array_elements({graph} -> 'relations') r, unnest(array[r ->> 'subject', r ->> 'object']) n
    """


# What is no part of the graph yet and names entities: (kind, id, space_id, graph).
_UNTIED = """
  select 'memory' as kind, memory_id as id, space_id, held_graph as graph from memory
  where tenant_id = %(tenant)s and held_graph is not null
  union all
  select 'proposal', proposal_id, space_id, body from proposal where tenant_id = %(tenant)s and memory_id is null
  union all
  select 'job', job_id, space_id, body -> 'request' from job_item where tenant_id = %(tenant)s and body ? 'request'
"""


def names_of_entities(unit: Unit, entity_ids: Sequence[UUID]) -> set[tuple[UUID, str]]:
    """(space, key) of every name of these entities."""
    rows = unit.rows(
        "select space_id, name_key from entity_name where tenant_id = %(tenant)s and entity_id = any (%(ids)s)",
        {"tenant": unit.tenant_id, "ids": list(entity_ids)},
    )
    return {(row["space_id"], row["name_key"]) for row in rows}


def untied_names(unit: Unit) -> list[tuple[UUID, str]]:
    """(space, name), each once, of what captures, held memories and staged imports say of entities."""
    rows = unit.rows(
        f"select distinct u.space_id, s.name from ({_UNTIED}) u, lateral ({_spoken('u.graph')}) s"
        " where s.name is not null",
        {"tenant": unit.tenant_id},
    )
    return [(row["space_id"], row["name"]) for row in rows]


def naming(unit: Unit, spoken: Sequence[tuple[UUID, str]]) -> dict[str, list[UUID]]:
    """By kind (memory, proposal, job), what of that says one of these names in its space."""
    found: dict[str, list[UUID]] = {"memory": [], "proposal": [], "job": []}
    for row in unit.rows(
        f"""
        select distinct u.kind, u.id from ({_UNTIED}) u, lateral ({_spoken("u.graph")}) s
        join unnest(%(spaces)s::uuid[], %(names)s::text[]) as w (space_id, name) on w.name = s.name
        where w.space_id = u.space_id
        order by u.kind, u.id
        """,
        {
            "tenant": unit.tenant_id,
            "spaces": [space_id for space_id, _ in spoken],
            "names": [name for _, name in spoken],
        },
    ):
        found[row["kind"]].append(row["id"])
    return found


def occurrences_of_submitter(unit: Unit, principal_id: UUID, limit: int | None) -> list[UUID]:
    """Further submissions of memories that others own."""
    rows = unit.rows(
        """
        select o.occurrence_id from occurrence o
        join memory m on m.tenant_id = o.tenant_id and m.memory_id = o.memory_id
        where o.tenant_id = %(tenant)s and o.submitted_by = %(principal)s and m.owner_id <> %(principal)s
        order by o.occurrence_id limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "principal": principal_id, "limit": limit},
    )
    return [row["occurrence_id"] for row in rows]


_EVERY: dict[str, LiteralString] = {
    "memory": "select memory_id as id from memory where tenant_id = %(tenant)s order by 1",
    "proposal": "select proposal_id as id from proposal where tenant_id = %(tenant)s and memory_id is null order by 1",
    "job_item": "select distinct job_id as id from job_item where tenant_id = %(tenant)s order by 1",
    "attempt": "select attempt_id as id from attempt where tenant_id = %(tenant)s and state <> 'erased' order by 1",
}


def every(unit: Unit, table: str) -> list[UUID]:
    """Every memory, proposal that became none, import with staged text, or attempt of the tenant."""
    return [row["id"] for row in unit.rows(_EVERY[table], {"tenant": unit.tenant_id})]


def subjects_of_jobs(unit: Unit, job_ids: Sequence[UUID]) -> dict[UUID, list[str]]:
    rows = unit.rows(
        f"""
        select i.job_id, array_agg(s.subject) as subjects
        from job_item i, jsonb_array_elements_text({_STAGED}) as s(subject)
        where i.tenant_id = %(tenant)s and i.job_id = any (%(ids)s) and i.body -> 'request' ? 'data_subjects'
        group by i.job_id
        """,
        {"tenant": unit.tenant_id, "ids": list(job_ids)},
    )
    return {row["job_id"]: row["subjects"] for row in rows}


def jobs_of_subjects(unit: Unit, subjects: Sequence[str]) -> list[UUID]:
    rows = unit.rows(
        f"select distinct i.job_id from job_item i where i.tenant_id = %(tenant)s"
        f" and {_STAGED} ?| %(subjects)s::text[]",
        {"tenant": unit.tenant_id, "subjects": list(subjects)},
    )
    return [row["job_id"] for row in rows]


def jobs_of_principal(unit: Unit, principal_id: UUID) -> list[UUID]:
    """Imports of that principal that still hold staged text."""
    rows = unit.rows(
        """
        select j.job_id from job j where j.tenant_id = %(tenant)s and j.principal_id = %(principal)s
          and exists (select from job_item i where i.tenant_id = j.tenant_id and i.job_id = j.job_id)
        """,
        {"tenant": unit.tenant_id, "principal": principal_id},
    )
    return [row["job_id"] for row in rows]


def jobs_with_texts_of(unit: Unit, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Imports that hold the same bytes as one of these memories."""
    rows = unit.rows(
        """
        select distinct i.job_id from job_item i
        join memory m on m.tenant_id = i.tenant_id and m.content = i.body -> 'request' ->> 'content'
        where i.tenant_id = %(tenant)s and m.memory_id = any (%(ids)s)
        """,
        {"tenant": unit.tenant_id, "ids": list(memory_ids)},
    )
    return [row["job_id"] for row in rows]
