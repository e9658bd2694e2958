"""An admin's read of a memory in somebody's private space: never without a row of the audit chain."""

from __future__ import annotations

from typing import Any

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.store.database import Unit


def read_private(services: Services, call: Call, memory: str) -> dict[str, Any]:
    """The memory under its last version, whatever became of it: {..., owner, held_for}. Raises Problem not_found for
    one of the team's, which has its own ways to be read."""
    # The sanitizer and the index: the other routes of this function need neither.
    from remembrancer.flows import render
    from remembrancer.store import memories

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        row = memories.get(unit, public_id("mem", memory))
        if row is None or row["space_id"] == unit.principal.team_space:
            raise Problem("not_found")
        reveal = render.reveals(unit, "mem", row)
        shown = render.memory(row, unit.principal.team_space, reveal_pii=reveal)
        owner = format_id("prin", row["owner_id"])
        unit.audit(
            "private_memory_read",
            shown["memory_id"],
            owner=owner,
            correlation_id=call.correlation_id,
        )
        return {**shown, "owner": owner, "held_for": row["held_for"]}

    return services.database.write(call.credential, read)
