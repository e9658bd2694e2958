"""What tests of recall share: an answer whatever its probability, and a memory that is held."""

from __future__ import annotations

import pytest

from remembrancer.domain import abstention
from remembrancer.domain.ids import parse_id
from tests.integration.world import World


@pytest.fixture
def answer_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is found and shown, not of the decision."""
    monkeypatch.setattr(abstention, "THRESHOLD", 0.0)


def raw(public: str) -> str:
    return str(parse_id("mem", public))


def hold(world: World, memory_id: str) -> None:
    world.sql(
        "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
        " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
        " where memory_id = (%s)::uuid",
        raw(memory_id),
    )
