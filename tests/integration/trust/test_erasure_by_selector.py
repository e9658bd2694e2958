"""Erasure by data subject and by owner: every space, every path in, nothing else touched, nothing comes back."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import IngestRequest
from remembrancer.domain.subjects import subject_key
from remembrancer.flows.index import MAX_PASSAGES
from remembrancer.flows.ingest import ingest
from tests.integration.probe import (
    Killer,
    QuickEmbedder,
    call_of,
    changed,
    counts,
    erase_of,
    everywhere,
    scratch_world,
)
from tests.integration.trust.erasing import done, no_orphans, purge, race
from tests.integration.world import ADMIN, AGENT, AUDITOR, OTHER_AGENT, READER, REVIEWER, World

CANARY = "zq8canary"
SUBJECT = f"Zoë {CANARY}"
SPELLED = f"ZOE\u0308 {CANARY.upper()}"


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def long_text(about: str) -> str:
    return " ".join(f"Sentence {n} about {about} and what else there is." for n in range(MAX_PASSAGES * 30))


def plant(world: World, subject: str) -> None:
    """The subject's words through every way in, a staged import among them."""
    of = {"data_subjects": [subject]}
    world.ingest(f"Direct {CANARY}.", **of)
    world.ingest(f"Private {CANARY}.", target_space="private", **of)
    world.ingest(f"Elsewhere {CANARY}.", OTHER_AGENT, target_space="private", **of)
    world.remember(f"Proposed {CANARY}.", source_prompt=f"Prompt {CANARY}", **of)
    world.propose(f"Waiting {CANARY}.", **of)
    rejected = world.propose(f"Rejected {CANARY}.", OTHER_AGENT, **of)["proposal_id"]
    body = {"reason": f"Because {CANARY}."}
    assert world.call(REVIEWER, "POST", f"/v1/proposals/{rejected}/reject", body).status == 200
    for path, content in (
        ("/v1/ingest/markdown", f"# Heading {CANARY}\n\nMarkdown {CANARY}.\n"),
        ("/v1/ingest/memory", f"## [ 2024-05-01 ] Day\nBlock {CANARY}.\n"),
    ):
        assert world.call(AGENT, "POST", path, {"content": content, **of}).status == 201
    record = {
        "body": {"text": f"Record {CANARY}.", "structured": {"title": f"Title {CANARY}", **of}},
        "scope": {"visibility": "shared"},
    }
    assert world.call(AGENT, "POST", "/v1/ingest/ump", {"records": [record]}).status == 201
    staged = world.call(AGENT, "POST", "/v1/ingest", {"content": long_text(CANARY), **of}, key="staged")
    assert staged.status == 202, staged.text
    assert everywhere(world, f"about {CANARY}") != []


def test_a_subject_leaves_every_space_and_every_path(world: World) -> None:
    keep = world.ingest("Others stay.", data_subjects=["Zoë"])
    kept = world.call(READER, "GET", f"/v1/memories/{keep['memory_id']}").text
    plant(world, SUBJECT)
    before = counts(world)
    dry = done(purge(world, data_subject=SPELLED, dry_run=True))
    assert changed(before, counts(world)).keys() == {"audit_event", "nonce"}
    assert len(dry["erased"]) == 7 and dry["counts"]["proposal"] == 3 and dry["counts"]["job_item"] == 1
    gone = done(purge(world, data_subject=SPELLED, key="purge-1"))
    assert (gone["counts"], gone["erased"]) == (dry["counts"], dry["erased"])
    assert gone["selector"] == "data_subject" and gone["held"] == gone["not_found"] == []
    assert everywhere(world, CANARY) == []
    assert everywhere(world, subject_key(SUBJECT)) == []
    assert world.call(READER, "GET", f"/v1/memories/{keep['memory_id']}").text == kept
    again = world.call(AGENT, "POST", "/v1/ingest", {"content": long_text(CANARY)}, key="staged")
    assert again.code in ("result_erased", "idempotency_conflict")
    assert done(purge(world, data_subject=SPELLED))["erased"] == []
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_a_subject_is_compared_as_a_whole(world: World) -> None:
    near = ["ann", "ann%", "ann_", "anna", "Ann ", "a'nn", 'ann"', "ann\\"]
    for subject in near:
        world.ingest(f"Of {subject}.", data_subjects=[subject])
    assert len(done(purge(world, data_subject="ANN%"))["erased"]) == 1
    assert len(done(purge(world, data_subject="Ann"))["erased"]) == 1
    assert counts(world)["memory"] == len(near) - 2


@given(st.text(max_size=40))
def test_the_key_of_a_subject_is_one_for_its_spellings(text: str) -> None:
    key = subject_key(text)
    assert key == subject_key(key) == subject_key(unicodedata.normalize("NFD", text))
    assert key == subject_key(unicodedata.normalize("NFC", text)) == subject_key(text.casefold())


