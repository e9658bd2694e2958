"""Signed admin acts: the signature is checked in the very transaction that acts, its nonce spent there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.signing import KeyRecord, VerifiedSignature
from remembrancer.flows.context import Call, Services
from remembrancer.flows.keyed import Answer, Keyed, keyed
from remembrancer.store import identity
from remembrancer.store.database import Unit

T = TypeVar("T")


@dataclass(frozen=True)
class SignedUnit:
    """A transaction whose signature holds and whose nonce is spent."""

    unit: Unit
    evidence: dict[str, Any]
    """Of the signature, for the audit rows: key_id, signature_base, correlation_id."""

    def audit(self, action: str, target: str | None = None, **detail: Any) -> None:
        self.unit.audit(action, target, **detail, **self.evidence)


Reply = tuple[int, dict[str, Any], list[UUID]]
"""Status, body, and the rows whose erasure erases the stored answer."""


def signed_act(services: Services, call: Call, payload: Any, act: Callable[[SignedUnit], Reply]) -> Answer:
    """A signed route under an idempotency key: `act` is its one transaction."""
    with signed(services, call, payload) as start:
        if start.replay is not None:
            return start.replay

        def work(unit: Unit) -> Answer:
            start.fence(unit)
            status, body, refs = act(spent(services, unit, call))
            return start.answer(unit, status, {**body, "correlation_id": call.correlation_id}, refs)

        return services.database.write(call.credential, work)


def signed_change(services: Services, call: Call, change: Callable[[SignedUnit], T]) -> T:
    """A signed route that sets something: doing it twice is doing it once."""
    with auditing_refusals(services, call):
        return services.database.write(call.credential, lambda unit: change(spent(services, unit, call)))


@contextmanager
def signed(services: Services, call: Call, payload: Any) -> Iterator[Keyed]:
    """`keyed` for a signed route: an unsigned or badly signed request is refused first, and audited."""

    def allowed(unit: Unit) -> None:
        authorize(unit.principal, "admin")
        _verify(services, unit, call)

    with auditing_refusals(services, call), keyed(services, call, payload, allowed) as start:
        if start.replay is not None:
            services.database.operate(call.credential, lambda unit: spent(services, unit, call))
        yield start


@contextmanager
def auditing_refusals(services: Services, call: Call) -> Iterator[None]:
    """A refused signature leaves a row in the chain: who tried, and why it did not hold."""
    try:
        yield
    except Problem as problem:
        if problem.code.startswith("signature_"):
            observability.count("SignatureRefused")
            reasons = [error.code for error in problem.errors]
            services.database.write(call.credential, _refusal(problem.code, reasons, call))
        raise


def spent(services: Services, unit: Unit, call: Call) -> SignedUnit:
    """Authorize, verify, and spend the nonce. Raises Problem forbidden or signature_*."""
    authorize(unit.principal, "admin")
    verified = _verify(services, unit, call)
    identity.spend_nonce(unit, verified.key_id, verified.nonce, verified.expires)
    return SignedUnit(
        unit,
        {
            "key_id": verified.key_id,
            "signature_base": verified.base_digest.hex(),
            "correlation_id": call.correlation_id,
        },
    )


def _verify(services: Services, unit: Unit, call: Call) -> VerifiedSignature:
    if services.verify_signature is None or call.signed is None:
        raise Problem("configuration_invalid")
    parts = call.signed
    if parts.query:
        error = FieldError("", "query_present", "A signed request has no query string.")
        raise Problem("signature_invalid", [error])
    records = {row["key_id"]: KeyRecord(**row) for row in identity.keys_of(unit, unit.principal.principal_id)}
    return services.verify_signature(
        method=parts.method,
        target_uris=parts.target_uris,
        headers=parts.headers,
        body=parts.body,
        keys=records.get,
        now=unit.now,
    )


def _refusal(code: str, reasons: list[str], call: Call) -> Callable[[Unit], None]:
    def record(unit: Unit) -> None:
        unit.audit(
            "signature_refused",
            call.route,
            code=code,
            reasons=reasons,
            correlation_id=call.correlation_id,
        )

    return record
