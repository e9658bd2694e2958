"""Attempts: one run of one remember request each; idempotency record, lease and fence of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.principal import Credential
from remembrancer.domain.problems import Problem
from remembrancer.store.database import Row, Unit
from remembrancer.store.erasure import SUBJECTS
from remembrancer.store.vectors import vector_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

FAILURE_KEPT = timedelta(days=30)
"""How long a failure is replayed. A completed result is, as long as its evidence lives."""
CHECKPOINT_KEPT = timedelta(days=1)
"""A retry that comes later than this pays the model again."""


@dataclass(frozen=True)
class NewAttempt:
    """What an attempt is begun with. `request` and `screened` are JSON-ready."""

    operation: str
    key: str
    request_hash: bytes
    target_id: UUID
    credential: Credential
    correlation_id: str
    entered_at: datetime
    deadline: datetime
    lease_until: datetime
    request: Mapping[str, Any]
    screened: Mapping[str, Any]
    data_subjects: Sequence[str]
    content_shas: Sequence[bytes]


def latest(unit: Unit, operation: str, key: str) -> Row | None:
    """The newest attempt of the principal under this key."""
    return unit.row(
        """
        select * from attempt
        where tenant_id = %(tenant)s and principal_id = %(principal)s and operation = %(operation)s and key = %(key)s
        order by number desc limit 1
        """,
        {
            "tenant": unit.tenant_id,
            "principal": unit.principal.principal_id,
            "operation": operation,
            "key": key,
        },
    )


def begin(unit: Unit, new: NewAttempt, after: Row | None) -> Row | None:
    """The next attempt of the chain that `after` is the last of; None when another caller was first."""
    attempt_id = unit.new_id()
    return unit.row(
        """
        insert into attempt (tenant_id, attempt_id, space_id, target_id, principal_id, operation, key, request_hash,
          chain_id, number, token, issuer, subject, scopes, groups, correlation_id, entered_at, deadline, lease_until,
          request, screened, data_subjects, content_shas)
        values (%(tenant)s, %(id)s, %(space)s, %(target)s, %(principal)s, %(operation)s, %(key)s, %(hash)s,
          %(chain)s, %(number)s, %(token)s, %(issuer)s, %(subject)s, %(scopes)s, %(groups)s, %(correlation)s,
          %(entered)s, %(deadline)s, %(lease)s, %(request)s, %(screened)s, %(subjects)s, %(shas)s)
        on conflict do nothing
        returning *
        """,
        {
            "tenant": unit.tenant_id,
            "id": attempt_id,
            "space": unit.principal.private_space,
            "target": new.target_id,
            "principal": unit.principal.principal_id,
            "operation": new.operation,
            "key": new.key,
            "hash": new.request_hash,
            "chain": attempt_id if after is None else after["chain_id"],
            "number": 1 if after is None else after["number"] + 1,
            "token": unit.new_id(),
            "issuer": new.credential.issuer,
            "subject": new.credential.subject,
            "scopes": sorted(new.credential.scopes),
            "groups": sorted(new.credential.groups),
            "correlation": new.correlation_id,
            "entered": new.entered_at,
            "deadline": new.deadline,
            "lease": new.lease_until,
            "request": Jsonb(dict(new.request)),
            "screened": Jsonb(dict(new.screened)),
            "subjects": list(new.data_subjects),
            "shas": list(new.content_shas),
        },
    )


def get(unit: Unit, attempt_id: UUID) -> Row | None:
    return unit.row(
        "select * from attempt where tenant_id = %(tenant)s and attempt_id = %(id)s",
        {"tenant": unit.tenant_id, "id": attempt_id},
    )


def outcome(unit: Unit, attempt_id: UUID) -> Row | None:
    """What a waiter polls, without what the work needs."""
    return unit.row(
        "select attempt_id, target_id, principal_id, chain_id, number, correlation_id, state, status, result,"
        " lease_until"
        " from attempt where tenant_id = %(tenant)s and attempt_id = %(id)s",
        {"tenant": unit.tenant_id, "id": attempt_id},
    )


def lock(unit: Unit, attempt_id: UUID) -> Row | None:
    """The row, locked until the commit."""
    return unit.row(
        "select * from attempt where tenant_id = %(tenant)s and attempt_id = %(id)s for update",
        {"tenant": unit.tenant_id, "id": attempt_id},
    )


def fence(unit: Unit, attempt_id: UUID, token: UUID, request_hash: bytes) -> Row:
    """The first lock of the commit: the attempt is still its owner's, and stays so until the end.

    Raises Problem commit_conflict for a zombie, whose lease ran out and was taken over.
    """
    row = lock(unit, attempt_id)
    if row is None or row["state"] != "processing" or row["token"] != token:
        raise Problem("commit_conflict")
    if bytes(row["request_hash"]) != request_hash:
        raise Problem("commit_conflict")
    return row


def set_prepared(unit: Unit, attempt_id: UUID, context: Mapping[str, Any], refs: Sequence[UUID]) -> int:
    """Keep what was found; `refs` are the rows whose text is in it. Rows changed: 0 when it is over."""
    return unit.run(
        """
        update attempt set context = %(context)s, refs = %(refs)s, turn = 1
        where tenant_id = %(tenant)s and attempt_id = %(id)s and state = 'processing' and turn = 0
        """,
        {
            "context": Jsonb(dict(context)),
            "refs": list(refs),
            "tenant": unit.tenant_id,
            "id": attempt_id,
        },
    )


def set_assessment(unit: Unit, attempt_id: UUID, assessment: Mapping[str, Any]) -> int:
    return unit.run(
        "update attempt set assessment = %(assessment)s"
        " where tenant_id = %(tenant)s and attempt_id = %(id)s and state = 'processing'",
        {"assessment": Jsonb(dict(assessment)), "tenant": unit.tenant_id, "id": attempt_id},
    )


def next_turn(unit: Unit, attempt_id: UUID, turn: int) -> int:
    """From this turn to the next one, once. Rows changed."""
    return unit.run(
        """
        update attempt set turn = turn + 1
        where tenant_id = %(tenant)s and attempt_id = %(id)s and state = 'processing' and turn = %(turn)s
        """,
        {"tenant": unit.tenant_id, "id": attempt_id, "turn": turn},
    )


def finish(
    unit: Unit,
    attempt_id: UUID,
    *,
    state: str,
    status: int,
    result: str,
    refs: Sequence[UUID] = (),
) -> bool:
    """The one terminal result; False when there is one already. What the work needed is gone with it.

    `refs` are the rows that the result speaks of, beside those the assessor was shown: erasing one erases the result.
    """
    done = unit.run(
        """
        update attempt set state = %(state)s, status = %(status)s, result = %(result)s,
          refs = array(select distinct unnest(refs || %(refs)s::uuid[])), request = null, context = null,
          assessment = null, finished_at = %(now)s,
          expires_at = case when %(state)s = 'completed' then null else %(now)s::timestamptz + %(kept)s end
        where tenant_id = %(tenant)s and attempt_id = %(id)s and state = 'processing'
        """,
        {
            "state": state,
            "status": status,
            "result": result,
            "refs": list(refs),
            "now": unit.now,
            "kept": FAILURE_KEPT,
            "tenant": unit.tenant_id,
            "id": attempt_id,
        },
    )
    if done:
        unit.run(
            "delete from attempt_vector where tenant_id = %(tenant)s and attempt_id = %(id)s",
            {"tenant": unit.tenant_id, "id": attempt_id},
        )
    return bool(done)


def abandoned(unit: Unit, limit: int) -> list[Row]:
    """Attempts whose lease ran out, locked: nobody works on them any more."""
    return unit.rows(
        """
        select * from attempt where tenant_id = %(tenant)s and state = 'processing' and lease_until <= %(now)s
        order by lease_until limit %(limit)s for update skip locked
        """,
        {"tenant": unit.tenant_id, "now": unit.now, "limit": limit},
    )


# Vectors ---------------------------------------------------------------------------------------------------


def save_vectors(unit: Unit, attempt_id: UUID, contract: str, vectors: Mapping[bytes, Vector]) -> None:
    """By SHA-256 of the embedded text."""
    unit.run_many(
        """
        insert into attempt_vector (tenant_id, attempt_id, space_id, text_sha, contract, embedding)
        values (%(tenant)s, %(attempt)s, %(space)s, %(sha)s, %(contract)s, %(vector)s::halfvec)
        on conflict do nothing
        """,
        [
            {
                "tenant": unit.tenant_id,
                "attempt": attempt_id,
                "space": unit.principal.private_space,
                "sha": sha,
                "contract": contract,
                "vector": vector_text(vector),
            }
            for sha, vector in vectors.items()
        ],
    )


def vectors(unit: Unit, attempt_id: UUID, contract: str) -> dict[bytes, Vector]:
    """The saved vectors of that contract, in the precision that passages keep."""
    import numpy as np

    rows = unit.rows(
        """
        select text_sha, embedding::text as embedding from attempt_vector
        where tenant_id = %(tenant)s and attempt_id = %(attempt)s and contract = %(contract)s
        """,
        {"tenant": unit.tenant_id, "attempt": attempt_id, "contract": contract},
    )
    return {
        bytes(row["text_sha"]): np.fromstring(row["embedding"][1:-1], sep=",").astype(np.float32)
        for row in rows
    }


# Checkpoints and exchanges ---------------------------------------------------------------------------------


def checkpoint(unit: Unit, chain_id: UUID, context_hash: bytes) -> Row | None:
    """What an earlier attempt of the chain had validated in the very same context: {assessment, turns}."""
    return unit.row(
        """
        select assessment, turns from checkpoint
        where tenant_id = %(tenant)s and chain_id = %(chain)s and context_hash = %(hash)s and expires_at > %(now)s
        """,
        {"tenant": unit.tenant_id, "chain": chain_id, "hash": context_hash, "now": unit.now},
    )


def save_checkpoint(unit: Unit, row: Row, context_hash: bytes, assessment: Mapping[str, Any]) -> None:
    unit.run(
        """
        insert into checkpoint (tenant_id, chain_id, context_hash, space_id, attempt_id, assessment, turns, created_at,
          expires_at)
        values (%(tenant)s, %(chain)s, %(hash)s, %(space)s, %(attempt)s, %(assessment)s, %(turns)s, %(now)s,
          %(expires)s)
        on conflict do nothing
        """,
        {
            "tenant": unit.tenant_id,
            "chain": row["chain_id"],
            "hash": context_hash,
            "space": row["space_id"],
            "attempt": row["attempt_id"],
            "assessment": Jsonb(dict(assessment)),
            "turns": row["turn"],
            "now": unit.now,
            "expires": unit.now + CHECKPOINT_KEPT,
        },
    )


@dataclass(frozen=True)
class Exchange:
    """What was said in one turn. Texts are cut to EXCHANGE_BYTES; the byte counts are of the whole."""

    turn: int
    asked: str
    answered: str | None
    outcome: str
    issues: Sequence[Mapping[str, str]] = ()
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


EXCHANGE_BYTES = 64 * 1024
EXCHANGE_KEPT = timedelta(days=7)


def save_exchange(unit: Unit, row: Row, said: Exchange) -> None:
    """A protected diagnostic: at most 64 KiB a text, so 384 KiB an attempt; 7 days. NUL cannot be stored."""
    unit.run(
        """
        insert into exchange (tenant_id, attempt_id, turn, space_id, asked, asked_bytes, answered, answered_bytes,
          issues, outcome, model, input_tokens, output_tokens, at, expires_at)
        values (%(tenant)s, %(attempt)s, %(turn)s, %(space)s, %(asked)s, %(asked_bytes)s, %(answered)s,
          %(answered_bytes)s, %(issues)s, %(outcome)s, %(model)s, %(input)s, %(output)s, %(now)s, %(expires)s)
        on conflict do nothing
        """,
        {
            "tenant": unit.tenant_id,
            "attempt": row["attempt_id"],
            "turn": said.turn,
            "space": row["space_id"],
            "asked": cut_bytes(said.asked),
            "asked_bytes": len(said.asked.encode("utf-8", "replace")),
            "answered": None if said.answered is None else cut_bytes(said.answered),
            "answered_bytes": None
            if said.answered is None
            else len(said.answered.encode("utf-8", "replace")),
            "issues": Jsonb(list(said.issues)),
            "outcome": said.outcome,
            "model": said.model,
            "input": said.input_tokens,
            "output": said.output_tokens,
            "now": unit.now,
            "expires": unit.now + EXCHANGE_KEPT,
        },
    )


def cut_bytes(text: str, limit: int = EXCHANGE_BYTES) -> str:
    """The first `limit` bytes of the text in UTF-8, whole characters, as PostgreSQL can store them."""
    storable = text[:limit].replace("\x00", "\ufffd").encode("utf-8", "replace")
    return storable[:limit].decode("utf-8", "ignore")


def exchanges(unit: Unit, attempt_id: UUID) -> list[Row]:
    return unit.rows(
        """
        select * from exchange where tenant_id = %(tenant)s and attempt_id = %(id)s and expires_at > %(now)s
        order by turn
        """,
        {"tenant": unit.tenant_id, "id": attempt_id, "now": unit.now},
    )


def sweep(unit: Unit) -> int:
    """Remove what has expired; rows removed. Digests of texts go with the exchanges that erasure finds by them."""
    scope = {"tenant": unit.tenant_id, "now": unit.now}
    unit.run(
        "update attempt set content_shas = '{}' where tenant_id = %(tenant)s and finished_at <= %(over)s"
        " and content_shas <> '{}'",
        {"tenant": unit.tenant_id, "over": unit.now - EXCHANGE_KEPT},
    )
    return (
        unit.run("delete from exchange where tenant_id = %(tenant)s and expires_at <= %(now)s", scope)
        + unit.run("delete from checkpoint where tenant_id = %(tenant)s and expires_at <= %(now)s", scope)
        + unit.run("delete from attempt where tenant_id = %(tenant)s and expires_at <= %(now)s", scope)
    )


# Erasure ---------------------------------------------------------------------------------------------------


def lock_processing(unit: Unit) -> None:
    """Wait for the attempts that are being committed: an attempt before its spaces, as they do."""
    unit.rows(
        "select attempt_id from attempt where tenant_id = %(tenant)s and state = 'processing'"
        " order by attempt_id for update",
        {"tenant": unit.tenant_id},
    )


def touched(
    unit: Unit, attempt_ids: Sequence[UUID], memory_ids: Sequence[UUID], occurrence_ids: Sequence[UUID]
) -> list[Row]:
    """These attempts, and those that hold or were shown what is erased: its bytes, its ids, names that nothing else
    brings; {attempt_id, data_subjects, on_legal_hold} in a fixed order. One is held with the memories that it
    brought. Call before the rows are gone."""
    return unit.rows(
        f"""
        select a.attempt_id, a.data_subjects || brought.subjects as data_subjects, brought.on_legal_hold
        from attempt a
        cross join lateral (
          select coalesce(array_agg(s.subject) filter (where s.subject is not null), '{{}}') as subjects,
                 coalesce(bool_or(exists (
                   select from legal_hold l where l.tenant_id = m.tenant_id and l.memory_id = m.memory_id
                     and l.released_at is null)), false) as on_legal_hold
          from memory m left join lateral ({SUBJECTS}) as s (subject) on true
          where m.tenant_id = a.tenant_id and m.memory_id = any (a.refs)
            and exists (select from occurrence o where o.tenant_id = m.tenant_id and o.memory_id = m.memory_id
                        and o.correlation_id = a.correlation_id)) brought
        where a.tenant_id = %(tenant)s and a.state <> 'erased' and a.attempt_id = any (array(
          select unnest(%(attempts)s::uuid[])
          union
          select attempt_id from rem_attempts_with(
            %(refs)s::uuid[] || array(
              select t.entity_id from (
                select entity_id, name_key from mention
                where tenant_id = %(tenant)s and memory_id = any (%(memories)s)
                union
                select b.entity_id, b.name_key from mention b join occurrence o on o.tenant_id = b.tenant_id
                  and o.memory_id = b.memory_id and o.occurrence_id = b.occurrence_id
                where o.tenant_id = %(tenant)s and o.occurrence_id = any (%(occurrences)s)) t
              where not exists (select from mention o where o.tenant_id = %(tenant)s and o.entity_id = t.entity_id
                                and o.name_key = t.name_key and o.memory_id <> all (%(memories)s)
                                and o.occurrence_id <> all (%(occurrences)s))),
            array(select sha256(convert_to(m.content, 'UTF8')) from memory m
                  where m.tenant_id = %(tenant)s and m.memory_id = any (%(memories)s)))))
        order by a.attempt_id
        """,
        {
            "tenant": unit.tenant_id,
            "attempts": list(attempt_ids),
            "memories": list(memory_ids),
            "occurrences": list(occurrence_ids),
            "refs": [*memory_ids, *occurrence_ids],
        },
    )


def of_subjects(unit: Unit, subjects: Sequence[str]) -> list[UUID]:
    rows = unit.rows(
        "select attempt_id from attempt where tenant_id = %(tenant)s and state <> 'erased'"
        " and data_subjects && %(subjects)s::text[] order by attempt_id",
        {"tenant": unit.tenant_id, "subjects": list(subjects)},
    )
    return [row["attempt_id"] for row in rows]


def of_principal(unit: Unit, principal_id: UUID) -> list[UUID]:
    rows = unit.rows(
        "select attempt_id from attempt where tenant_id = %(tenant)s and state <> 'erased'"
        " and principal_id = %(principal)s order by attempt_id",
        {"tenant": unit.tenant_id, "principal": principal_id},
    )
    return [row["attempt_id"] for row in rows]


def erased_at_work(unit: Unit, attempt_ids: Sequence[UUID]) -> list[UUID]:
    """Those that were erased before they ended: the work bucket may hold texts of theirs."""
    rows = unit.rows(
        "select attempt_id from attempt where tenant_id = %(tenant)s and attempt_id = any (%(ids)s)"
        " and state = 'erased' and finished_at is null",
        {"tenant": unit.tenant_id, "ids": list(attempt_ids)},
    )
    return [row["attempt_id"] for row in rows]


def erase(unit: Unit, attempt_ids: Sequence[UUID]) -> dict[str, int]:
    """What they held is gone, also from replay and from diagnostics; what is at work cannot commit. Rows by table."""
    scope = {"tenant": unit.tenant_id, "ids": list(attempt_ids)}
    counts = {
        table: unit.run(
            f"delete from {table} where tenant_id = %(tenant)s and attempt_id = any (%(ids)s)", scope
        )
        for table in ("exchange", "checkpoint", "attempt_vector")
    }
    counts["attempt"] = unit.run(
        """
        update attempt set state = 'erased', request_hash = '', request = null, context = null, assessment = null,
          screened = '{}', data_subjects = '{}', content_shas = '{}', refs = '{}', result = null
        where tenant_id = %(tenant)s and attempt_id = any (%(ids)s) and state <> 'erased'
        """,
        scope,
    )
    return counts
