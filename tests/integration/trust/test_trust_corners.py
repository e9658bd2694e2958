"""Faults that a hostile review of the trust issue looked for."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from local import recover
from remembrancer.domain.ids import format_id, parse_id
from remembrancer.domain.requests import PrincipalPatch
from remembrancer.flows import work as import_work
from remembrancer.flows.administer import change_principal
from remembrancer.flows.context import SignedParts
from tests.integration.admission.conftest import Bucket
from tests.integration.attempts.harness import ada
from tests.integration.probe import QuickEmbedder, call_of, everywhere, public_pem, scratch_world
from tests.integration.trust.erasing import done, dsar, purge, race, with_bucket, work
from tests.integration.trust.restoring import backup_of, operate, recovered
from tests.integration.trust.test_erasure_canary import HOLDS
from tests.integration.world import (
    ADMIN,
    AGENT,
    AUDITOR,
    BASE,
    ISSUER,
    OTHER_AGENT,
    REVIEWER,
    SECOND_REVIEWER,
    Person,
    World,
)

WORD = "zqhunt"
HOLD = {"reason": "litigation", "case_reference": "case-1"}


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def bucket(world: World) -> Bucket:
    return with_bucket(world)


@pytest.fixture
def restored(world: World, postgres: Any) -> Iterator[Callable[[], World]]:
    with backup_of(world, postgres) as step:
        yield step


def reapplied(world: World, backup: World, tmp_path: Path) -> None:
    file = tmp_path / "tombstones.jsonl"
    file.write_text(json.dumps(done(world.call(AUDITOR, "GET", "/v1/tombstones?limit=200"))))
    world.close()
    events = recover.reapply_events(Namespace(files=[file], tenant=backup.tenant_id))
    assert recovered(backup, events)[0] == 0


def test_a_capture_that_became_an_erased_memory_does_not_come_back(
    world: World, restored: Callable[[], World], tmp_path: Path
) -> None:
    with_bucket(world)
    captured = world.propose(f"Captured {WORD}.", source_prompt=f"Prompt {WORD}")["proposal_id"]
    restored()  # the backup knows the capture and not the memory
    memory = world.approve(captured).json["memory_id"]
    done(purge(world, memory_ids=[memory]))
    assert everywhere(world, WORD) == []
    backup = restored()
    assert everywhere(backup, WORD) != []
    reapplied(world, backup, tmp_path)
    assert everywhere(backup, WORD) == []


def test_an_import_that_became_erased_memories_does_not_come_back(
    world: World, restored: Callable[[], World], tmp_path: Path
) -> None:
    with_bucket(world)
    text = "\n\n".join(f"# Part {n}\n\nNumber {n} of {WORD} in a long file." for n in range(90))
    body = {"content": text, "source_uri": "x.md", "revision": "1"}
    begun = done(world.call(AGENT, "POST", "/v1/ingest/markdown", body), 202)
    restored()
    tenant = UUID(world.tenant_id)
    while import_work.step(world.services("job_step"), tenant, None)["more"]:
        pass
    job = done(world.call(AGENT, "GET", f"/v1/jobs/{begun['job_id']}"))
    assert job["status"] == "done", job
    ids = [one["memory_id"] for one in job["result"]["items"]]
    done(purge(world, memory_ids=ids))
    assert everywhere(world, WORD) == []
    backup = restored()
    assert everywhere(backup, WORD) != []
    reapplied(world, backup, tmp_path)
    assert everywhere(backup, WORD) == []


def test_two_admins_do_not_stop_each_other(world: World) -> None:
    second = Person("Second Admin", "human-9", "human", ("read", "admin"), ("admin",))
    body = {
        "name": second.name, "kind": "human", "issuer": ISSUER, "subject": second.subject,
        "capabilities": ["admin"], "team_grant": "none",
    }  # fmt: skip
    other = done(world.call(ADMIN, "POST", "/v1/principals", body, signed=True), 201)["principal_id"]
    key = Ed25519PrivateKey.generate()
    asked = {"algorithm": "ed25519", "public_key": public_pem(key)}
    key_id = done(world.call(ADMIN, "POST", f"/v1/principals/{other}/keys", asked, signed=True), 201)[
        "key_id"
    ]
    world.sql("update signing_key set usable_from = now() - interval '1 hour'")

    def stop(person: Person, whom: str, signing: Any) -> Callable[[World], Any]:
        def work(own: World) -> Any:
            path = f"/v1/principals/{whom}"
            headers = replace(own, signing=signing).sign("PATCH", path, body)
            lower = {name.lower(): value for name, value in headers.items()}
            parts = SignedParts("PATCH", (BASE + path,), lower, body.encode())
            call = replace(call_of(person, "PATCH /v1/principals/{id}"), signed=parts)
            return change_principal(own.services("admin"), call, whom, PrincipalPatch(active=False))["active"]

        return work

    body = json.dumps({"active": False})
    stops = (
        stop(ADMIN, other, world.signing),
        stop(second, world.principals[ADMIN.name], (key_id, key)),
    )
    for _ in range(5):
        told = race(world, *stops)
        left = world.sql("select count(*) as n from principal where active and 'admin' = any (capabilities)")
        assert left == [{"n": 1}] and "forbidden" in told, told
        world.sql("update principal set active = true")


def test_a_capture_is_held_with_its_memory_by_an_order_on_a_subject(world: World, bucket: Bucket) -> None:
    captured = world.propose(f"Captured {WORD}.", source_prompt="Prompt")["proposal_id"]
    memory = world.approve(captured).json["memory_id"]
    again = world.ingest(f"Captured {WORD}.", OTHER_AGENT, data_subjects=["Sue"])
    assert again["memory_id"] == memory and again["duplicate"]
    assert world.call(ADMIN, "POST", "/v1/legal-holds", {**HOLD, "data_subject": "Sue"}).status == 201
    gone = done(purge(world, memory_ids=[memory], proposal_ids=[captured]))
    assert (gone["held"], gone["held_proposals"]) == ([memory], [captured])
    assert world.shown(captured)["content"] == f"Captured {WORD}."
    # So is a further submission of somebody else's.
    assert world.ingest(f"Captured {WORD}.", REVIEWER)["duplicate"]
    again = done(purge(world, owner=world.principals[REVIEWER.name]))
    assert again["counts"]["occurrence"] == 0


def test_a_held_submission_is_listed(world: World, bucket: Bucket) -> None:
    memory = world.ingest(f"Text {WORD}.")["memory_id"]
    assert world.ingest(f"Text {WORD}.", OTHER_AGENT)["duplicate"]
    assert world.call(ADMIN, "POST", "/v1/legal-holds", {**HOLD, "memory_ids": [memory]}).status == 201
    [row] = world.sql(
        "select occurrence_id from occurrence where submitted_by = %s",
        parse_id("prin", world.principals[OTHER_AGENT.name]),
    )
    listed = [format_id("occ", row["occurrence_id"])]
    owner = world.principals[OTHER_AGENT.name]
    for dry_run in (True, False):
        told = done(purge(world, owner=owner, dry_run=dry_run))
        assert told["counts"]["occurrence"] == 0 and told["held_submissions"] == listed
    begun = done(dsar(world, action="purge", owner=owner), 202)
    work(world, begun["job_id"])
    certificate = done(world.call(ADMIN, "GET", f"/v1/dsar/{begun['dsar_id']}/certificate"))["certificate"]
    assert certificate["held"]["submissions"] == listed and certificate["held"]["total"] == 1


def test_what_is_not_in_the_graph_yet_names_an_entity_in_any_spelling(world: World, bucket: Bucket) -> None:
    relation = {"subject": "Rob Straße", "subject_kind": "person", "predicate": "rides", "object": "a bike"}
    named = world.ingest("Rob rides.", relations=[relation])["memory_id"]
    said = {**relation, "subject": "ROB  STRASSE"}
    held = world.ingest(HOLDS.format("Rob"), relations=[said])["memory_id"]
    captured = world.propose("Rob again.", relations=[said])["proposal_id"]
    alias = {"name": "Bobby", "kind": "person", "aliases": ["rob strasse"]}
    aliased = world.propose("Bobby again.", entities=[alias])["proposal_id"]
    world.propose("Of somebody else.", entities=[{"name": "Rob", "kind": "person"}])
    world.ingest(HOLDS.format("a namesake"), OTHER_AGENT, relations=[said], target_space="private")
    long = "\n\n".join(f"Line {n} about a bike." for n in range(6000))
    staged = done(world.call(AGENT, "POST", "/v1/ingest", {"content": long, "relations": [said]}), 202)
    query = "/v1/entities?name=Rob%20Stra%C3%9Fe"
    entity = done(world.call(AGENT, "GET", query))["entities"][0]["entity_id"]
    found = done(dsar(world, entities=[entity], dry_run=True))
    assert found["memory_ids"] == sorted([named, held])
    assert found["proposal_ids"] == sorted([captured, aliased])
    assert found["located"]["imports"] == 1
    begun = done(dsar(world, action="purge", entities=[entity]), 202)
    work(world, begun["job_id"])
    assert world.call(AGENT, "GET", f"/v1/jobs/{staged['job_id']}").status == 410
    assert [row["content"] for row in world.sql("select content from memory")] == [HOLDS.format("a namesake")]


@pytest.mark.parametrize(
    "subject", ["Sue\u200b Q", "\ufeffSue Q", "Su\u00ade Q", "Sue\u2060 Q", "\u200bSue Q"]
)
def test_a_subject_is_found_and_held_by_the_very_text_that_declared_it(
    world: World, bucket: Bucket, subject: str
) -> None:
    of = {"data_subjects": [subject]}
    memory = world.ingest("Of Sue.", **of)["memory_id"]
    captured = world.propose("Also of Sue.", **of)["proposal_id"]
    placed = world.call(ADMIN, "POST", "/v1/legal-holds", {**HOLD, "data_subject": subject})
    told = done(purge(world, data_subject=subject))
    assert (told["held"], told["held_proposals"], told["erased"]) == ([memory], [captured], [])
    path = f"/v1/legal-holds/{placed.json['hold_id']}/release"
    done(world.call(ADMIN, "POST", path, {"reason": "case_closed"}, signed=True))
    assert done(purge(world, data_subject=subject))["erased"] == [memory]


def test_four_eyes_hold_for_what_the_screen_holds(world: World) -> None:
    done(world.call(ADMIN, "PATCH", "/v1/settings", {"four_eyes": True}, signed=True))
    held = world.ingest(HOLDS.format("x"), REVIEWER)["memory_id"]
    [row] = done(world.call(REVIEWER, "GET", "/v1/quarantine"))["memories"]
    body = {"content_digest": row["content_digest"], "reason": "It is harmless."}
    own = world.call(REVIEWER, "POST", f"/v1/quarantine/{held}/release", body)
    assert (own.status, own.json["errors"][0]["code"]) == (403, "four_eyes")
    done(world.call(SECOND_REVIEWER, "POST", f"/v1/quarantine/{held}/release", body))


def test_a_closed_tenant_keeps_no_credential_and_no_key_of_a_caller(world: World, bucket: Bucket) -> None:
    long = "\n\n".join(f"Line {n} about a bike." for n in range(6000))
    done(world.call(AGENT, "POST", "/v1/ingest", {"content": long}), 202)
    done(world.call(AGENT, "POST", "/v1/remember", ada("zqk-12345678")), 202)
    leave = {"tenant": "acme", "reason": "contract_ended", "dry_run": False}
    begun = done(world.call(ADMIN, "POST", "/v1/offboard", leave, signed=True), 202)
    work(world, begun["job_id"])
    operate(world, {"action": "close_tenant", "tenant_id": world.tenant_id})
    kept = [everywhere(world, one) for one in (AGENT.subject, ADMIN.subject, ISSUER, "zqk-12345678")]
    assert kept == [[], [], [], []]


@pytest.mark.parametrize("path", ["/v1/legal-holds", "/v1/dsar"])
def test_a_secret_is_no_number_of_a_case(world: World, path: str) -> None:
    """The chain keeps the number for good."""
    secret = "AKIA" + "Q7ZKX3JWM5TBC7QZ"
    memory = world.remember("Ada keeps bees.", data_subjects=["ada"])
    body: dict[str, Any] = {"memory_ids": [memory], "reason": "audit"}
    if path == "/v1/dsar":
        body = {"action": "register", "jurisdiction": "gdpr", "data_subject": "ada", "dry_run": False}
    reply = world.call(ADMIN, "POST", path, {**body, "case_reference": f"case:{secret}"}, signed=True)
    assert (reply.status, reply.code) == (422, "invalid_input")
    assert reply.json["errors"][0]["pointer"] == "/case_reference"
    assert everywhere(world, secret) == []
