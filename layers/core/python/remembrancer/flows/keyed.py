"""Idempotency around a flow: claim, work, complete in the work's own transaction, release on failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.digests import request_hash
from remembrancer.domain.principal import Principal
from remembrancer.flows.context import Call, Services
from remembrancer.store import idempotency
from remembrancer.store.database import Unit
from remembrancer.store.idempotency import Claim, Replay


@dataclass(frozen=True)
class Answer:
    """What a flow answers: final bytes, so that a replay is byte-identical."""

    status: int
    body: str
    replayed: bool = False


@dataclass
class Keyed:
    """The admitted start of a creating or deciding request: who it is, and the claim when a key came along."""

    principal: Principal
    claim: Claim | None
    replay: Answer | None

    def fence(self, unit: Unit) -> None:
        """Call first inside the write: the claim is ours until the commit."""
        if self.claim is not None:
            idempotency.fence(unit, self.claim)

    def answer(self, unit: Unit, status: int, body: dict[str, Any], refs: list[UUID]) -> Answer:
        """Call last inside the write: keep the answer for replay. `refs` are the rows it speaks of."""
        text = canonical_json(body)
        if self.claim is not None:
            idempotency.complete(unit, self.claim, status, text, refs)
        return Answer(status, text)


@contextmanager
def keyed(
    services: Services, call: Call, payload: Any, authorize: Callable[[Unit], object]
) -> Iterator[Keyed]:
    """Resolve and authorize the caller, then claim the key or replay its answer.

    `authorize` raises Problem; it runs before the key is looked at. A failure inside the block releases the
    key, since nothing was committed under it.
    """

    def begin(unit: Unit) -> Keyed:
        authorize(unit)
        if call.idempotency_key is None:
            return Keyed(unit.principal, None, None)
        outcome = idempotency.claim(unit, call.operation, call.idempotency_key, request_hash(payload))
        if isinstance(outcome, Replay):
            return Keyed(unit.principal, None, Answer(outcome.status, outcome.body, replayed=True))
        return Keyed(unit.principal, outcome, None)

    started = services.database.operate(call.credential, begin)
    try:
        yield started
    except BaseException:
        claim = started.claim
        if claim is not None:
            services.database.operate(call.credential, lambda unit: idempotency.release(unit, claim))
        raise
