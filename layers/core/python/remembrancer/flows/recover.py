"""What an operator does with AWS credentials when no admin can, or after a restore: never over the API.

A restored database is older than the erasures and holds that came after the backup. `reapply` brings them back from
what was listed outside: the tombstones say which rows went (the key alone can tell), the holds say what may not go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from remembrancer.adapters.signatures import one_spelling
from remembrancer.domain.ids import format_id, parse_id
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import Closed, Instant, KeyRequest, Name, PrincipalRequest, PublicId
from remembrancer.flows import removal
from remembrancer.flows.administer import KEY_WAIT
from remembrancer.flows.context import Services
from remembrancer.flows.instants import instant
from remembrancer.flows.selectors import MOST, Selected
from remembrancer.store import erasure, identity, jobs, restore, spaces
from remembrancer.store.database import Unit

TenantId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Code = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}$")]


class TombstoneIn(Closed):
    """As `GET /v1/tombstones` lists it."""

    tombstone_id: PublicId
    mac: Hex32
    erased_at: Instant
    erased_by: PublicId
    reason: Code
    job_id: PublicId | None


class HoldIn(Closed):
    """As `GET /v1/legal-holds` lists it."""

    hold_id: PublicId
    of: Literal["memory_ids", "data_subject"]
    subject_digest: Hex32 | None
    memory_ids: list[PublicId]
    reason: Code
    case_reference: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,64}$")]
    placed_at: Instant
    placed_by: PublicId
    released_at: Instant | None
    released_by: PublicId | None
    release_reason: Code | None


class ReapplyRequest(Closed):
    tenant_id: TenantId
    tombstones: Annotated[tuple[TombstoneIn, ...], Field(max_length=10_000, strict=False)] = ()
    legal_holds: Annotated[tuple[HoldIn, ...], Field(max_length=10_000, strict=False)] = ()


class RecoverAdminRequest(Closed):
    tenant_id: TenantId
    name: Name
    issuer: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,500}$")]
    subject: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
    key: KeyRequest


class CloseTenantRequest(Closed):
    tenant_id: TenantId


def reapply(services: Services, request: ReapplyRequest) -> dict[str, Any]:
    """Erase what the tombstones name and is there again; {holds, erased, tombstones}. Safe to repeat.

    Holds first: one that was placed after the backup keeps its rows from every later erasure. A row with a
    tombstone was erased all the same, for no hold stood on it then.
    """
    tenant_id = UUID(request.tenant_id)
    holds = services.database.job(tenant_id, lambda unit: _restore_holds(unit, request.legal_holds))
    given = {bytes.fromhex(one.mac): one for one in request.tombstones}
    back = services.database.job(
        tenant_id, lambda unit: _present(services, unit, given.keys()), audited=False
    )
    erased = 0
    for part in _parts(back):
        erased += services.database.job(tenant_id, lambda unit, part=part: _erase_again(unit, part))  # type: ignore[misc]
    rows = [_tombstone(one) for one in given.values()]
    added = services.database.job(tenant_id, lambda unit: _add_tombstones(unit, rows))
    return {"holds": holds, "erased": erased, "tombstones": added}


def _restore_holds(unit: Unit, holds: Sequence[HoldIn]) -> int:
    restored = 0
    for hold in holds:
        order = {
            "hold": parse_id("hold", hold.hold_id),
            "reason": hold.reason,
            "case": hold.case_reference,
            "subject": None if hold.subject_digest is None else bytes.fromhex(hold.subject_digest),
            "placed_at": hold.placed_at,
            "placed_by": parse_id("prin", hold.placed_by),
            "released_at": hold.released_at,
            "released_by": None if hold.released_by is None else parse_id("prin", hold.released_by),
            "release_reason": hold.release_reason,
        }
        restored += restore.put_hold(unit, order, [parse_id("mem", one) for one in hold.memory_ids])
    unit.audit("legal_holds_reapplied", None, listed=len(holds), changed=restored)
    return restored


def _present(services: Services, unit: Unit, macs: Any) -> list[tuple[str, UUID]]:
    """Rows that a tombstone is of, by kind."""
    return [
        (kind, row_id)
        for kind, row_id in restore.erasable(unit)
        if services.macs.mac("tombstone", unit.tenant_id, row_id.bytes) in macs
    ]


def _parts(back: list[tuple[str, UUID]]) -> Iterator[Selected]:
    for start in range(0, len(back), MOST):
        by_kind: dict[str, list[UUID]] = {}
        for kind, row_id in back[start : start + MOST]:
            by_kind.setdefault(kind, []).append(row_id)
        yield Selected(
            *(by_kind.get(kind, []) for kind in ("memory", "proposal", "job", "occurrence", "attempt"))
        )


def _erase_again(unit: Unit, part: Selected) -> int:
    removal.lock_for_ids(unit, part)
    restore.drop_holds(unit, part.memories)
    counts = removal.delete(unit, part, erasure.proposals_with(unit, part.memories))
    jobs.erase_bundles(unit)
    erasure.raise_generation(unit, spaces.every(unit))
    unit.audit(
        "erasure_reapplied",
        None,
        erased=removal.ids("mem", part.memories),
        erased_proposals=removal.ids("prop", part.proposals),
        counts=counts,
    )
    for memory in removal.ids("mem", part.memories):
        unit.alert("erased", memory)
    return len(part) + len(part.attempts)


def _tombstone(given: TombstoneIn) -> dict[str, Any]:
    return {
        "id": parse_id("tomb", given.tombstone_id),
        "mac": bytes.fromhex(given.mac),
        "at": given.erased_at,
        "by": parse_id("prin", given.erased_by),
        "reason": given.reason,
        "erasure": None if given.job_id is None else parse_id("job", given.job_id),
    }


def _add_tombstones(unit: Unit, rows: Sequence[dict[str, Any]]) -> int:
    added = restore.put_tombstones(unit, rows)
    unit.audit("tombstones_reapplied", None, listed=len(rows), added=added)
    return added


def recover_admin(services: Services, request: RecoverAdminRequest) -> dict[str, Any]:
    """A person who is admin again, with a key that works after KEY_WAIT; everybody is told.

    Who holds the credential already keeps its principal; else one is made. Raises Problem invalid_input for a key
    that is none of its algorithm.
    """
    pem = one_spelling(request.key.algorithm, request.key.public_key)

    def work(unit: Unit) -> dict[str, Any]:
        principal_id = restore.make_admin(unit, request.issuer, request.subject)
        if principal_id is None:
            made = PrincipalRequest(
                name=request.name,
                kind="human",
                issuer=request.issuer,
                subject=request.subject,
                capabilities=["admin"],
            )
            principal_id = identity.create_principal(unit, **made.model_dump())
        key_id = f"key_{unit.new_id().hex}"
        usable_from: datetime = unit.now + KEY_WAIT
        identity.add_key(unit, principal_id, key_id, request.key.algorithm, pem, usable_from)
        shown = format_id("prin", principal_id)
        unit.audit("admin_recovered", shown, new_key=key_id)
        unit.alert("admin_recovered", shown)
        return {"principal_id": shown, "key_id": key_id, "usable_from": instant(usable_from)}

    return services.database.job(UUID(request.tenant_id), work)


def close_tenant(services: Services, request: CloseTenantRequest) -> dict[str, Any]:
    """The end of an offboarding: nobody can sign in, no name is kept. Chain, tombstones and certificates stay.

    Raises Problem stale_target while anything is left to erase or held.
    """

    def work(unit: Unit) -> dict[str, Any]:
        left = restore.left(unit)
        if any(left.values()):
            errors = [FieldError("/tenant_id", table, "has rows left") for table, n in left.items() if n]
            raise Problem("stale_target", errors)
        principals = restore.close_tenant(unit)
        unit.audit("tenant_closed", str(unit.tenant_id), principals=principals)
        return {"closed": str(unit.tenant_id), "principals": principals}

    return services.database.job(UUID(request.tenant_id), work)
