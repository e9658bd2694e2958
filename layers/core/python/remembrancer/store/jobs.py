"""Long work: what was asked, what is staged, how far it is. Staged text is invisible to everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.memory import Passages, PassageText
from remembrancer.domain.principal import Credential
from remembrancer.store.database import Row, Unit
from remembrancer.store.vectors import vector_text

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors

LEASE = timedelta(seconds=90)
"""A worker that lives renews it with each batch, and holds the row itself while it publishes."""
UNFINISHED = timedelta(hours=24)
"""A job that nobody finished is over then, and a bundle is removed."""
KEPT = timedelta(days=7)
"""How long after that its answer can be read."""
WORKED_ON = ("import", "export")
"""What `job_step` takes; the kinds erase and dsar have a worker that may delete."""
WAITING = "waiting"
"""The member of an item's body that is not ready."""
REFUSED = "refused"
"""The member that is left of an item that was refused."""


def create(
    unit: Unit,
    kind: str,
    credential: Credential,
    request: Mapping[str, Any],
    correlation_id: str,
    total: int,
    *,
    lasts: timedelta = UNFINISHED,
) -> UUID:
    job_id = unit.new_id()
    unit.run(
        """
        insert into job (tenant_id, job_id, principal_id, kind, issuer, subject, scopes, groups, correlation_id,
          request, total, created_at, expires_at)
        values (%(tenant)s, %(id)s, %(principal)s, %(kind)s, %(issuer)s, %(subject)s, %(scopes)s, %(groups)s,
          %(correlation)s, %(request)s, %(total)s, %(now)s, %(expires)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": job_id,
            "principal": unit.principal.principal_id,
            "kind": kind,
            "issuer": credential.issuer,
            "subject": credential.subject,
            "scopes": sorted(credential.scopes),
            "groups": sorted(credential.groups),
            "correlation": correlation_id,
            "request": Jsonb(dict(request)),
            "total": total,
            "now": unit.now,
            "expires": unit.now + lasts,
        },
    )
    return job_id


def credential_of(row: Row) -> Credential:
    """What the job goes on with; the principal behind it is read again in each transaction, and is who asked."""
    return Credential(
        row["issuer"],
        row["subject"],
        frozenset(row["scopes"]),
        frozenset(row["groups"]),
        principal_id=row["principal_id"],
    )


def stage(unit: Unit, job_id: UUID, staged: Sequence[tuple[UUID, Mapping[str, Any]]]) -> None:
    """(space, body) of each item, in order."""
    unit.run(
        """
        insert into job_item (tenant_id, job_id, ordinal, space_id, body)
        select %(tenant)s, %(job)s, ordinal, space_id, body
        from jsonb_to_recordset(%(rows)s) as r (ordinal int, space_id uuid, body jsonb)
        """,
        {
            "tenant": unit.tenant_id,
            "job": job_id,
            "rows": Jsonb(
                [
                    {"ordinal": ordinal, "space_id": str(space_id), "body": dict(body)}
                    for ordinal, (space_id, body) in enumerate(staged)
                ]
            ),
        },
    )


def ready(unit: Unit, job_id: UUID, bodies: Mapping[int, Mapping[str, Any]]) -> set[int]:
    """Replace the bodies, by ordinal, of those that still wait to be made ready; the ordinals of these."""
    if not bodies:
        return set()
    rows = unit.rows(
        """
        update job_item i set body = r.body
        from jsonb_to_recordset(%(rows)s) as r (ordinal int, body jsonb)
        where i.tenant_id = %(tenant)s and i.job_id = %(job)s and i.ordinal = r.ordinal and i.body ? %(waiting)s
        returning i.ordinal
        """,
        {
            "tenant": unit.tenant_id,
            "job": job_id,
            "waiting": WAITING,
            "rows": Jsonb([{"ordinal": ordinal, "body": dict(body)} for ordinal, body in bodies.items()]),
        },
    )
    return {row["ordinal"] for row in rows}


def get(unit: Unit, job_id: UUID) -> Row | None:
    return unit.row(
        "select * from job where tenant_id = %(tenant)s and job_id = %(id)s",
        {"tenant": unit.tenant_id, "id": job_id},
    )


def claim(unit: Unit, job_id: UUID | None, kinds: Sequence[str] = WORKED_ON) -> Row | None:
    """The named job, or the oldest that nobody works on, now ours for LEASE; None when there is none."""
    return unit.row(
        """
        update job set claimed_until = %(until)s
        where tenant_id = %(tenant)s and job_id = (
          select job_id from job
          where tenant_id = %(tenant)s and state = 'working' and kind = any (%(kinds)s)
            and (%(id)s::uuid is null or job_id = %(id)s)
            and (claimed_until is null or claimed_until <= %(now)s) and expires_at > %(now)s
          order by created_at limit 1 for update skip locked)
        returning *
        """,
        {
            "until": unit.now + LEASE,
            "tenant": unit.tenant_id,
            "id": job_id,
            "now": unit.now,
            "kinds": list(kinds),
        },
    )


def lapsed(unit: Unit, kinds: Sequence[str]) -> list[Row]:
    """Those that nobody finished in their time, locked."""
    return unit.rows(
        """
        select * from job where tenant_id = %(tenant)s and state = 'working' and kind = any (%(kinds)s)
          and expires_at <= %(now)s
        order by job_id for update
        """,
        {"tenant": unit.tenant_id, "kinds": list(kinds), "now": unit.now},
    )


def renew(unit: Unit, job_id: UUID) -> None:
    """The worker lives."""
    unit.run(
        "update job set claimed_until = %(until)s where tenant_id = %(tenant)s and job_id = %(id)s",
        {"until": unit.now + LEASE, "tenant": unit.tenant_id, "id": job_id},
    )


def release(unit: Unit, job_id: UUID) -> None:
    unit.run(
        "update job set claimed_until = null where tenant_id = %(tenant)s and job_id = %(id)s and state = 'working'",
        {"tenant": unit.tenant_id, "id": job_id},
    )


def items(unit: Unit, job_id: UUID) -> list[Row]:
    """{ordinal, body} in order."""
    return unit.rows(
        "select ordinal, body from job_item where tenant_id = %(tenant)s and job_id = %(job)s order by ordinal",
        {"tenant": unit.tenant_id, "job": job_id},
    )


def uncut(unit: Unit, job_id: UUID, limit: int) -> list[Row]:
    """Items without passages that were not refused: {ordinal, space_id, body}. They are made ready and cut in one
    transaction and in order, so these are the last ones, and all of them wait."""
    return unit.rows(
        """
        select i.ordinal, i.space_id, i.body from job_item i
        where i.tenant_id = %(tenant)s and i.job_id = %(job)s
          and i.ordinal > coalesce((select max(p.item) from job_passage p
                                    where p.tenant_id = %(tenant)s and p.job_id = %(job)s), -1)
          and not i.body ? %(refused)s
        order by i.ordinal limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "job": job_id, "refused": REFUSED, "limit": limit},
    )


