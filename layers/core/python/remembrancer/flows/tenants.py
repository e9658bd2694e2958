"""Scheduled work walks all tenants: what goes wrong for one is nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from remembrancer import observability
from remembrancer.domain.problems import Problem


class Walk:
    """Each tenant's part goes into `part`; `end` raises the first failure, when the others are done."""

    def __init__(self) -> None:
        self._first: Exception | None = None

    @contextmanager
    def part(self, tenant_id: UUID) -> Iterator[None]:
        """A failure is logged and kept for `end`. Raises Problem database_resuming, which is everybody's."""
        try:
            yield
        except Exception as error:  # whatever it is: the next tenant is to be served
            if isinstance(error, Problem) and error.code == "database_resuming":
                raise
            observability.failure(error, tenant=str(tenant_id))
            self._first = self._first or error

    def end(self) -> None:
        if self._first is not None:
            raise self._first