@pytest.mark.parametrize("again", ["ingest", "approved", "imported", "in one import"])
def test_a_subject_that_only_a_further_submission_names_is_found_and_held(world: World, again: str) -> None:
    """The text was there before anybody said whom it is about, or it was said to be about others."""
    text = "Room seven is booked on Friday."
    record = {"body": {"text": text}, "scope": {"visibility": "shared"}}
    of = {**record, "body": {**record["body"], "structured": {"data_subjects": [SUBJECT]}}}
    if again == "in one import":
        done(world.call(AGENT, "POST", "/v1/ingest/ump", {"records": [record, of]}), 201)
    else:
        world.ingest(text, data_subjects=["Somebody else"] if again == "ingest" else [])
    if again == "ingest":
        assert world.ingest(text, OTHER_AGENT, data_subjects=[SUBJECT])["duplicate"]
    elif again == "approved":
        world.approve(world.propose(text, OTHER_AGENT, data_subjects=[SUBJECT])["proposal_id"])
    elif again == "imported":
        done(world.call(OTHER_AGENT, "POST", "/v1/ingest/ump", {"records": [of]}))
    [memory] = world.sql("select 'mem_' || replace(memory_id::text, '-', '') as id from memory")
    hold = {"data_subject": SPELLED, "reason": "litigation", "case_reference": "case-7"}
    placed = done(world.call(ADMIN, "POST", "/v1/legal-holds", hold), 201)
    for named in ({"data_subject": SUBJECT}, {"memory_ids": [memory["id"]]}):
        assert done(purge(world, **named))["held"] == [memory["id"]]
    # Whoever sent it again goes, and what is held of theirs stays.
    done(purge(world, owner=world.principals[OTHER_AGENT.name]))
    release = f"/v1/legal-holds/{placed['hold_id']}/release"
    done(world.call(ADMIN, "POST", release, {"reason": "case_closed"}, signed=True))
    assert done(purge(world, data_subject=SPELLED))["erased"] == [memory["id"]]
    assert everywhere(world, CANARY) == [] and everywhere(world, "room seven") == []


def test_an_owner_leaves_with_proposals_and_staged_work(world: World) -> None:
    mine = [
        world.ingest("Mine, shared.")["memory_id"],
        world.ingest("Mine, private.", target_space="private")["memory_id"],
    ]
    pending = world.propose("Mine, waiting.")["proposal_id"]
    theirs = world.ingest("Theirs.", OTHER_AGENT)["memory_id"]
    their_proposal = world.propose("Theirs, waiting.", OTHER_AGENT)["proposal_id"]
    staged = world.call(AGENT, "POST", "/v1/ingest", {"content": long_text("mine")})
    assert staged.status == 202
    gone = done(purge(world, owner=world.principals[AGENT.name]))
    assert sorted(gone["erased"]) == sorted(mine) and gone["counts"]["job_item"] == 1
    assert world.call(REVIEWER, "GET", f"/v1/proposals/{pending}").status == 404
    assert world.call(AGENT, "GET", f"/v1/jobs/{staged.json['job_id']}").code == "result_erased"
    assert world.call(READER, "GET", f"/v1/memories/{theirs}").status == 200
    assert world.shown(their_proposal)["content"] == "Theirs, waiting."
    for unknown in ("prin_" + "f" * 32, world.tenant_id.replace("-", "")):
        reply = purge(world, owner=unknown)
        assert reply.json.get("erased", []) == [] and reply.status in (200, 422)


@pytest.mark.parametrize("merged", [False, True])
def test_an_owner_leaves_with_the_names_that_their_submission_of_another_s_text_brought(
    world: World, merged: bool
) -> None:
    said = {"subject": "Ana", "predicate": "works_at", "object": "Globex"}
    theirs = {"subject": f"Ana {CANARY}", "predicate": f"knows_{CANARY}", "object": f"Ben {CANARY}"}
    text = "Ana works at Globex."
    first = world.ingest(text, relations=[said])
    again = world.ingest(
        text,
        OTHER_AGENT,
        relations=[said, theirs],
        entities=[{"name": "Globex", "kind": "other", "aliases": [CANARY]}],
    )
    assert again["memory_id"] == first["memory_id"] and again["duplicate"]
    if merged:
        ids = {
            name: world.call(READER, "GET", f"/v1/entities?name={name}").json["entities"][0]["entity_id"]
            for name in ("Ana", f"Ana%20{CANARY}")
        }
        body = {"into": ids["Ana"], "reason": "One person."}
        done(world.call(REVIEWER, "POST", f"/v1/entities/{ids[f'Ana%20{CANARY}']}/merge", body))
    assert everywhere(world, CANARY) != []
    erased = done(purge(world, owner=world.principals[OTHER_AGENT.name]))
    assert everywhere(world, CANARY) == [] and no_orphans(world)
    assert erased["counts"]["mention"] >= 5 and erased["counts"]["occurrence"] == 1
    [entity] = world.call(READER, "GET", "/v1/entities?name=Globex").json["entities"]
    assert (entity["name"], entity["aliases"]) == ("Globex", [])
    shown = world.call(READER, "GET", f"/v1/entities/{entity['entity_id']}").json["relationships"]
    assert [(one["subject"], one["object"]) for one in shown] == [("Ana", "Globex")]
    kept = world.ingest(text, relations=[said])
    assert kept["duplicate"] and kept["relationship_ids"] == first["relationship_ids"]