def add_passages(unit: Unit, job_id: UUID, cuts: Sequence[tuple[Row, Sequence[PassageText]]]) -> None:
    """Passages still without a vector, of items as `uncut` gave them; a second worker's are dropped."""
    unit.run_many(
        """
        insert into job_passage (tenant_id, job_id, item, ordinal, space_id, span_start, span_end, rendered)
        values (%(tenant)s, %(job)s, %(item)s, %(ordinal)s, %(space)s, %(start)s, %(end)s, %(rendered)s)
        on conflict do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "job": job_id,
                "item": item["ordinal"],
                "ordinal": ordinal,
                "space": item["space_id"],
                "start": text.start,
                "end": text.end,
                "rendered": text.rendered,
            }
            for item, texts in cuts
            for ordinal, text in enumerate(texts)
        ],
    )


def unembedded(unit: Unit, job_id: UUID, limit: int) -> list[Row]:
    """{item, ordinal, rendered} without a vector, in order."""
    return unit.rows(
        """
        select item, ordinal, rendered from job_passage
        where tenant_id = %(tenant)s and job_id = %(job)s and embedding is null
        order by item, ordinal limit %(limit)s
        """,
        {"tenant": unit.tenant_id, "job": job_id, "limit": limit},
    )


def set_vectors(unit: Unit, job_id: UUID, passages: Sequence[Row], vectors: Vectors, contract: str) -> None:
    unit.run_many(
        """
        update job_passage set embedding = %(vector)s::halfvec, contract = %(contract)s
        where tenant_id = %(tenant)s and job_id = %(job)s and item = %(item)s and ordinal = %(ordinal)s
        """,
        [
            {
                "vector": vector_text(vector),
                "contract": contract,
                "tenant": unit.tenant_id,
                "job": job_id,
                "item": row["item"],
                "ordinal": row["ordinal"],
            }
            for row, vector in zip(passages, vectors, strict=True)
        ],
    )


def progress(unit: Unit, job_id: UUID) -> None:
    """`done` counts the items whose every passage has its vector. They get them in order: these are the first."""
    unit.run(
        """
        update job set done = coalesce(
          (select min(p.item) from job_passage p
           where p.tenant_id = %(tenant)s and p.job_id = %(job)s and p.embedding is null),
          (select max(p.item) + 1 from job_passage p where p.tenant_id = %(tenant)s and p.job_id = %(job)s),
          0)
        where tenant_id = %(tenant)s and job_id = %(job)s
        """,
        {"tenant": unit.tenant_id, "job": job_id},
    )


def passages(unit: Unit, job_id: UUID) -> dict[int, Passages]:
    """By item, all with their vectors. Raises ValueError when vectors of two contracts meet in one job."""
    import numpy as np

    found: dict[int, list[Row]] = {}
    for row in unit.rows(
        """
        select item, span_start, span_end, rendered, embedding::text as embedding, contract from job_passage
        where tenant_id = %(tenant)s and job_id = %(job)s order by item, ordinal
        """,
        {"tenant": unit.tenant_id, "job": job_id},
    ):
        found.setdefault(row["item"], []).append(row)
    contracts = {row["contract"] for rows in found.values() for row in rows}
    if len(contracts) > 1:
        raise ValueError("vectors of two contracts in one job")
    return {
        item: Passages(
            tuple(PassageText(r["span_start"], r["span_end"], r["rendered"]) for r in rows),
            np.array([np.fromstring(r["embedding"][1:-1], sep=",") for r in rows], dtype=np.float32),
            rows[0]["contract"],
        )
        for item, rows in found.items()
    }


def lock(unit: Unit, job_id: UUID) -> Row | None:
    """The job while it is being worked on, locked until the commit: its result is written once."""
    return unit.row(
        "select * from job where tenant_id = %(tenant)s and job_id = %(id)s and state = 'working' for update",
        {"tenant": unit.tenant_id, "id": job_id},
    )


def finish(
    unit: Unit,
    job_id: UUID,
    *,
    result: Mapping[str, Any],
    object_key: str | None = None,
) -> None:
    """Done; what was staged is gone in the same transaction."""
    empty(unit, job_id)
    unit.run(
        """
        update job set state = 'done', done = total, result = %(result)s, object_key = %(key)s, claimed_until = null,
          finished_at = %(now)s, expires_at = %(expires)s
        where tenant_id = %(tenant)s and job_id = %(id)s
        """,
        {
            "result": Jsonb(dict(result)),
            "key": object_key,
            "now": unit.now,
            "expires": unit.now + UNFINISHED,
            "tenant": unit.tenant_id,
            "id": job_id,
        },
    )


def fail(unit: Unit, job_id: UUID, code: str) -> None:
    """Over for good, by a problem's code; nothing of it was published."""
    unit.run(
        """
        update job set state = 'failed', failure = %(code)s, claimed_until = null, finished_at = %(now)s
        where tenant_id = %(tenant)s and job_id = %(id)s and state = 'working'
        """,
        {"code": code, "now": unit.now, "tenant": unit.tenant_id, "id": job_id},
    )


def empty(unit: Unit, job_id: UUID) -> None:
    """What an import has staged is gone."""
    scope = {"tenant": unit.tenant_id, "job": job_id}
    unit.run("delete from job_passage where tenant_id = %(tenant)s and job_id = %(job)s", scope)
    unit.run("delete from job_item where tenant_id = %(tenant)s and job_id = %(job)s", scope)


def erase_bundles(unit: Unit, keep: UUID | None = None) -> list[str]:
    """Bundles that may hold erased bytes are given up, but for that of the job `keep`; the keys of their objects,
    to be deleted. A subject's request loses its bundle and goes on."""
    rows = unit.rows(
        """
        with gone as (
          select job_id, object_key from job
          where tenant_id = %(tenant)s and job_id is distinct from %(keep)s and (
            (kind = 'export' and state in ('working', 'done')) or (kind = 'dsar' and object_key is not null))
          for update)
        update job j set state = case when j.kind = 'export' then 'erased' else j.state end, object_key = null from gone
        where j.tenant_id = %(tenant)s and j.job_id = gone.job_id
        returning gone.object_key
        """,
        {"tenant": unit.tenant_id, "keep": keep},
    )
    return [row["object_key"] for row in rows if row["object_key"] is not None]


def sweep(unit: Unit) -> int:
    """Remove staged text that no job works on any more, and jobs that were over long ago; rows removed."""
    scope = {"tenant": unit.tenant_id, "now": unit.now, "over": unit.now - KEPT}
    staged = unit.run(
        """
        delete from job_item i using job j
        where i.tenant_id = %(tenant)s and j.tenant_id = i.tenant_id and j.job_id = i.job_id
          and (j.state <> 'working' or j.expires_at <= %(now)s)
        """,
        scope,
    )
    return staged + unit.run("delete from job where tenant_id = %(tenant)s and expires_at <= %(over)s", scope)
