"""Tombstones and legal holds lie outside the database by themselves, and a restored older one is told of them."""

from __future__ import annotations

import hashlib
import json
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from functions.list_erased import handler as list_erased
from local import recover
from remembrancer.adapters.objects import S3Objects
from remembrancer.domain.problems import Problem
from remembrancer.flows import listing
from remembrancer.flows.context import Services
from remembrancer.store import listings
from tests.checkpoint_account import checkpoint_account
from tests.integration.probe import QuickEmbedder, everywhere, logged, scratch_world
from tests.integration.trust.erasing import done, no_orphans, purge, with_bucket
from tests.integration.trust.restoring import backup_of, recovered
from tests.integration.world import (
    ADMIN,
    AUDITOR,
    READER,
    LambdaContext,
    Person,
    World,
    new_world,
    wired,
)

ROOT = Path(__file__).resolve().parents[3]
MACHINE = json.loads((ROOT / "infra" / "listing.asl.json").read_text())
BUCKET = "checkpoints"
WORD = "zq6listed"
HOLD = {"reason": "litigation", "case_reference": "case-11"}


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with checkpoint_account(monkeypatch) as account:
        yield account["s3"]


def equipped(world: World, client: Any) -> Services:
    made = replace(world.services("list_erased"), evidence=S3Objects(BUCKET, client=client))
    world._open["list_erased"] = made
    return made


def run(world: World, **event: Any) -> int:
    """The machine, to its end; how many entries it listed."""
    listed = 0
    state: dict[str, Any] = {**event, "more": True}
    with wired(world, "list_erased"):
        while state["more"]:
            state = json.loads(json.dumps(list_erased.handler(state, LambdaContext("list_erased"))))
            listed += state["listed"]
    return listed


def objects(s3: Any, tenant: str) -> dict[str, dict[str, Any]]:
    found = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"listings/{tenant}/").get("Contents", [])
    bodies = {one["Key"]: s3.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}
    for key, body in bodies.items():
        assert key == f"listings/{tenant}/{hashlib.sha256(body).hexdigest()}.json"
    return {key: json.loads(body) for key, body in bodies.items()}


def fetched(s3: Any, tenant: str, folder: Path) -> Path:
    """As `aws s3 cp --recursive` does."""
    for key, listing_ in objects(s3, tenant).items():
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(listing_))
    return folder / "listings"


def entries(s3: Any, tenant: str, kind: str, name: str) -> list[str]:
    return sorted(one[name] for found in objects(s3, tenant).values() for one in found[kind])


def reapply(world: World, files: list[Path]) -> list[dict[str, Any]]:
    events = recover.reapply_events(Namespace(files=files, tenant=world.tenant_id))
    code, told = recovered(world, events)
    assert code == 0
    return told


def hold(world: World, person: Person = ADMIN, **named: Any) -> str:
    placed = done(world.call(person, "POST", "/v1/legal-holds", {**HOLD, **named}), 201)
    return str(placed["hold_id"])


def release(world: World, hold_id: str) -> None:
    path = f"/v1/legal-holds/{hold_id}/release"
    done(world.call(ADMIN, "POST", path, {"reason": "case_closed"}, signed=True))


@pytest.fixture
def restored(world: World, postgres: Any) -> Iterator[Callable[[], World]]:
    with backup_of(world, postgres) as step:
        yield step


def test_an_older_database_is_told_what_the_machine_listed(
    world: World, s3: Any, restored: Callable[[], World], tmp_path: Path
) -> None:
    with_bucket(world)
    equipped(world, s3)
    memories = [world.ingest(f"Number {n} of {WORD}.", data_subjects=[WORD])["memory_id"] for n in range(4)]
    proposal = world.propose(f"A proposal of {WORD}.")["proposal_id"]
    later = world.ingest("Held later.")["memory_id"]
    freed = world.ingest("Held and released.")["memory_id"]
    old = hold(world, memory_ids=[freed])
    assert run(world) == 1
    restored()  # the backup: it knows the hold on `freed` as one that stands
    with_bucket(world)
    equipped(world, s3)
    done(purge(world, memory_ids=memories[:2], proposal_ids=[proposal]))
    new_admin(world)
    by_new = hold(world, NEW, memory_ids=[later])
    of_subject = hold(world, data_subject="Someone")
    assert run(world) == 5
    release(world, old)
    done(purge(world, memory_ids=[*memories[2:], freed]))
    assert run(world) == 4 and run(world) == 0
    # The cluster is gone; what is left is the older backup and the bucket.
    older = restored()
    assert everywhere(older, WORD) != []
    told = reapply(older, [fetched(s3, older.tenant_id, tmp_path)])
    assert [(one["holds"], one["erased"], one["tombstones"]) for one in told] == [(3, 0, 0), (0, 6, 6)]
    assert everywhere(older, WORD) == [] and no_orphans(older)
    assert older.call(READER, "GET", f"/v1/memories/{freed}").status == 404
    standing = older.sql("select hold_id from legal_order where released_at is null order by hold_id")
    assert [f"hold_{row['hold_id'].hex}" for row in standing] == sorted([by_new, of_subject])
    with_bucket(older)
    held = older.ingest("New of someone.", data_subjects=["SOMEONE"])["memory_id"]
    gone = done(purge(older, memory_ids=[later, held]))
    assert (sorted(gone["held"]), gone["erased"]) == (sorted([later, held]), [])
    assert older.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
    # Again, it does nothing; and the restored database lists by itself from here on.
    assert [one["erased"] + one["tombstones"] + one["holds"] for one in
            reapply(older, [fetched(s3, older.tenant_id, tmp_path)])] == [0, 0]  # fmt: skip
    equipped(older, s3)
    assert run(older) > 0 and run(older) == 0