def test_a_staged_copy_of_an_erased_memory_goes_too(world: World) -> None:
    text = long_text("twins")
    staged = world.call(AGENT, "POST", "/v1/ingest", {"content": text})
    assert staged.status == 202
    memory = world.ingest("Short.")["memory_id"]
    world.sql("update memory set content = %s", text)
    assert done(purge(world, memory_ids=[memory]))["counts"]["job_item"] == 1
    assert everywhere(world, "about twins") == []


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"data_subject": "a", "owner": "prin_" + "0" * 32},
        {"memory_ids": ["mem_" + "0" * 32], "data_subject": "a"},
        {"data_subject": ""},
        {"data_subject": " "},
        {"data_subject": "x" * 129},
        {"owner": ""},
        {"owner": "%%%%%%"},
        {"memory_ids": []},
    ],
)
def test_exactly_one_selector_that_names_something(world: World, selector: dict[str, Any]) -> None:
    world.ingest("Still here.", data_subjects=["a"])
    reply = purge(world, **selector)
    assert (reply.status, reply.code) == (422, "invalid_input"), reply.text
    assert counts(world)["memory"] == 1


def test_two_erasures_of_overlapping_sets(world: World) -> None:
    for attempt in range(3):
        ids = [
            world.ingest(f"Overlap {attempt} {n}.", AGENT if n % 2 else OTHER_AGENT, data_subjects=["lap"])
            for n in range(6)
        ]
        named = [one["memory_id"] for one in ids]
        outcomes = race(
            world,
            lambda own, named=named: erase_of(own, memory_ids=named[:4]),
            lambda own, named=named: erase_of(own, memory_ids=named[2:]),
            lambda own: erase_of(own, data_subject="lap"),
        )
        assert not [one for one in outcomes if isinstance(one, str)], outcomes
        erased = [memory for one in outcomes for memory in one["erased"]]
        assert sorted(erased) == sorted(named)
    assert counts(world)["memory"] == 0 and counts(world)["tombstone"] == 18
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_what_was_prepared_before_an_erasure_does_not_commit_after_it(world: World) -> None:
    """The model is slow; meanwhile the subject is erased."""
    world.ingest("Known.", data_subjects=["fenced"])
    request = IngestRequest.model_validate({"content": f"Late {CANARY}.", "data_subjects": ["fenced"]})

    class Slow(QuickEmbedder):
        def embed(self, texts: Any) -> Any:
            assert len(done(purge(world, data_subject="FENCED"))["erased"]) == 1
            return super().embed(texts)

    slow = replace(world.services("ingest"), embedder=Slow())
    with pytest.raises(Problem) as refused:
        ingest(slow, call_of(AGENT, "POST /v1/ingest"), request)
    assert refused.value.code == "commit_conflict"
    assert everywhere(world, CANARY) == []
    # Another tenant's, or nobody's, erasure keeps nothing out.
    assert world.ingest("After it.", data_subjects=["fenced"])["status"] == "stored"


def test_a_capture_prepared_before_an_erasure_does_not_commit_after_it(world: World) -> None:
    world.ingest("Known.", data_subjects=["fenced"])

    class Slow(QuickEmbedder):
        def embed(self, texts: Any) -> Any:
            done(purge(world, data_subject="fenced"))
            return super().embed(texts)

    world._open["proposal"] = replace(world.services("proposal"), embedder=Slow())
    body = {"content": f"Late {CANARY}.", "data_subjects": ["fenced"]}
    reply = world.call(AGENT, "POST", "/v1/ingest/proposal", body)
    assert (reply.status, reply.code) == (503, "commit_conflict")
    assert everywhere(world, CANARY) == []


@pytest.mark.slow
def test_killed_at_any_statement_of_an_erasure_it_did_all_or_nothing(world: World) -> None:
    killer = Killer(world, "purge")

    def fresh(number: int) -> None:
        relation = {"subject": f"Bus {number}", "predicate": "leaves_at", "object": "ten"}
        world.ingest(f"Bus {number} leaves at ten.", data_subjects=["rider"], relations=[relation])
        world.propose(f"Bus {number} is late.", data_subjects=["rider"])

    fresh(0)
    position = failed = 0
    fired = True
    while fired:
        untouched = counts(world)
        killer.arm(position)
        reply = purge(world, data_subject="rider", key="fatal")
        fired = killer.disarm()
        left = changed(untouched, counts(world))
        if reply.status == 200:
            assert (left["memory"], left["proposal"], left["tombstone"]) == (-1, -1, 2), (position, left)
            fresh(position + 1)
            world.sql("delete from idempotency")
        else:
            assert reply.code in ("database_failure", "database_resuming"), (position, reply.text)
            assert left in ({}, {"idempotency": 1}), (position, left)
            world.sql("delete from idempotency where state = 'processing'")
            failed += 1
        position += 1
    assert failed > 30
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
