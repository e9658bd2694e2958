"""Erasures of more rows than one transaction takes: batches that are all or nothing, resumed by whoever comes next."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import IngestRequest
from remembrancer.flows import erase, erase_work
from remembrancer.flows.ingest import ingest
from remembrancer.store import jobs
from tests.integration.admission.conftest import Bucket
from tests.integration.probe import Killer, QuickEmbedder, call_of, counts, everywhere, scratch_world
from tests.integration.trust.erasing import done, no_orphans, purge, race, with_bucket, work
from tests.integration.world import ADMIN, AGENT, AUDITOR, OTHER_AGENT, READER, World

WORD = "zq6crowd"


@pytest.fixture
def world(postgres: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(erase, "MOST", 3)
    monkeypatch.setattr(erase_work, "MOST", 3)
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def bucket(world: World) -> Bucket:
    return with_bucket(world)


def crowd(world: World, many: int = 8, word: str = WORD) -> list[str]:
    made = []
    for number in range(many):
        relation = {"subject": f"Bus {number} {word}", "predicate": "leaves_at", "object": f"stop {word}"}
        made.append(
            world.ingest(
                f"Bus {number} of {word}.", AGENT if number % 2 else OTHER_AGENT,
                data_subjects=[word], relations=[relation],
            )["memory_id"]
        )  # fmt: skip
    world.propose(f"A late bus of {word}.", data_subjects=[word])
    return made


def taken_on(world: World, **named: Any) -> Any:
    reply = purge(world, **named)
    begun = done(reply, 202)
    assert reply.headers["Location"] == f"/v1/jobs/{begun['job_id']}" == begun["location"]
    return begun


def result(world: World, job_id: str) -> Any:
    return done(world.call(ADMIN, "GET", f"/v1/jobs/{job_id}"))


def test_more_than_one_transaction_takes_are_a_job(world: World, bucket: Bucket) -> None:
    keep = world.ingest("Another bus.", data_subjects=["someone"])["memory_id"]
    made = crowd(world)
    dry = done(purge(world, data_subject=WORD, dry_run=True))
    assert sorted(dry["erased"]) == sorted(made) and dry["counts"]["passage"] == len(made)
    begun = taken_on(world, data_subject=WORD.upper(), key="long-1")
    assert (begun["memories"], begun["proposals"], counts(world)["memory"]) == (8, 1, 9)
    assert purge(world, data_subject=WORD.upper(), key="long-1").headers["Idempotent-Replayed"] == "true"
    steps = work(world, begun["job_id"], budget=timedelta(0))
    assert steps == 4, "three batches of three, and the end"
    shown = result(world, begun["job_id"])
    assert (shown["status"], shown["done"], shown["total"], shown["kind"]) == ("done", 9, 9, "erase")
    erased = shown["result"]["erased"]
    assert (erased["memories"], erased["proposals"], erased["rows"]["memory"]) == (8, 1, 8)
    assert everywhere(world, WORD) == [] and no_orphans(world)
    assert world.call(READER, "GET", f"/v1/memories/{keep}").status == 200
    rows = [event for event in world.audit() if event["target"] == begun["job_id"]]
    assert [row["action"] for row in rows] == [
        "erasure_completed",
        "purged",
        "purged",
        "purged",
        "erasure_accepted",
    ]
    assert sorted(one for row in rows[1:4] for one in row["detail"]["erased"]) == sorted(made)
    assert world.sql("select count(*) as n from tombstone") == [{"n": 9}]
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_proposals_are_erased_by_their_ids(world: World) -> None:
    rejected = world.propose(f"Never a memory {WORD}.")["proposal_id"]
    memory = world.remember(f"A memory {WORD} of its own.")
    [came_from] = world.sql("select 'prop_' || replace(proposal_id::text, '-', '') as id from proposal"
                            " where memory_id is not null")  # fmt: skip
    absent = "prop_" + "e" * 32
    gone = done(purge(world, proposal_ids=[rejected, absent]))
    assert (gone["erased_proposals"], gone["not_found"], gone["erased"]) == ([rejected], [absent], [])
    assert everywhere(world, f"never a memory {WORD}") == []
    both = done(purge(world, memory_ids=[memory], proposal_ids=[came_from["id"]]))
    assert (both["erased"], both["erased_proposals"]) == ([memory], [came_from["id"]])
    assert everywhere(world, WORD) == []


def test_what_was_prepared_before_it_was_taken_on_does_not_commit_after(world: World, bucket: Bucket) -> None:
    crowd(world)
    request = IngestRequest.model_validate({"content": f"Late {WORD}.", "data_subjects": [WORD]})
    begun: list[Any] = []

    class Slow(QuickEmbedder):
        def embed(self, texts: Any) -> Any:
            begun.append(taken_on(world, data_subject=WORD))
            return super().embed(texts)

    with pytest.raises(Problem) as refused:
        ingest(replace(world.services("ingest"), embedder=Slow()), call_of(AGENT, "POST /v1/ingest"), request)
    assert refused.value.code == "commit_conflict"
    work(world, begun[0]["job_id"])
    assert everywhere(world, WORD) == []


def test_what_was_prepared_while_it_went_on_does_not_commit_after(world: World, bucket: Bucket) -> None:
    crowd(world)
    begun = taken_on(world, data_subject=WORD)
    request = IngestRequest.model_validate({"content": f"Late {WORD}.", "data_subjects": [WORD]})

    class Slow(QuickEmbedder):
        def embed(self, texts: Any) -> Any:
            work(world, begun["job_id"])
            return super().embed(texts)

    with pytest.raises(Problem) as refused:
        ingest(replace(world.services("ingest"), embedder=Slow()), call_of(AGENT, "POST /v1/ingest"), request)
    assert refused.value.code == "commit_conflict"
    assert everywhere(world, WORD) == []


def test_a_hold_placed_between_two_batches_holds_the_rest(world: World, bucket: Bucket) -> None:
    crowd(world)
    begun = taken_on(world, data_subject=WORD)
    erase_work.step(world.services("erase_step"), None, None, budget=timedelta(0))
    assert counts(world)["memory"] == 5
    hold = {"data_subject": WORD, "reason": "litigation", "case_reference": "case-7"}
    assert world.call(ADMIN, "POST", "/v1/legal-holds", hold).status == 201
    work(world, begun["job_id"])
    shown = result(world, begun["job_id"])
    assert shown["status"] == "done" and shown["result"]["erased"]["memories"] == 3
    assert (shown["result"]["held"]["total"], len(shown["result"]["held"]["memories"])) == (6, 5)
    assert counts(world)["memory"] == 5 and counts(world)["proposal"] == 1


def test_a_capture_approved_between_two_batches_goes_as_a_memory(world: World, bucket: Bucket) -> None:
    crowd(world)
    [proposal] = world.sql("select 'prop_' || replace(proposal_id::text, '-', '') as id from proposal")
    begun = taken_on(world, data_subject=WORD)
    assert world.approve(proposal["id"]).status == 200
    work(world, begun["job_id"])
    assert everywhere(world, WORD) == [] and no_orphans(world)
    assert result(world, begun["job_id"])["result"]["erased"]["memories"] == 9


def test_two_workers_and_two_erasures_of_the_same_rows(world: World, bucket: Bucket) -> None:
    made = crowd(world, 12)
    jobs_begun = [
        taken_on(world, data_subject=WORD)["job_id"],
        taken_on(world, owner=world.principals[AGENT.name])["job_id"],
    ]

    def step_until_done(own: World) -> None:
        with_bucket(own)
        until = time.monotonic() + 60
        while own.sql("select job_id from job where state = 'working'") and time.monotonic() < until:
            erase_work.step(own.services("erase_step"), None, None, budget=timedelta(0))

    outcomes = race(world, step_until_done, step_until_done, step_until_done)
    assert outcomes == [None] * 3
    results = [result(world, job_id) for job_id in jobs_begun]
    assert {one["status"] for one in results} == {"done"}
    assert sum(one["result"]["erased"]["memories"] for one in results) == len(made)
    assert everywhere(world, WORD) == [] and no_orphans(world)
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


@pytest.mark.slow
def test_killed_at_any_statement_a_batch_is_all_or_nothing_and_another_worker_ends_it(
    world: World, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend dies under the worker at each of its statements in turn."""
    monkeypatch.setattr(jobs, "LEASE", timedelta(0))  # a dead worker's lease is over at once
    monkeypatch.setenv("PGAPPNAME", "victim")
    killer = Killer(world, "erase_step", "victim")
    world._open["erase_step"] = replace(world.services("erase_step"), objects=bucket)
    crowd(world, 40)
    begun = taken_on(world, data_subject=WORD)
    position = failed = 0
    while True:
        memories = counts(world)["memory"]
        tombstones = counts(world)["tombstone"]
        killer.arm(position)
        try:
            more = erase_work.step(world.services("erase_step"), None, None, budget=timedelta(0))
        except Problem as problem:
            assert problem.code in ("database_failure", "database_resuming"), problem
            failed += 1
            more = {"more": True}
        killer.disarm()
        gone = memories - counts(world)["memory"]
        assert gone in (0, 3, 1), (position, gone)
        assert counts(world)["tombstone"] - tombstones in (gone, gone + 1), (
            "a tombstone for each, a proposal's too"
        )
        assert counts(world)["memory"] + counts(world)["tombstone"] in (40, 41)
        assert no_orphans(world)
        position += 1
        if not more.get("more") and "job_id" in more:
            break
        if position > 400:
            raise AssertionError("it never ends")
    assert failed > 25
    shown = result(world, begun["job_id"])
    assert shown["status"] == "done" and shown["result"]["erased"]["memories"] == 40
    assert everywhere(world, WORD) == []
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
    assert json.dumps(shown)
