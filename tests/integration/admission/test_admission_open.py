"""Faults that an independent reviewer found and whose mending is a decision: each is expected to fail until then."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.admission.conftest import Bucket
from tests.integration.world import AGENT, REVIEWER, World


@pytest.mark.xfail(strict=True, reason="open fault of the review")
def test_a_successor_comes_back_as_known(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]]
) -> None:
    old = world.remember("Odin's desk is in room 4.", domain="desks")
    new = world.approve(
        world.propose("Odin's desk is in room 5.", domain="desks")["proposal_id"],
        supersedes={"memory_id": old, "version": 1},
    )
    assert new.status == 200, new.text
    asked = world.call(REVIEWER, "POST", "/v1/export", {"format": "ump", "domains": ["desks"]})
    assert run_job(asked.json["job_id"], REVIEWER)["status"] == "done"
    records = [json.loads(line) for line in bucket.objects.popitem()[1].decode().splitlines()]
    again = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records})
    assert [item["status"] for item in again.json["items"]] == ["duplicate"] * len(records), again.text
