"""The deployed handlers of the workflow, one after the other, with the embedded assessor and the real model."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from functions import manifest
from remembrancer.adapters.assessors.rules import RulesAssessor
from tests.integration.attempts.harness import Machine, MemoryObjects, ada
from tests.integration.world import AGENT, AUDITOR, READER, Reply, World, new_world

TASKS = next(machine.tasks for machine in manifest.MACHINES if machine.name == "remember")


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def machine(
    database: Any, embedder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: MemoryObjects
) -> Iterator[tuple[World, Machine]]:
    world = new_world(database, embedder, tmp_path)
    machine = Machine({task: _handler(world, task, objects, monkeypatch) for task in TASKS})

    def start(attempt_id: UUID) -> None:
        name = f"att_{attempt_id.hex}"
        machine.start(name, {"attempt_id": name})

    world._open["remember"] = replace(world.services("remember"), start_attempt=start)
    yield world, machine
    world.close()


def _handler(world: World, task: str, objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = importlib.import_module(f"functions.{task}.handler")
    if task == "remember_call_model":
        monkeypatch.setattr(module, "tools", lambda: (RulesAssessor(), objects))
    else:
        monkeypatch.setattr(module, "services", lambda: replace(world.services(task), objects=objects))
    return lambda event: module.handler(event, None)


def post(world: World, body: dict[str, Any]) -> Reply:
    return world.call(AGENT, "POST", "/v1/remember", body)


def test_evidence_and_a_relationship_go_in_and_are_recalled(
    machine: tuple[World, Machine], objects: MemoryObjects
) -> None:
    world, workflow = machine
    reply = post(world, ada())
    assert reply.status == 200, reply.text
    [relationship] = reply.json["relationships"]
    assert relationship["disposition"] == "stored", reply.text
    assert reply.json["assessor"]["model"].startswith("rules")
    [hit] = world.recall("Where does Ada work?", READER)["hits"]
    assert hit["text"] == "Ada works at Acme."
    assert [execution.status for execution in workflow.executions.values()] == ["SUCCEEDED"]
    assert objects.held == {}
    assert post(world, ada()).text == reply.text
    diagnostics = f"/v1/attempts/{reply.json['attempt_id']}/diagnostics"
    assert world.call(AUDITOR, "GET", diagnostics).json["exchanges"][0]["outcome"] == "valid"


def test_what_the_text_does_not_say_is_not_stored(machine: tuple[World, Machine]) -> None:
    world, _ = machine
    reply = post(world, ada(evidence=[{"content": "Ada had lunch with someone from Acme."}]))
    assert reply.status == 200, reply.text
    [relationship] = reply.json["relationships"]
    assert (relationship["disposition"], relationship["reason"]) == (
        "not_stored",
        "not_supported_by_evidence",
    )
    assert world.recall("Where does Ada work?", READER)["hits"] == []


def test_a_failure_goes_through_the_handlers_too(machine: tuple[World, Machine]) -> None:
    world, workflow = machine
    body = ada()
    body["relationships"][0]["subject"] = {"known_entity_id": "ent_" + "0" * 32}
    reply = post(world, body)
    assert (reply.status, reply.code) == (409, "stale_input")
    [execution] = workflow.executions.values()
    assert execution.states == ["Prepare", "RecordFailure", "Failed"]
    failure = json.loads(execution.history[-1]["input"])
    assert failure["attempt_id"] == reply.json["attempt_id"]
