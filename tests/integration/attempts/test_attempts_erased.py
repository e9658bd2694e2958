"""An erasure reaches attempts: their requests, what they were shown, exchanges, checkpoints, results, the bucket."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from remembrancer.domain.problems import Problem
from remembrancer.flows import erase as erasures
from remembrancer.flows import erase_work
from tests.integration.attempts.harness import Killed, Remembering, ada
from tests.integration.probe import counts, everywhere
from tests.integration.world import ADMIN, AGENT, OTHER_AGENT, World

CANARY = "zq7canary"
SUBJECT = "Subject Sue"


@pytest.fixture
def world(remembering: Remembering) -> World:
    return remembering.wire()


def full(key: str, text: str = "", **more: Any) -> dict[str, Any]:
    body = ada(
        key,
        evidence=[
            {
                "content": f"Ada {CANARY} works at Acme {text}.",
                "source": f"source {CANARY}",
                "labels": [f"label {CANARY}"],
                "metadata": {CANARY: CANARY},
                "data_subjects": [SUBJECT],
            }
        ],
        **more,
    )
    body["relationships"][0]["subject"]["name"] = f"Ada {CANARY}"
    body["relationships"][0]["client_comment"] = f"comment {CANARY}"
    return body


def plant(remembering: Remembering) -> dict[str, Any]:
    """Completed, failed after three turns, at work with texts in the bucket, validated and killed."""
    done = json.loads(remembering.remember(full("done")).body)
    remembering.assessor.script = [f"{CANARY} {{"] * 3
    assert remembering.remember(full("invalid", "no")).status == 503

    def dies(at: str) -> Any:
        def hook(state: str, data: dict[str, Any]) -> None:
            if state == at:
                raise Killed

        return hook

    for state in ("CallModel", "Commit"):
        remembering.machine.before = dies(state)
        assert remembering.remember(full(state, f"at {state}")).status == 202
    remembering.machine.before = lambda state, data: None
    return dict(done)


def erase(world: World, **selector: Any) -> dict[str, Any]:
    body = {**selector, "dry_run": False, "reason": "data_subject_request"}
    reply = world.call(ADMIN, "POST", "/v1/purge", body, signed=True)
    assert reply.status == 200, reply.text
    return dict(reply.json)


def test_by_subject_nothing_is_left_of_any_attempt(world: World, remembering: Remembering) -> None:
    plant(remembering)
    planted = set(everywhere(world, CANARY))
    assert {
        "attempt.request", "attempt.context", "attempt.result", "exchange.asked", "exchange.answered",
        "memory.content", "submission.source",
    } <= planted, planted  # fmt: skip
    assert any(CANARY.encode() in body for body in remembering.objects.held.values())
    erased = erase(world, data_subject=SUBJECT)
    assert erased["counts"]["attempt"] == 4
    assert everywhere(world, CANARY) == [] and everywhere(world, SUBJECT) == []
    assert remembering.objects.held == {}
    after = counts(world)
    assert (after["exchange"], after["checkpoint"], after["attempt_vector"]) == (0, 0, 0)
    for body in (full("done"), full("invalid", "no"), full("Commit", "at Commit")):
        with pytest.raises(Problem, match="result_erased"):
            remembering.remember(body)


def test_an_attempt_that_was_at_work_cannot_bring_it_back(world: World, remembering: Remembering) -> None:
    plant(remembering)
    at_work = remembering.started[-1]
    erase(world, data_subject=SUBJECT)
    from remembrancer.flows.remember_finish import finish

    with pytest.raises(Problem, match="commit_conflict"):
        finish(remembering.of("remember_commit"), at_work)
    assert everywhere(world, CANARY) == []
    assert world.call(AGENT, "GET", f"/v1/remember/att_{at_work.hex}").code == "result_erased"


def test_by_memory_the_attempts_of_the_same_bytes_go_too(world: World, remembering: Remembering) -> None:
    remembering.assessor.script = ["{"] * 3
    failed = remembering.remember(ada("k-0"))
    assert failed.status == 503
    done = remembering.remember(ada("k-1"))
    other = remembering.remember(ada("k-2", evidence=[{"content": "Ben works at Acme."}]))
    memory = json.loads(done.body)["evidence"][0]["evidence_id"]
    erase(world, memory_ids=[memory])
    for outcome in (failed, done):
        reply = world.call(AGENT, "GET", f"/v1/remember/att_{outcome.attempt_id.hex}")
        assert (reply.status, reply.code) == (410, "result_erased")
    assert everywhere(world, "Ada works at Acme") == []
    # What is not erased is still told.
    assert world.call(AGENT, "GET", f"/v1/remember/att_{other.attempt_id.hex}").text == other.body


def test_by_owner_every_attempt_of_theirs_goes_and_no_other(world: World, remembering: Remembering) -> None:
    mine = remembering.remember(ada("k-1"))
    theirs = remembering.remember(ada("k-1", evidence=[{"content": "Ben is here."}]), OTHER_AGENT)
    erase(world, owner=world.principals[AGENT.name])
    assert world.call(AGENT, "GET", f"/v1/remember/att_{mine.attempt_id.hex}").status == 410
    assert world.call(OTHER_AGENT, "GET", f"/v1/remember/att_{theirs.attempt_id.hex}").text == theirs.body


def test_more_attempts_than_one_transaction_takes_are_a_job(
    world: World, remembering: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (erasures, erase_work):
        monkeypatch.setattr(module, "MOST", 3)
    plant(remembering)
    body = {"owner": world.principals[AGENT.name], "dry_run": False, "reason": "data_subject_request"}
    reply = world.call(ADMIN, "POST", "/v1/purge", body, signed=True)
    assert reply.status == 202, reply.text
    worker = replace(world.services("erase_step"), objects=remembering.objects)
    while erase_work.step(worker, None, None)["more"]:
        pass
    shown = world.call(ADMIN, "GET", f"/v1/jobs/{reply.json['job_id']}").json
    assert (shown["status"], shown["done"]) == ("done", shown["total"])
    assert everywhere(world, CANARY) == [] and remembering.objects.held == {}


def test_attempts_alone_take_the_bundles_that_hold_them(world: World, remembering: Remembering) -> None:
    remembering.assessor.script = ["{"] * 3
    assert remembering.remember(full("k-1")).status == 503
    ask = {"action": "export", "jurisdiction": "gdpr", "data_subject": SUBJECT, "dry_run": False}
    begun = world.call(ADMIN, "POST", "/v1/dsar", ask, signed=True)
    assert begun.status == 202, begun.text
    worker = replace(world.services("erase_step"), objects=remembering.objects)
    while erase_work.step(worker, None, None)["more"]:
        pass
    assert [key for key in remembering.objects.held if key.startswith("bundles/")] != []
    assert begun.json["located"]["attempts"] == 1 and begun.json["located"]["memories"] == 0
    erase(world, owner=world.principals[AGENT.name])
    assert remembering.objects.held == {}


def test_a_subject_on_hold_keeps_its_attempts(world: World, remembering: Remembering) -> None:
    remembering.assessor.script = ["{"] * 3
    outcome = remembering.remember(full("k-1"))
    hold = {"data_subject": SUBJECT, "reason": "litigation", "case_reference": "case-7"}
    assert world.call(ADMIN, "POST", "/v1/legal-holds", hold).status in (200, 201)
    kept = erase(world, data_subject=SUBJECT)
    assert kept["counts"]["attempt"] == 0
    assert kept["held_attempts"] == [f"att_{outcome.attempt_id.hex}"]
    shown = world.call(AGENT, "GET", f"/v1/remember/att_{outcome.attempt_id.hex}")
    assert shown.text == outcome.body
    assert world.sql("select count(*) as n from exchange")[0]["n"] == 3


@pytest.mark.parametrize("of", ["memory", "subject"])
def test_an_attempt_is_held_with_the_memory_that_it_brought(
    world: World, remembering: Remembering, of: str
) -> None:
    """By its id, and by a subject that only a further submission names."""
    outcome = remembering.remember(full("k-1"))
    [memory] = world.sql("select memory_id from memory")
    held = f"mem_{memory['memory_id'].hex}"
    order: dict[str, Any] = {"memory_ids": [held]}
    if of == "subject":
        world.sql("update occurrence set data_subjects = array['Other Otto']")
        order = {"data_subject": "Other Otto"}
    asked = {**order, "reason": "litigation", "case_reference": "case-7"}
    assert world.call(ADMIN, "POST", "/v1/legal-holds", asked).status == 201
    for selector in ({"owner": world.principals[AGENT.name]}, {"data_subject": SUBJECT}):
        kept = erase(world, **selector)
        assert (kept["held"], kept["held_attempts"]) == ([held], [f"att_{outcome.attempt_id.hex}"])
    shown = world.call(AGENT, "GET", f"/v1/remember/att_{outcome.attempt_id.hex}")
    assert shown.text == outcome.body
    assert world.sql("select count(*) as n from exchange")[0]["n"] == 1


def test_exchanges_and_checkpoints_expire(world: World, remembering: Remembering) -> None:
    plant(remembering)
    from uuid import UUID

    from remembrancer.store import attempts

    world.sql("update exchange set expires_at = now()")
    world.sql("update checkpoint set expires_at = now()")
    world.sql("update attempt set finished_at = finished_at - interval '8 days'")
    database = world.services("sweep").database
    database.job(UUID(world.tenant_id), attempts.sweep, audited=False)
    left = counts(world)
    assert (left["exchange"], left["checkpoint"]) == (0, 0)
    rows = world.sql("select state, content_shas from attempt where finished_at is not null")
    assert {row["state"] for row in rows} == {"completed", "failed_retryable"}
    assert all(row["content_shas"] == [] for row in rows)
