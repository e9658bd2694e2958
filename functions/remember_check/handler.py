"""Validates what the assessor answered: the next turn, or the way to the commit."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.domain.remember_work import Turn
from remembrancer.flows.assess import check


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """A turn in, what is next out."""
    return check(services(), Turn.of_state(event)).to_state()
