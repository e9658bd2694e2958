"""Spaces and their generations: an erasure raises them, so that what was prepared before it does not come back."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from remembrancer.domain.principal import Principal
from remembrancer.domain.problems import Problem
from remembrancer.store.database import Unit


def unchanged(unit: Unit, began: Principal, space_ids: Collection[UUID]) -> None:
    """Call under the spaces' locks, with the principal as it was when the request began.

    Raises Problem commit_conflict when something was erased in one of the spaces since then.
    """
    rows = unit.rows(
        "select space_id, generation from space where tenant_id = %(tenant)s and space_id = any (%(spaces)s)",
        {"tenant": unit.tenant_id, "spaces": list(space_ids)},
    )
    if any(row["generation"] != began.generations.get(row["space_id"]) for row in rows):
        raise Problem("commit_conflict")


def every(unit: Unit) -> list[UUID]:
    """All spaces of the tenant."""
    rows = unit.rows("select space_id from space where tenant_id = %(tenant)s", {"tenant": unit.tenant_id})
    return [row["space_id"] for row in rows]


def generations(unit: Unit) -> dict[UUID, int]:
    """Of every space of the tenant: equal before and after means that nothing was erased between."""
    rows = unit.rows(
        "select space_id, generation from space where tenant_id = %(tenant)s", {"tenant": unit.tenant_id}
    )
    return {row["space_id"]: row["generation"] for row in rows}