NEW = Person("Nora New", "human-9", "human", ("read", "admin"), ("admin",))


def new_admin(world: World) -> None:
    """Somebody whom the backup does not know."""
    body = {
        "name": NEW.name, "kind": "human", "issuer": NEW.issuer, "subject": NEW.subject, "capabilities": ["admin"],
    }  # fmt: skip
    done(world.call(ADMIN, "POST", "/v1/principals", body, signed=True), 201)


def test_a_listing_is_what_the_api_lists_and_holds_no_content(world: World, s3: Any) -> None:
    with_bucket(world)
    equipped(world, s3)
    memory = world.ingest(f"Somebody's {WORD}.", data_subjects=[f"Subject {WORD}"])["memory_id"]
    kept = world.ingest("Kept.")["memory_id"]
    hold(world, memory_ids=[kept])
    hold(world, data_subject=f"Subject {WORD} the other")
    done(purge(world, memory_ids=[memory]))
    assert run(world) == 3
    [found] = objects(s3, world.tenant_id).values()
    assert (found["version"], found["tenant_id"]) == (1, world.tenant_id)
    assert found["tombstones"] == done(world.call(AUDITOR, "GET", "/v1/tombstones"))["tombstones"]
    holds = done(world.call(ADMIN, "GET", "/v1/legal-holds"))["legal_holds"]
    assert found["legal_holds"] == sorted(holds, key=lambda one: one["hold_id"])
    text = json.dumps(found).lower()
    assert WORD not in text and memory not in text, "an erased id is named by its keyed digest alone"


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "SlowDown", "Message": "zq canary"}}, "PutObject"),
        EndpointConnectionError(endpoint_url="https://zq.canary.test"),
    ],
)
def test_a_fault_of_the_bucket_marks_nothing_and_the_next_run_catches_up(
    world: World, s3: Any, error: Exception
) -> None:
    class Broken:
        def put_object(self, **_: Any) -> Any:
            raise error

    with_bucket(world)
    equipped(world, Broken())
    done(purge(world, memory_ids=[world.ingest("One.")["memory_id"]]))
    with logged() as log, pytest.raises(Exception, match="internal_failure") as raised:
        run(world)
    assert type(raised.value).__name__ == "InternalFailure" and raised.value.__cause__ is None
    assert "canary" not in log.getvalue() + str(raised.value)
    # Erasing does not wait for the bucket.
    done(purge(world, memory_ids=[world.ingest("Two.")["memory_id"]]))
    equipped(world, s3)
    assert run(world) == 2 and run(world) == 0
    assert len(entries(s3, world.tenant_id, "tombstones", "mac")) == 2


