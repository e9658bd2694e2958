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


@pytest.mark.xfail(strict=True, reason="open fault of the review")
def test_retracting_a_correction_leaves_what_another_memory_says(world: World) -> None:
    said = {"subject": "Quirin", "predicate": "works_at", "object": "Harbour"}
    world.ingest(
        "Quirin is at Harbour, says one.", relations=[{**said, "valid_from": "2020-01-01T00:00:00Z"}]
    )
    second = world.ingest(
        "Quirin is at Harbour, says two.", relations=[{**said, "valid_from": "2021-01-01T00:00:00Z"}]
    )
    path = f"/v1/memories/{second['memory_id']}/retract"
    assert world.call(AGENT, "POST", path, {"version": 1}).status == 200
    assert len(edges(world, "Quirin")) == 1


def edges(world: World, name: str, query: str = "") -> list[dict[str, Any]]:
    [entity] = world.call(AGENT, "GET", f"/v1/entities?name={name}").json["entities"]
    reply = world.call(AGENT, "GET", f"/v1/entities/{entity['entity_id']}{query}")
    return list(reply.json["relationships"]) if reply.status == 200 else []
