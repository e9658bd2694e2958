"""What the flows work with: the database and the ports, wired by the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from remembrancer.domain.ids import Prefix, parse_id
from remembrancer.domain.ports import Clock, Embedder, Ids, MacKeys, ObjectStore, ScreenModel
from remembrancer.domain.principal import Credential
from remembrancer.domain.problems import Problem
from remembrancer.domain.remember_limits import DUPLICATE_FLOOR
from remembrancer.domain.screen_policy import ScreenPolicy
from remembrancer.domain.signing import KeyRecord, VerifiedSignature
from remembrancer.store.database import Database, Unit


class SignatureVerifier(Protocol):
    def __call__(
        self,
        *,
        method: str,
        target_uris: Sequence[str],
        headers: Mapping[str, str],
        body: bytes,
        keys: Callable[[str], KeyRecord | None],
        now: datetime,
    ) -> VerifiedSignature:
        """Raises Problem signature_missing, signature_invalid or signature_expired."""


@dataclass(frozen=True)
class Services:
    database: Database
    embedder: Embedder
    macs: MacKeys
    clock: Clock
    new_id: Ids
    screen_model: ScreenModel | None = None
    screen_policy: ScreenPolicy = field(default_factory=ScreenPolicy)
    start_job: Callable[[UUID, UUID], None] = lambda tenant_id, job_id: None
    """Wakes the worker after the commit that made a job; its schedule finds what nobody woke it for."""
    objects: ObjectStore | None = None
    """Set for the functions that write or link bundles and reports, or hand texts on to the model's caller."""
    evidence: ObjectStore | None = None
    """Set for the function that lists erasures and holds: a bucket from which nothing can be removed."""
    start_attempt: Callable[[UUID], None] | None = None
    """Starts the workflow of a remember attempt; raises MachineUnavailable. Set for the function that takes them on."""
    duplicate_floor: float = DUPLICATE_FLOOR
    """The least cosine at which stored evidence is offered to the assessor as a duplicate."""
    verify_signature: SignatureVerifier | None = None
    """Set for the functions with signed routes."""


@dataclass(frozen=True)
class SignedParts:
    """What a signature covers, as it arrived."""

    method: str
    target_uris: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    query: bool = False
    """Whether there was a query string, which no signature of ours covers."""


@dataclass(frozen=True)
class Call:
    """One request: who, under which correlation id, with which idempotency key."""

    credential: Credential
    correlation_id: str
    operation: str
    """Method and path, with the ids of the path: the scope of the idempotency key."""
    route: str
    """Method and path of the manifest, without what the caller put into it."""
    idempotency_key: str | None = None
    signed: SignedParts | None = None
    """Set on signed routes."""
    received_at: datetime | None = None
    """When the gateway took the request."""


def witness(services: Services, unit: Unit, text: str | None) -> str | None:
    """The keyed digest, 64 hex digits, under which the chain knows a text that it must not hold."""
    return None if text is None else services.macs.mac("audit", unit.tenant_id, text.encode()).hex()


def public_id(prefix: Prefix, text: str) -> UUID:
    """The id of a path or body. A text that is no such id names nothing: Problem not_found."""
    try:
        return parse_id(prefix, text)
    except ValueError:
        raise Problem("not_found") from None
