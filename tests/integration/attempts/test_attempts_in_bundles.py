"""A data subject's bundle has what attempts keep: what was asked, shown, said by the assessor, and answered."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from remembrancer.flows import erase_work
from tests.integration.attempts.harness import Remembering
from tests.integration.attempts.test_attempts_erased import CANARY, SUBJECT, full, plant
from tests.integration.trust.erasing import opened
from tests.integration.world import ADMIN, World


@pytest.fixture
def world(remembering: Remembering) -> World:
    return remembering.wire()


def test_a_bundle_has_what_attempts_keep_of_a_subject(world: World, remembering: Remembering) -> None:
    plant(remembering)
    remembering.assessor.script = ["{"] * 3
    assert remembering.remember(full("lost", "and lost")).status == 503
    ask = {"action": "export", "jurisdiction": "gdpr", "data_subject": SUBJECT, "dry_run": False}
    begun = world.call(ADMIN, "POST", "/v1/dsar", ask, signed=True)
    assert begun.status == 202, begun.text
    worker = replace(world.services("erase_step"), objects=remembering.objects)
    while erase_work.step(worker, None, None)["more"]:
        pass
    [key] = [key for key in remembering.objects.held if key.startswith("bundles/")]
    data, page = opened(remembering.objects.held[key])
    assert len(data["attempts"]) == 5 == begun.json["located"]["attempts"]
    [lost] = [one for one in data["attempts"] if "and lost" in json.dumps(one["exchanges"])]
    assert lost["request"] is None and [one["turn"] for one in lost["exchanges"]] == [1, 2, 3]
    said = [one["answered"] for attempt in data["attempts"] for one in attempt["exchanges"]]
    assert f"{CANARY} {{" in said
    assert any(attempt["checkpoints"] and attempt["assessment"] for attempt in data["attempts"])
    assert any(CANARY in json.dumps(attempt["context"]) for attempt in data["attempts"])
    assert "and lost" in page
    [memory] = data["memories"]
    submitted = memory["submitted"][0]
    assert submitted["data_subjects"] == [SUBJECT] and submitted["source_type"] and submitted["authority"]


def test_a_bundle_says_what_a_memory_contradicts(world: World, remembering: Remembering) -> None:
    of = {"data_subjects": [SUBJECT]}
    world.remember("The party budget is 40 dollars.", **of)
    against = world.ingest("The party budget is 55 dollars.", **of)
    assert against["conflict"] is not None
    ask = {"action": "export", "jurisdiction": "gdpr", "data_subject": SUBJECT, "dry_run": False}
    assert world.call(ADMIN, "POST", "/v1/dsar", ask, signed=True).status == 202
    worker = replace(world.services("erase_step"), objects=remembering.objects)
    while erase_work.step(worker, None, None)["more"]:
        pass
    [body] = remembering.objects.held.values()
    memories = opened(body)[0]["memories"]
    assert [len(one["conflicts"]) for one in memories] == [1, 1]
    assert memories[0]["conflicts"][0]["status"] == "open" and memories[0]["conflicts"][0]["explanation"]