@pytest.mark.slow
def test_dying_between_the_bucket_and_the_mark_writes_the_same_object_again(
    world: World, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bucket(world)
    equipped(world, s3)
    done(purge(world, memory_ids=[world.ingest("One.")["memory_id"]]))

    def killed(*_: Any) -> None:
        raise Problem("database_resuming")

    with monkeypatch.context() as dying:
        dying.setattr(listings, "mark", killed)
        with pytest.raises(Exception, match="database_resuming") as raised:
            run(world)
    assert type(raised.value).__name__ == "DatabaseResuming", "the machine waits for it"
    before = objects(s3, world.tenant_id)
    assert run(world) == 1 and objects(s3, world.tenant_id) == before


def test_what_becomes_visible_late_is_not_passed_over(
    world: World, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that began first, with lower ids, commits after a listing of a later one."""
    with_bucket(world)
    equipped(world, s3)
    slow, fast = (world.ingest(text)["memory_id"] for text in ("Slow.", "Fast."))
    early = UUID("01000000-0000-7000-8000-000000000001")
    done(purge(world, memory_ids=[fast]))
    assert run(world) == 1
    done(purge(world, memory_ids=[slow]))
    world.sql("update tombstone set tombstone_id = %s where not listed", early)
    assert run(world) == 1
    assert f"tomb_{early.hex}" in entries(s3, world.tenant_id, "tombstones", "tombstone_id")


def test_an_order_that_is_released_while_it_is_listed_is_listed_again(
    world: World, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    equipped(world, s3)
    order = hold(world, data_subject="Someone")
    real = listings.mark

    def late(*given: Any) -> None:
        monkeypatch.setattr(listings, "mark", real)
        release(world, order)
        real(*given)

    monkeypatch.setattr(listings, "mark", late)
    assert run(world) == 2
    released = [
        one["released_at"] for found in objects(s3, world.tenant_id).values() for one in found["legal_holds"]
    ]
    assert sorted(at is not None for at in released) == [False, True]


def test_tenants_have_objects_of_their_own_and_one_can_be_named(
    world: World, s3: Any, tmp_path: Path
) -> None:
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    for one in (world, other):
        with_bucket(one)
        done(purge(one, memory_ids=[one.ingest("Gone.")["memory_id"]]))
    equipped(world, s3)
    assert run(world, tenant_id=other.tenant_id) == 1
    assert objects(s3, world.tenant_id) == {} and len(objects(s3, other.tenant_id)) == 1
    assert run(world) == 1
    with pytest.raises(recover.RecoverFailed, match="another tenant"):
        recover.reapply_events(
            Namespace(files=[fetched(s3, other.tenant_id, tmp_path / "b")], tenant=world.tenant_id)
        )
    other.close()


def test_many_entries_are_many_objects_and_many_steps(
    world: World, s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    monkeypatch.setattr(listing, "TOMBSTONES", 2)
    monkeypatch.setattr(listing, "HOLDS", 1)
    monkeypatch.setattr(listing, "OBJECTS", 2)
    for one in (world, other):
        with_bucket(one)
        done(purge(one, memory_ids=[one.ingest(f"Gone {n}.")["memory_id"] for n in range(7)]))
        for n in range(2):
            hold(one, data_subject=f"Someone {n}")
    equipped(world, s3)
    assert run(world) == 18
    for one in (world, other):
        assert len(objects(s3, one.tenant_id)) == 4
        assert len(set(entries(s3, one.tenant_id, "tombstones", "mac"))) == 7
        assert len(set(entries(s3, one.tenant_id, "legal_holds", "hold_id"))) == 2
    other.close()


def test_two_runs_at_once_leave_nothing_out(world: World, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "TOMBSTONES", 3)
    with_bucket(world)
    done(purge(world, memory_ids=[world.ingest(f"Gone {n}.")["memory_id"] for n in range(12)]))
    workers = [equipped(world, s3)]
    del world._open["list_erased"]
    workers.append(equipped(world, s3))
    threads = [threading.Thread(target=listing.step, args=(services, None, None)) for services in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    workers[0].database.close()
    assert run(world) == 0
    assert len(set(entries(s3, world.tenant_id, "tombstones", "mac"))) == 12


def test_the_listing_role_reads_no_memory_and_removes_nothing(world: World) -> None:
    """It could tell nobody what was erased, nor make anything forgotten again."""
    from tests.integration.world import connect_as

    with connect_as(world.database, "rem_listing") as connection:
        for statement in (
            "select * from memory", "delete from tombstone", "delete from legal_order",
            "update legal_order set released_at = now()", "update tombstone set mac = ''",
        ):  # fmt: skip
            with pytest.raises(Exception, match="permission denied"):
                connection.execute(statement.encode())


def test_a_purge_and_a_hold_wake_the_machine_of_their_tenant(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[UUID] = []
    database = world.services("purge").database
    monkeypatch.setattr(database, "_kick", lambda tenant, now: woken.append(tenant))
    with_bucket(world)
    memory = world.ingest("One.")["memory_id"]
    dry = world.call(
        ADMIN, "POST", "/v1/purge", {"memory_ids": [memory], "dry_run": True, "reason": "other"}, signed=True
    )
    assert dry.status == 200 and woken == []
    order = hold(world, memory_ids=[memory])
    release(world, order)
    done(purge(world, memory_ids=[memory]))
    assert woken == [UUID(world.tenant_id)] * 3


def test_the_machine_tries_again_goes_on_and_then_fails_aloud() -> None:
    """No Catch hides the fault: the execution fails, and every machine's failures are alarmed (infra/watch.py)."""
    step = MACHINE["States"]["List"]
    [retry] = [one for one in step["Retry"] if "States.TaskFailed" in one["ErrorEquals"]]
    assert retry["MaxAttempts"] >= 3 and retry["BackoffRate"] > 1
    assert not [name for name, state in MACHINE["States"].items() if "Catch" in state]
    assert MACHINE["States"]["More"]["Choices"] == [
        {"Variable": "$.more", "BooleanEquals": True, "Next": "List"}
    ]
