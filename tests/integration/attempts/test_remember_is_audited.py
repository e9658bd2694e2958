"""What the work on an attempt changes has a row of the chain in the same transaction, whatever comes of it."""

from __future__ import annotations

import json

import pytest

from tests.integration.attempts.harness import Remembering, ada
from tests.integration.audit.test_every_change_is_audited import unaudited
from tests.integration.world import AUDITOR


@pytest.mark.parametrize("script", [[], ["{"] * 3], ids=["stored", "failed"])
def test_an_attempt_changes_no_table_of_record_without_a_row_of_the_chain(
    remembering: Remembering, script: list[str]
) -> None:
    world = remembering.wire()
    remembering.remember(ada("k-0"))
    remembering.assessor.script = [*script]
    text = "Ada works at Acme, as she said."
    done = remembering.remember(ada("k-1", evidence=[{"content": text, "source": "call"}]))
    assert done.status == (503 if script else 200)
    assert unaudited(world) == {}
    actions = [event["action"] for event in world.audit()]
    assert ("remember_failed" in actions) == bool(script), actions
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
    world.sql("update memory_version set created_at = created_at")
    assert unaudited(world).keys() == {"memory_version"}, json.dumps(actions)
