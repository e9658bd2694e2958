"""Where the texts of an attempt's turns lie in the work bucket; apart from what they say, which few need to read."""

from __future__ import annotations

from typing import Literal, get_args
from uuid import UUID

from remembrancer.domain.remember_limits import MAX_TURNS

PREFIX = "attempts/"
"""What is left under it is removed after a day."""
Side = Literal["req", "res"]


def key(tenant_id: UUID, attempt_id: UUID, turn: int, side: Side) -> str:
    """Where a turn's request or answer lies: the model's caller may reach nothing else."""
    return f"{PREFIX}{tenant_id}/{attempt_id}/{turn}.{side}"


def keys(tenant_id: UUID, attempt_id: UUID) -> list[str]:
    """Everything that an attempt may have left there."""
    return [
        key(tenant_id, attempt_id, turn, side) for turn in range(1, MAX_TURNS + 1) for side in get_args(Side)
    ]
