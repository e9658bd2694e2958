"""After a restore newer erasures and holds are brought back; an admin when none is left; a tenant's end."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from functions.migrate import handler as migrate
from local import recover
from local.__main__ import main
from remembrancer.adapters.signatures import sign_request
from remembrancer.domain.problems import Problem
from tests.integration.probe import QuickEmbedder, counts, everywhere, public_pem, scratch_world
from tests.integration.trust.erasing import done, dsar, no_orphans, purge, with_bucket, work
from tests.integration.trust.restoring import backup_of, operate, recovered
from tests.integration.world import (
    ADMIN,
    AGENT,
    AUDITOR,
    BASE,
    ISSUER,
    OTHER_AGENT,
    READER,
    REVIEWER,
    Person,
    World,
    new_world,
)

WORD = "zq5gone"
NO_KEY = "-----BEGIN PUBLIC KEY-----\n" + "A" * 80 + "\n-----END PUBLIC KEY-----\n"


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def restored(world: World, postgres: Any) -> Iterator[Callable[[], World]]:
    with backup_of(world, postgres) as step:
        yield step


def listed(world: World, person: Person, path: str, file: Path) -> Path:
    """Pages of a listing, a line each, as the runbook says."""
    cursor = ""
    lines = []
    while True:
        page = done(world.call(person, "GET", f"{path}?limit=3{cursor}"))
        lines.append(json.dumps(page))
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    file.write_text("\n".join(lines))
    return file


def fill(world: World) -> tuple[list[str], str]:
    relation = {"subject": f"Rob {WORD}", "predicate": "rides", "object": "a bicycle"}
    memories = [
        world.ingest(f"Number {n} of {WORD}.", data_subjects=[WORD], relations=[relation])["memory_id"]
        for n in range(4)
    ]
    memories.append(world.ingest(f"Private {WORD}.", OTHER_AGENT, target_space="private")["memory_id"])
    proposal = world.propose(f"A proposal of {WORD}.")["proposal_id"]
    return memories, proposal


def test_a_restored_backup_forgets_again_what_was_erased_after_it(
    world: World, restored: Callable[[], World], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_bucket(world)
    memories, proposal = fill(world)
    kept = world.ingest("Kept by everybody.")["memory_id"]
    later = world.ingest("Held later.")["memory_id"]
    backup = restored()
    done(purge(world, memory_ids=memories[:1], proposal_ids=[proposal]))
    done(purge(world, memory_ids=memories[4:]))
    begun = done(dsar(world, action="purge", data_subject=WORD), 202)
    work(world, begun["job_id"])
    certificate = done(world.call(ADMIN, "GET", f"/v1/dsar/{begun['dsar_id']}/certificate"))["certificate"]
    hold = {"reason": "litigation", "case_reference": "case-7"}
    for named in ({"memory_ids": [later]}, {"data_subject": "Someone"}):
        assert world.call(ADMIN, "POST", "/v1/legal-holds", {**hold, **named}).status == 201
    files = [
        listed(world, AUDITOR, "/v1/tombstones", tmp_path / "tombstones.jsonl"),
        listed(world, ADMIN, "/v1/legal-holds", tmp_path / "holds.jsonl"),
    ]
    assert everywhere(world, WORD) == []
    # The cluster is replaced by the backup: everything is back, and the holds are not.
    backup = restored()
    assert everywhere(backup, WORD) != [] and counts(backup)["legal_order"] == 0
    events = recover.reapply_events(Namespace(files=files, tenant=backup.tenant_id))
    assert recovered(backup, events)[0] == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"holds"')]
    assert [json.loads(line) for line in told] == [
        {"holds": 2, "erased": 0, "tombstones": 0},
        {"holds": 0, "erased": 6, "tombstones": 6},
    ]
    assert everywhere(backup, WORD) == [] and no_orphans(backup)
    assert backup.call(READER, "GET", f"/v1/memories/{kept}").status == 200
    assert backup.sql("select count(*) as n from memory") == [{"n": 2}]
    # Holds survive the restore: the later one keeps its memory, the subject's what comes to name it.
    held = backup.ingest("New of someone.", data_subjects=["SOMEONE"])["memory_id"]
    gone = done(purge(backup, memory_ids=[later, held, kept]))
    assert (gone["held"], gone["erased"]) == ([later, held], [kept])
    # Repeating it does nothing; the chain says what was done, by whom, and verifies.
    before = counts(backup)
    assert recovered(backup, events)[0] == 0
    after = counts(backup)
    assert {table for table in after if after[table] != before[table]} <= {"audit_event"}
    [row] = [event for event in backup.audit() if event["action"] == "erasure_reapplied"]
    assert row["actor_kind"] == "system" and sorted(row["detail"]["erased"]) == sorted(memories)
    assert backup.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
    roots = backup.sql("select count(*) as n from tombstone where erasure_id is not null")
    assert roots == [{"n": certificate["tombstones"]["count"]}]


def test_another_tenants_tombstones_erase_nothing(world: World, tmp_path: Path) -> None:
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    memory = other.ingest("Theirs.")["memory_id"]
    mine = world.ingest("Mine.")["memory_id"]
    done(purge(other, memory_ids=[memory]))
    file = listed(other, AUDITOR, "/v1/tombstones", tmp_path / "t.jsonl")
    assert recovered(world, recover.reapply_events(Namespace(files=[file], tenant=world.tenant_id)))[0] == 0
    assert world.call(READER, "GET", f"/v1/memories/{mine}").status == 200
    other.close()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"memories": []}', '{"tombstones": [{"mac": "00"}]}'])
def test_a_file_that_lists_nothing_is_refused(text: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "listing.json"
    file.write_text(text)
    arguments = ["reapply", str(file), "--tenant", "0" * 8 + "-0000-0000-0000-" + "0" * 12]
    assert main(["--folder", str(tmp_path / "local"), *arguments]) == 1
    assert "error:" in capsys.readouterr().err


def test_the_only_admin_is_gone_and_an_operator_makes_another(world: World, tmp_path: Path) -> None:
    world.sql("update principal set active = false where name = %s", ADMIN.name)
    assert world.call(ADMIN, "GET", "/v1/principals").status == 403
    key = Ed25519PrivateKey.generate()
    pem = tmp_path / "key.pem"
    pem.write_text(public_pem(key))
    new = Person("Nora New Admin", "human-new", "human", ("read", "admin"), ("admin",))
    options = Namespace(tenant=world.tenant_id, name=new.name, issuer=ISSUER, subject=new.subject, key=pem)
    [event] = recover.admin_events(options)
    made = operate(world, event)
    usable = datetime.fromisoformat(made["usable_from"])
    assert timedelta(hours=23, minutes=59) < usable - datetime.now(UTC) <= timedelta(hours=24)
    assert world.call(new, "GET", "/v1/principals").status == 200

    def purge_as_new(at: datetime) -> int:
        world.close()
        world.clock = lambda: at
        body = json.dumps({"memory_ids": ["mem_" + "0" * 32], "dry_run": True, "reason": "other"})
        headers = sign_request(
            method="POST", target_uri=BASE + "/v1/purge", body=body.encode(), key_id=made["key_id"],
            algorithm="ed25519", private_key=key, now=at,
        )  # fmt: skip
        return world.call(new, "POST", "/v1/purge", raw=body, headers=headers).status

    assert purge_as_new(usable - timedelta(seconds=1)) == 401
    assert purge_as_new(usable + timedelta(seconds=1)) == 200
    world.close()
    world.clock = None
    assert world.sql("select kind, target from outbox where kind = 'admin_recovered'") == [
        {"kind": "admin_recovered", "target": made["principal_id"]}
    ]
    [row] = [event for event in world.audit() if event["action"] == "admin_recovered"]
    assert row["actor_kind"] == "system" and row["detail"]["new_key"] == made["key_id"]
    # A person who is there already keeps its principal, and is active again.
    pem.write_text(public_pem(Ed25519PrivateKey.generate()))
    [event] = recover.admin_events(options)
    again = operate(world, {**event, "subject": ADMIN.subject})
    assert again["principal_id"] == world.principals[ADMIN.name]
    assert world.call(ADMIN, "GET", "/v1/principals").status == 200


def operators_event(world: World, action: str, public_key: str) -> dict[str, Any]:
    key = {"algorithm": "ed25519", "public_key": public_key}
    who = {"name": "Nora New Admin", "issuer": ISSUER, "subject": "human-new"}
    if action == "recover_admin":
        return {"action": action, "tenant_id": world.tenant_id, "key": key, **who}
    person = {**who, "kind": "human", "capabilities": ["admin"], "team_grant": "write", "keys": [key]}
    return {"action": action, "tenant": "another", "principals": [person]}


@pytest.mark.parametrize("action", ["bootstrap", "recover_admin"])
def test_a_key_that_an_operator_brings_is_stored_in_its_one_spelling(world: World, action: str) -> None:
    """Else the same key could be registered again, for somebody else, when written otherwise."""
    pem = public_pem(Ed25519PrivateKey.generate())
    operate(world, operators_event(world, action, pem.replace("\n", "\r\n")))
    assert world.sql("select count(*) as n from signing_key where public_key = %s", pem) == [{"n": 1}]


@pytest.mark.parametrize("action", ["bootstrap", "recover_admin"])
@pytest.mark.parametrize("public_key", [NO_KEY, public_pem(generate_private_key(SECP256R1()))])
def test_an_operators_key_must_be_one_of_its_algorithm(world: World, action: str, public_key: str) -> None:
    before = counts(world)
    with pytest.raises(Problem, match="invalid_input"):
        operate(world, operators_event(world, action, public_key))
    assert counts(world) == before


@pytest.mark.parametrize(
    "event",
    [
        {"action": "recover_admin", "tenant_id": "x"},
        {"action": "reapply", "tenant_id": "0" * 36},
        {"action": "close_tenant"},
    ],
)
def test_an_event_that_is_no_request_is_refused_without_its_values(
    world: World, event: dict[str, Any]
) -> None:
    with pytest.raises(migrate.OperatorRefused, match="/tenant_id"):
        operate(world, event)


def test_a_tenant_leaves_and_nothing_of_it_is_left(world: World, tmp_path: Path) -> None:
    with_bucket(world)
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    theirs = other.ingest(f"Theirs {WORD}.")["memory_id"]
    memories, _ = fill(world)
    hold = {"memory_ids": memories[:1], "reason": "regulator", "case_reference": "case-9"}
    placed = done(world.call(ADMIN, "POST", "/v1/legal-holds", hold), 201)
    body = {"tenant": "acme", "reason": "contract_ended", "dry_run": False}
    assert world.call(ADMIN, "POST", "/v1/offboard", body).code == "signature_missing"
    wrong = world.call(ADMIN, "POST", "/v1/offboard", {**body, "tenant": "acme-corp"}, signed=True)
    assert (wrong.status, wrong.json["errors"][0]["pointer"]) == (422, "/tenant")
    dry = done(world.call(ADMIN, "POST", "/v1/offboard", {**body, "dry_run": True}, signed=True))
    assert (dry["memories"], dry["proposals"], dry["held"]) == (5, 1, 1)
    begun = done(world.call(ADMIN, "POST", "/v1/offboard", body, signed=True), 202)
    for stopped in (AGENT, OTHER_AGENT, READER, REVIEWER):
        assert world.call(stopped, "GET", "/v1/memories").status == 403
    work(world, begun["job_id"])
    shown = done(world.call(ADMIN, "GET", f"/v1/jobs/{begun['job_id']}"))
    assert shown["result"]["held"]["memories"] == memories[:1] and shown["result"]["erased"]["memories"] == 4
    # What is held keeps the tenant open.
    close = {"action": "close_tenant", "tenant_id": world.tenant_id}
    with pytest.raises(Problem, match="stale_target"):
        operate(world, close)
    path = f"/v1/legal-holds/{placed['hold_id']}/release"
    assert world.call(ADMIN, "POST", path, {"reason": "case_closed"}, signed=True).status == 200
    again = done(world.call(ADMIN, "POST", "/v1/offboard", body, signed=True), 202)
    work(world, again["job_id"])
    assert done(world.call(AUDITOR, "GET", "/v1/audit/verify"))["ok"] is True
    assert operate(world, close)["principals"] == 8
    left = [place for place in everywhere(world, WORD) if not place.startswith("passage_")]
    assert sorted(left) == ["memory.content", "passage.rendered"], "the other tenant's memory alone"
    assert everywhere(world, "otto auditor") == everywhere(other, "otto auditor")
    names = world.sql("select distinct name from principal where tenant_id = %s", world.tenant_id)
    assert names == [{"name": "closed"}]
    for person in (ADMIN, AUDITOR, AGENT):
        assert world.call(person, "GET", "/v1/me").status == 403
    assert other.call(READER, "GET", f"/v1/memories/{theirs}").status == 200
    assert [row["n"] for row in world.sql("select count(*) as n from tombstone")] == [6]
    other.close()


def test_a_certificate_is_verified_without_the_database(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_bucket(world)
    fill(world)
    begun = done(dsar(world, action="both", data_subject=WORD), 202)
    work(world, begun["job_id"])
    world.ingest("Later.")
    shown = world.call(ADMIN, "GET", f"/v1/dsar/{begun['dsar_id']}/certificate")
    certificate = tmp_path / "certificate.json"
    certificate.write_text(shown.text)
    export = tmp_path / "chain.jsonl"
    export.write_text(world.call(AUDITOR, "GET", "/v1/audit/export?limit=5000").text)
    tombstones = listed(world, AUDITOR, "/v1/tombstones", tmp_path / "tombstones.jsonl")
    verify = ["dsar-verify", str(certificate), str(export), "--tombstones", str(tombstones)]
    assert main(verify) == 0
    assert "witnessed by the chain" in capsys.readouterr().out
    # One word of the certificate, one tombstone, or the row of the chain: each is found.
    changed = json.loads(shown.text)
    changed["certificate"]["erased"]["memories"] += 1
    certificate.write_text(json.dumps(changed))
    assert main(verify) == 1 and "NOT in the chain" in capsys.readouterr().out
    certificate.write_text(shown.text)
    lines = tombstones.read_text().splitlines()
    tombstones.write_text(lines[0])
    assert main(verify) == 1 and "NOT as certified" in capsys.readouterr().out
    tombstones.write_text("\n".join(lines))
    export.write_text(export.read_text().replace("dsar_completed", "dsar_comp1eted"))
    assert main(verify) == 1 and "BROKEN" in capsys.readouterr().out
    certificate.write_text("{}")
    assert main(verify) == 2
