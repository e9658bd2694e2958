"""Which rows an erasure or a legal hold is about: memories, proposals of their own, staged work; in every space."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.store.database import Unit

_STAGED = "i.body -> 'request' -> 'data_subjects'"


def declared_subjects(unit: Unit) -> list[str]:
    """Every spelling of a data subject in the tenant, once."""
    rows = unit.rows(
        f"""
        select unnest(m.data_subjects) as subject from memory m where m.tenant_id = %(tenant)s
        union
        select jsonb_array_elements_text(p.body -> 'data_subjects') from proposal p
        where p.tenant_id = %(tenant)s and p.body ? 'data_subjects'
        union
        select jsonb_array_elements_text({_STAGED}) from job_item i
        where i.tenant_id = %(tenant)s and i.body -> 'request' ? 'data_subjects'
        """,
        {"tenant": unit.tenant_id},
    )
    return [row["subject"] for row in rows]


def memories_of_subjects(unit: Unit, subjects: Sequence[str], limit: int) -> list[UUID]:
    rows = unit.rows(
        "select memory_id from memory where tenant_id = %(tenant)s and data_subjects && %(subjects)s::text[]"
        " order by memory_id limit %(limit)s",
        {"tenant": unit.tenant_id, "subjects": list(subjects), "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def memories_of_owner(unit: Unit, owner_id: UUID, limit: int) -> list[UUID]:
    rows = unit.rows(
        "select memory_id from memory where tenant_id = %(tenant)s and owner_id = %(owner)s"
        " order by memory_id limit %(limit)s",
        {"tenant": unit.tenant_id, "owner": owner_id, "limit": limit},
    )
    return [row["memory_id"] for row in rows]


def proposals_of_subjects(unit: Unit, subjects: Sequence[str], limit: int) -> list[UUID]:
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


def proposals_of_submitter(unit: Unit, principal_id: UUID, limit: int) -> list[UUID]:
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


def subjects_of_proposals(unit: Unit, proposal_ids: Sequence[UUID]) -> dict[UUID, list[str]]:
    rows = unit.rows(
        "select proposal_id, body -> 'data_subjects' as subjects from proposal"
        " where tenant_id = %(tenant)s and proposal_id = any (%(ids)s) and body ? 'data_subjects'",
        {"tenant": unit.tenant_id, "ids": list(proposal_ids)},
    )
    return {row["proposal_id"]: row["subjects"] for row in rows}


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
