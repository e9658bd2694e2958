"""Requests that were answered before: claimed by a lease, completed inside the work's own transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from remembrancer.domain.problems import Problem
from remembrancer.store.database import Unit

LEASE = timedelta(seconds=35)
"""Longer than any function behind the API may run (29 s): an expired lease has no living owner."""
KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Claim:
    """The right to answer this key; `token` fences off an owner whose lease ran out."""

    operation: str
    key: str
    token: UUID


@dataclass(frozen=True)
class Replay:
    """The answer given before, byte for byte."""

    status: int
    body: str


def claim(unit: Unit, operation: str, key: str, request_hash: bytes) -> Claim | Replay:
    """Take the key, or replay its answer.

    Raises Problem result_erased (a row of the answer was erased), idempotency_conflict (another payload),
    request_in_progress (still running).
    """
    token = unit.new_id()
    scope = {
        "tenant": unit.tenant_id,
        "principal": unit.principal.principal_id,
        "operation": operation,
        "key": key,
    }
    fresh = {
        **scope,
        "hash": request_hash,
        "token": token,
        "lease": unit.now + LEASE,
        "expires": unit.now + KEPT,
        "now": unit.now,
    }
    # An expired row is as good as none, whether or not the janitor has come by.
    unit.run(
        """
        delete from idempotency where tenant_id = %(tenant)s and principal_id = %(principal)s
          and operation = %(operation)s and key = %(key)s and expires_at <= %(now)s
        """,
        fresh,
    )
    inserted = unit.run(
        """
        insert into idempotency (tenant_id, principal_id, operation, key, request_hash, state, token,
          lease_until, expires_at)
        values (%(tenant)s, %(principal)s, %(operation)s, %(key)s, %(hash)s, 'processing', %(token)s,
          %(lease)s, %(expires)s)
        on conflict do nothing
        """,
        fresh,
    )
    if inserted:
        return Claim(operation, key, token)
    row = unit.row(
        """
        select request_hash, state, status, body, lease_until from idempotency
        where tenant_id = %(tenant)s and principal_id = %(principal)s and operation = %(operation)s and key = %(key)s
        for update
        """,
        scope,
    )
    if row is None:  # released between the two statements: its owner failed
        raise Problem("request_in_progress", retry_after=1)
    if row["state"] == "erased":  # with its hash, from which a short text could be guessed
        raise Problem("result_erased")
    if bytes(row["request_hash"]) != request_hash:
        raise Problem("idempotency_conflict")
    if row["state"] == "completed":
        return Replay(row["status"], row["body"])
    if row["lease_until"] > unit.now:
        raise Problem("request_in_progress", retry_after=2)
    unit.run(
        """
        update idempotency set token = %(token)s, lease_until = %(lease)s
        where tenant_id = %(tenant)s and principal_id = %(principal)s and operation = %(operation)s and key = %(key)s
        """,
        fresh,
    )
    return Claim(operation, key, token)


def complete(unit: Unit, held: Claim, status: int, body: str, refs: list[UUID]) -> None:
    """Keep the answer. `refs` are the rows it speaks of: erasing one of them erases the answer.

    Raises Problem commit_conflict when the lease was lost: another owner answers now, nothing is written.
    """
    kept = unit.run(
        """
        update idempotency set state = 'completed', status = %(status)s, body = %(body)s, refs = %(refs)s
        where tenant_id = %(tenant)s and principal_id = %(principal)s and operation = %(operation)s and key = %(key)s
          and token = %(token)s and state = 'processing'
        """,
        {
            "status": status,
            "body": body,
            "refs": refs,
            "tenant": unit.tenant_id,
            "principal": unit.principal.principal_id,
            "operation": held.operation,
            "key": held.key,
            "token": held.token,
        },
    )
    if not kept:
        raise Problem("commit_conflict")


def fence(unit: Unit, held: Claim) -> None:
    """The first lock of a keyed write: the claim is still ours, and stays so until the commit."""
    row = unit.row(
        """
        select from idempotency
        where tenant_id = %(tenant)s and principal_id = %(principal)s and operation = %(operation)s and key = %(key)s
          and token = %(token)s and state = 'processing' for update
        """,
        {
            "tenant": unit.tenant_id,
            "principal": unit.principal.principal_id,
            "operation": held.operation,
            "key": held.key,
            "token": held.token,
        },
    )
    if row is None:
        raise Problem("commit_conflict")


def release(unit: Unit, held: Claim) -> None:
    """The request failed and changed nothing: the next call with this key runs again."""
    unit.run(
        """
        delete from idempotency where tenant_id = %(tenant)s and principal_id = %(principal)s
          and operation = %(operation)s and key = %(key)s and token = %(token)s and state = 'processing'
        """,
        {
            "tenant": unit.tenant_id,
            "principal": unit.principal.principal_id,
            "operation": held.operation,
            "key": held.key,
            "token": held.token,
        },
    )
