"""An attempt at work, as the steps of its workflow see it.

Each step is handed ids and reads the rest from the attempt's row, or from the work bucket; each may run twice, or
be killed at any point: the row says how far the attempt is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from remembrancer.domain import remember_work as work
from remembrancer.domain.ports import Clock, ObjectStore
from remembrancer.domain.principal import Credential
from remembrancer.domain.problems import Problem
from remembrancer.domain.remember_limits import Deadlines
from remembrancer.domain.remember_requests import RememberRequest
from remembrancer.flows.context import Services
from remembrancer.flows.remember_end import end
from remembrancer.store import attempts
from remembrancer.store.database import Row


@dataclass(frozen=True)
class Opened:
    """An attempt that is at work, with the credential it goes on with."""

    tenant_id: UUID
    credential: Credential
    row: Row

    @property
    def attempt_id(self) -> UUID:
        attempt_id: UUID = self.row["attempt_id"]
        return attempt_id

    @property
    def request(self) -> RememberRequest:
        return RememberRequest.model_validate({"idempotency_key": self.row["key"], **self.row["request"]})

    @property
    def deadlines(self) -> Deadlines:
        return Deadlines(self.row["entered_at"], self.row["deadline"])


def open_attempt(services: Services, attempt_id: UUID) -> Opened:
    """Raises Problem commit_conflict for an attempt that is over: nothing is left to do for its workflow."""
    found = services.database.attempt(attempt_id)
    if found is None:
        raise Problem("not_found")
    tenant_id, credential = found
    row = services.database.operate(credential, lambda unit: attempts.get(unit, attempt_id))
    if row is None or row["state"] != "processing":
        raise Problem("commit_conflict")
    return Opened(tenant_id, credential, row)


@contextmanager
def failing(services: Services, opened: Opened) -> Iterator[None]:
    """A problem ends the attempt with its details; then it leaves, by its code alone, for the workflow's catch."""
    try:
        yield
    except Problem as problem:
        told = problem
        try:
            services.database.operate(opened.credential, lambda unit: end(unit, opened.row, told))
        except Problem:
            raise problem from None  # the catch writes the end without the details
        raise


def in_time(clock: Clock, until: datetime) -> None:
    """Raises Problem request_timeout."""
    if clock() >= until:
        raise Problem("request_timeout")


def objects(services: Services) -> ObjectStore:
    if services.objects is None:
        raise Problem("configuration_invalid")
    return services.objects


def read_object(store: ObjectStore, key: str) -> bytes:
    """Raises Problem internal_failure when there is none."""
    body = store.get(key)
    if body is None:
        raise Problem("internal_failure")
    return body


def write_object(store: ObjectStore, key: str, body: bytes) -> None:
    store.put(key, body, work.MEDIA_TYPE)
