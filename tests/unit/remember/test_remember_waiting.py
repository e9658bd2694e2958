"""How long a caller is kept waiting: never past what the gateway stands, never past the cap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from remembrancer.flows.remember import _bound

NOW = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "asked, gone, seconds",
    [(0, None, 0), (10, None, 10), (60, None, 25), (10, 1, 10), (25, 1, 25), (25, 5, 22), (25, 30, -3)],
)
def test_the_wait_is_bounded(asked: int, gone: int | None, seconds: int) -> None:
    """`gone` seconds after the gateway took the request; a negative wait is none."""
    services: Any = SimpleNamespace(clock=lambda: NOW)
    received_at = None if gone is None else NOW - timedelta(seconds=gone)
    call: Any = SimpleNamespace(received_at=received_at)
    assert _bound(services, call, timedelta(seconds=asked)) == timedelta(seconds=seconds)
