"""Legal holds: no erasure passes one that stands; releasing one takes a signature and leaves the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from remembrancer.flows.index import MAX_PASSAGES
from tests.integration.probe import QuickEmbedder, counts, erase_of, everywhere, scratch_world
from tests.integration.world import ADMIN, AGENT, AUDITOR, OTHER_AGENT, READER, REVIEWER, Person, Reply, World


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def hold(world: World, person: Person = ADMIN, *, key: str | None = None, **named: Any) -> Reply:
    body = {"reason": "litigation", "case_reference": "case-7/2026", **named}
    return world.call(person, "POST", "/v1/legal-holds", body, key=key)


def placed(world: World, **named: Any) -> str:
    reply = hold(world, **named)
    assert reply.status == 201, reply.text
    return str(reply.json["hold_id"])


def release(world: World, hold_id: str, *, signed: bool = True) -> Reply:
    path = f"/v1/legal-holds/{hold_id}/release"
    return world.call(ADMIN, "POST", path, {"reason": "case_closed"}, signed=signed)


def purge(world: World, **named: Any) -> Any:
    body = {"dry_run": False, "reason": "data_subject_request", **named}
    reply = world.call(ADMIN, "POST", "/v1/purge", body, signed=True)
    assert reply.status == 200, reply.text
    return reply.json


def test_every_hold_must_be_released_before_a_memory_goes(world: World) -> None:
    memory, other = (world.ingest(f"Evidence {n}.")["memory_id"] for n in range(2))
    first, second = placed(world, memory_ids=[memory]), placed(world, memory_ids=[memory, other])
    for hold_id in (first, second):
        for dry_run in (True, False):
            done = purge(world, memory_ids=[memory], dry_run=dry_run)
            assert (done["erased"], done["held"]) == ([], [memory])
        assert release(world, hold_id).status == 200
    assert purge(world, memory_ids=[memory])["erased"] == [memory]
    listed = world.call(ADMIN, "GET", "/v1/legal-holds").json["legal_holds"]
    assert [(one["hold_id"], one["memory_ids"]) for one in listed] == [(second, [other]), (first, [])]
    assert all(one["released_at"] and one["release_reason"] == "case_closed" for one in listed)
    actions = [event["action"] for event in world.audit()]
    assert actions.count("legal_hold_placed") == actions.count("legal_hold_released") == 2
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_a_held_subject_is_held_everywhere_now_and_later(world: World) -> None:
    of = {"data_subjects": ["José K."]}
    before = world.ingest("Before.", **of)["memory_id"]
    hold_id = placed(world, data_subject="JOSE\u0301 k.")
    after = world.ingest("After.", target_space="private", data_subjects=["someone", "josé k."])["memory_id"]
    proposal = world.propose("Proposed.", **of)["proposal_id"]
    text = " ".join(f"Sentence {n} about the case." for n in range(MAX_PASSAGES * 40))
    staged = world.call(AGENT, "POST", "/v1/ingest", {"content": text, **of})
    assert staged.status == 202
    free = world.ingest("Free.", data_subjects=["Jose K."])["memory_id"]
    for named in ({"data_subject": "José K."}, {"owner": world.principals[AGENT.name]}):
        done = purge(world, **named)
        assert sorted(done["held"]) == sorted([before, after])
        assert done["held_proposals"] == [proposal] and done["held_jobs"] == [staged.json["job_id"]]
        assert done["erased"] == ([free] if "owner" in named else [])
    assert purge(world, memory_ids=[before])["held"] == [before]
    assert everywhere(world, "josé k.") == [
        "job_item.body", "memory.data_subjects", "proposal.body",
    ], "the order itself keeps no name"  # fmt: skip
    assert release(world, hold_id).status == 200
    done = purge(world, data_subject="José K.")
    assert sorted(done["erased"]) == sorted([before, after])
    assert done["counts"]["proposal"] == 1 and done["counts"]["job_item"] == 1


def test_a_held_capture_of_the_same_bytes_stays_and_is_listed(world: World) -> None:
    """Erasing a memory takes the captures of its bytes along: not one that names a subject on hold."""
    text = "The lift stopped at noon."
    memory = world.ingest(text)["memory_id"]
    held = world.propose(text, data_subjects=["Jane Roe"])["proposal_id"]
    free = world.propose(text, OTHER_AGENT)["proposal_id"]
    hold_id = placed(world, data_subject="jane roe")
    dry = purge(world, memory_ids=[memory], dry_run=True)
    done = purge(world, memory_ids=[memory])
    assert dry["counts"] == done["counts"] and done["counts"]["proposal"] == 1
    assert (done["erased"], done["held_proposals"], done["erased_proposals"]) == ([memory], [held], [])
    assert world.shown(held)["content"] == text
    assert world.call(REVIEWER, "GET", f"/v1/proposals/{free}").status == 404
    assert release(world, hold_id).status == 200
    assert purge(world, data_subject="Jane Roe")["erased_proposals"] == [held]
    assert everywhere(world, "the lift stopped") == []


def test_a_release_needs_a_signature_and_happens_once(world: World) -> None:
    memory = world.ingest("Evidence.")["memory_id"]
    hold_id = placed(world, memory_ids=[memory])
    assert release(world, hold_id, signed=False).code == "signature_missing"
    assert release(world, "hold_" + "0" * 32).code == "not_found"
    assert purge(world, memory_ids=[memory])["held"] == [memory]
    assert release(world, hold_id).status == 200
    assert release(world, hold_id).code == "already_decided"


def test_what_may_be_held_and_by_whom(world: World) -> None:
    memory = world.ingest("Evidence.")["memory_id"]
    absent = "mem_" + "f" * 32
    for person in (AGENT, READER, REVIEWER, AUDITOR):
        assert hold(world, person, memory_ids=[memory]).code == "forbidden"
    assert hold(world, memory_ids=[absent]).code == "not_found"
    assert hold(world, memory_ids=[memory, absent], key="h").json["not_found"] == [absent]
    assert hold(world, memory_ids=[memory, absent], key="h").headers["Idempotent-Replayed"] == "true"
    for named in (
        {},
        {"memory_ids": [memory], "data_subject": "a"},
        {"data_subject": "a", "case_reference": "x" * 65},
        {"data_subject": "a", "case_reference": "Fall Müller"},
        {"data_subject": "a", "reason": "because"},
    ):
        assert hold(world, **named).code == "invalid_input"
    assert counts(world)["legal_order"] == 1
    pages = world.call(ADMIN, "GET", "/v1/legal-holds?limit=1").json
    assert len(pages["legal_holds"]) == 1 and pages["next_cursor"] is None
    placed(world, data_subject="nobody yet")
    first = world.call(ADMIN, "GET", "/v1/legal-holds?limit=1").json
    rest = world.call(ADMIN, "GET", f"/v1/legal-holds?limit=1&cursor={first['next_cursor']}").json
    assert [one["of"] for one in first["legal_holds"] + rest["legal_holds"]] == ["data_subject", "memory_ids"]


def test_a_hold_placed_while_erasing_holds_or_finds_nothing(world: World) -> None:
    for attempt in range(4):
        memory = world.ingest(f"Contested {attempt}.", data_subjects=["contested"])["memory_id"]
        start = threading.Barrier(2)

        def run(work: Callable[[World], Any], start: threading.Barrier = start) -> Any:
            own = replace(world, _open={})
            try:
                start.wait()
                return work(own)
            finally:
                own.close()

        with ThreadPoolExecutor(2) as pool:
            held, done = pool.map(
                run,
                [
                    lambda own, memory=memory: hold(own, memory_ids=[memory]),
                    lambda own, memory=memory: erase_of(own, memory_ids=[memory]),
                ],
            )
        if held.status == 201:
            assert (done["erased"], done["held"]) == ([], [memory])
            assert release(world, held.json["hold_id"]).status == 200
            assert purge(world, memory_ids=[memory])["erased"] == [memory]
        else:
            assert held.code == "not_found" and done["erased"] == [memory]
