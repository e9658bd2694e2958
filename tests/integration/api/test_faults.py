"""The database, the model and the keys fail at the worst moment: a problem, nothing half done, nothing lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from functions import manifest
from remembrancer.api import wiring
from remembrancer.domain.ports import EmbeddingUnavailable
from remembrancer.settings import SettingsError
from remembrancer.store.database import Database, connect
from tests.integration.probe import (
    Killer,
    QuickEmbedder,
    changed,
    counts,
    kill,
    logged,
    routes,
    scratch_world,
    with_cursor,
)
from tests.integration.samples import SAMPLES, path_with
from tests.integration.world import ADMIN, AGENT, AUDITOR, READER, REVIEWER, World

PEOPLE = {"review": REVIEWER, "audit": AUDITOR, "admin": ADMIN}
CANARY = "zq7-fault-canary"


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture(autouse=True)
def whole_again(world: World) -> Iterator[None]:
    yield
    world.close()


def role_of(function: str) -> str:
    role = manifest.function(function).db_role
    assert role is not None
    return role


# The database ---------------------------------------------------------------------------------------------
def test_a_database_that_does_not_answer_is_waking_up(world: World) -> None:
    for function, route in routes():
        if route.path == "/v1/openapi.json":
            continue
        down = connect("host=127.0.0.1 port=1 dbname=x user=x")
        database = Database(down, wiring.new_id)
        world._open[function.name] = replace(world.services(function.name), database=database)
        person = PEOPLE.get(route.scopes[0], AGENT) if route.scopes else READER
        body = SAMPLES.get(f"{route.method} {route.path}")
        key = (body or {}).get("idempotency_key", "k-1")
        with logged() as log:
            reply = world.call(
                person, route.method, path_with(route.path), body, signed=route.signed, key=key
            )
        assert (reply.status, reply.code) == (503, "database_resuming"), (route.path, reply.text)
        assert int(reply.headers["Retry-After"]) > 0 and reply.json["retryable"] is True
        assert "127.0.0.1" not in reply.text + log.getvalue()


@pytest.mark.parametrize("function", [f.name for f in manifest.FUNCTIONS if f.routes])
def test_a_connection_that_died_between_two_requests_is_opened_again(world: World, function: str) -> None:
    route = manifest.function(function).routes[-1]
    person = PEOPLE.get(route.scopes[0], AGENT) if route.scopes else READER
    path = path_with(route.path)
    if route.path == "/v1/openapi.json":
        path, route = "/v1/me", manifest.Route("GET", "/v1/me", ())
    body = SAMPLES.get(f"{route.method} {route.path}")
    first = world.call(person, route.method, path, body, signed=route.signed)
    assert first.status < 500, first.text
    kill(world, role_of(function))
    again = world.call(person, route.method, path, body, signed=route.signed)
    assert again.status in (first.status, 200), again.text


def test_a_slow_statement_is_stopped(world: World) -> None:
    slow = Database(connect(world.database.url("rem_ingest")), wiring.new_id, statement_timeout_ms=300)
    world._open["ingest"] = replace(world.services("ingest"), database=slow)
    with world.database.superuser() as blocker, blocker.transaction():
        blocker.execute("lock table occurrence in access exclusive mode")
        before = time.monotonic()
        reply = world.call(AGENT, "POST", "/v1/ingest", {"content": f"Slow {CANARY}."}, key="slow")
        assert (reply.status, reply.code) == (504, "request_timeout")
        assert time.monotonic() - before < 5
    assert world.sql("select count(*) as n from memory where content like 'Slow %%'") == [{"n": 0}]
    assert world.call(AGENT, "POST", "/v1/ingest", {"content": f"Slow {CANARY}."}, key="slow").status == 201


@pytest.mark.slow
def test_killed_at_any_statement_of_an_approval_it_did_all_or_nothing(world: World) -> None:
    def attempt(number: int) -> tuple[str, dict[str, Any]]:
        old = world.remember(f"Bus {number} leaves at nine.")
        relation = {"subject": f"Bus {number}", "predicate": "leaves_at", "object": "ten"}
        proposal = world.propose(f"Bus {number} leaves at ten.", relations=[relation])["proposal_id"]
        digest = world.shown(proposal)["content_digest"]
        return proposal, {"content_digest": digest, "supersedes": {"memory_id": old, "version": 1}}

    killer = Killer(world, "approve")
    proposal, body = attempt(0)
    position = failed = 0
    fired = True
    while fired:
        untouched = counts(world)
        path = f"/v1/proposals/{proposal}/approve"
        killer.arm(position)
        reply = world.call(REVIEWER, "POST", path, body, key="fatal")
        fired = killer.disarm()
        left = changed(untouched, counts(world))
        if reply.status == 200:
            # Not reached, or killed before a transaction's first statement: opened again.
            assert (left["memory"], left["audit_event"], left["relationship"]) == (1, 1, 1)
            assert world.call(REVIEWER, "POST", path, body, key="fatal").text == reply.text
            proposal, body = attempt(position + 1)
        else:
            assert reply.code in ("database_failure", "database_resuming"), (position, reply.text)
            assert reply.json["retryable"] is True
            # The claim on the key stays when its release was cut off too; its lease runs out.
            assert left in ({}, {"idempotency": 1}), (position, left)
            world.sql("delete from idempotency where state = 'processing'")
            failed += 1
        position += 1
    assert failed > 20
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_killed_behind_the_last_statement_nothing_is_committed(world: World) -> None:
    """Between the audit row and COMMIT."""
    proposal = world.propose("The last moment.")["proposal_id"]
    digest = world.shown(proposal)["content_digest"]

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            done = super().execute(query, *args, **kwargs)
            if "audit_append_many" in str(query):
                kill(world, "rem_approve")
            return done

    def opened() -> Any:
        return psycopg.connect(
            world.database.url("rem_approve"), autocommit=True, row_factory=dict_row, cursor_factory=Cursor
        )

    before = counts(world)
    world._open["approve"] = replace(world.services("approve"), database=Database(opened, wiring.new_id))
    reply = world.call(REVIEWER, "POST", f"/v1/proposals/{proposal}/approve", {"content_digest": digest})
    assert (reply.status, reply.code) == (503, "database_failure")
    assert changed(before, counts(world)) == {}
    world.close()
    assert world.approve(proposal).status == 200


@pytest.mark.parametrize("error", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
def test_the_victim_of_a_deadlock_runs_again_a_few_times(world: World, error: type[Exception]) -> None:
    failures = {"left": 3}

    def before(query: str) -> None:
        if "memory_insert(" in query and failures["left"]:
            failures["left"] -= 1
            raise error("victim")

    with_cursor(world, "ingest", before)
    assert world.call(AGENT, "POST", "/v1/ingest", {"content": f"Third time lucky: {error}."}).status == 201
    failures["left"] = 100
    stored = counts(world)
    reply = world.call(AGENT, "POST", "/v1/ingest", {"content": f"Never lucky: {error}."})
    assert (reply.status, reply.code) == (503, "commit_conflict") and reply.json["retryable"] is True
    assert failures["left"] == 96
    assert changed(stored, counts(world)) == {}


# The model and the keys -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/ingest", {"content": f"No vectors {CANARY}."}),
        ("POST", "/v1/ingest/proposal", {"content": f"No vectors {CANARY}."}),
        ("POST", "/v1/recall", {"query": f"no vectors {CANARY}"}),
    ],
)
def test_without_the_model_there_is_a_problem_to_retry(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: dict[str, Any]
) -> None:
    def broken(texts: Any) -> Any:
        raise EmbeddingUnavailable(f"cannot embed {CANARY}")

    before = counts(world)
    monkeypatch.setattr(world.embedder, "embed", broken, raising=False)
    with logged() as log:
        reply = world.call(AGENT, method, path, body, key="k" if path != "/v1/recall" else None)
    assert (reply.status, reply.code) == (503, "embedding_unavailable")
    assert reply.json["retryable"] is True
    assert CANARY not in reply.text + log.getvalue()
    assert changed(before, counts(world)) == {}


def test_a_batch_without_the_model_decides_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for number in range(2):
        proposal = world.propose(f"Batch {number}.")["proposal_id"]
        digest = world.shown(proposal)["content_digest"]
        rows.append({"proposal_id": proposal, "decision": "approve", "content_digest": digest})

    def broken(texts: Any) -> Any:
        raise EmbeddingUnavailable("broken")

    before = counts(world)
    monkeypatch.setattr(world.embedder, "embed", broken, raising=False)
    assert (
        world.call(REVIEWER, "POST", "/v1/proposals/decide", {"rows": rows}, key="b").code
        == "embedding_unavailable"
    )
    assert changed(before, counts(world)) == {}
    monkeypatch.undo()
    reply = world.call(REVIEWER, "POST", "/v1/proposals/decide", {"rows": rows}, key="b")
    assert [row["outcome"] for row in reply.json["rows"]] == ["done", "done"]


class NoKeys:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def mac(self, purpose: str, tenant: Any, message: bytes) -> bytes:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [(SettingsError("no key"), "configuration_invalid"), (RuntimeError(CANARY), "internal_failure")],
)
def test_without_the_keys_nothing_is_decided_or_erased(world: World, error: Exception, code: str) -> None:
    memory = world.ingest(f"Kept without the key, {code}.")["memory_id"]
    proposal = world.propose(f"Not decided without the key, {code}.")["proposal_id"]
    digest = world.shown(proposal)["content_digest"]
    before = counts(world)
    for function in ("approve", "purge"):
        world._open[function] = replace(world.services(function), macs=NoKeys(error))
    with logged() as log:
        decided = world.call(
            REVIEWER, "POST", f"/v1/proposals/{proposal}/approve", {"content_digest": digest}
        )
        purge = {"memory_ids": [memory], "dry_run": False, "reason": "other"}
        erased = world.call(ADMIN, "POST", "/v1/purge", purge, signed=True)
    assert decided.code == erased.code == code
    assert CANARY not in decided.text + erased.text + log.getvalue()
    assert changed(before, counts(world)) == {}


@pytest.mark.parametrize("skew", [timedelta(days=-400), timedelta(days=400)])
def test_a_clock_that_is_far_off_breaks_no_chain(world: World, skew: timedelta) -> None:
    world.ingest(f"Before the clock went wrong by {skew}.")
    world.close()
    # The function's clock alone: the database keeps its own.
    for function in ("ingest", "proposal", "approve", "purge"):
        world._open[function] = replace(world.services(function), clock=lambda: datetime.now(UTC) + skew)
    memory = world.ingest(f"While it was wrong by {skew}.")["memory_id"]
    approved = world.approve(world.propose(f"Decided meanwhile, {skew}.")["proposal_id"])
    assert approved.status == 200, approved.text
    purge = {"memory_ids": [memory], "dry_run": False, "reason": "other"}
    assert world.call(ADMIN, "POST", "/v1/purge", purge, signed=True).status == 200
    verified = world.call(AUDITOR, "GET", "/v1/audit/verify").json
    assert verified["ok"] is True
    times = [event["at"] for event in world.audit()]
    assert times == sorted(times, reverse=True)
    assert world.call(READER, "GET", f"/v1/memories/{approved.json['memory_id']}").status == 200
