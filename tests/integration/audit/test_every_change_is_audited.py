"""Every transaction that left its mark on a table of record also appended to the audit chain.

A row carries the number of the transaction that wrote it last (`xmin`), an audit row the number of its own: whatever
flow made the change, the two must meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remembrancer.flows.sweep import sweep
from tests.integration.probe import QuickEmbedder, patch_settings, public_pem, routes, scratch_world
from tests.integration.samples import SAMPLES
from tests.integration.trust.erasing import done, dsar, purge, with_bucket, work
from tests.integration.trust.test_erasure_canary import plant
from tests.integration.world import (
    ADMIN,
    AGENT,
    AUDITOR,
    ISSUER,
    OTHER_AGENT,
    REVIEWER,
    World,
    find_route,
)

OPERATIONAL = {
    "idempotency", "nonce", "outbox", "rate_bucket", "job", "job_item", "job_passage", "erasure_item", "pii_read",
    "centroid", "term_stats", "space_stats", "audit_checkpoint", "audit_head", "audit_event", "schema_migration",
    "attempt", "attempt_vector", "checkpoint", "exchange", "report",
}  # fmt: skip
"""Leases, staged work, statistics and what the machines write for themselves; the chain's own tables."""
READING = {("POST", "/v1/recall"), ("POST", "/v1/verify")}
"""Requests with a body that change nothing."""
ERASING = ("/v1/purge", "/v1/dsar", "/v1/offboard")


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def unaudited(world: World) -> dict[str, int]:
    """Rows by table whose last transaction appended nothing."""
    tables = world.sql(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1"
    )
    found = {}
    for table in tables:
        name = table["relname"]
        if name in OPERATIONAL:
            continue
        [row] = world.sql(
            f'select count(*) as n from "{name}" t'
            " where not exists (select from audit_event e where e.xmin = t.xmin)"
        )
        if row["n"]:
            found[name] = row["n"]
    return found


def play(world: World) -> None:
    """Flows of every kind: captures, decisions, imports, curation, holds, erasure, requests, administration."""
    memories = plant(world)
    world.sql("delete from legal_hold")  # written by hand
    edge = {"subject": "Rob", "subject_kind": "person", "predicate": "rides", "object": "a bicycle"}
    kept = world.ingest("Rob rides a bicycle.", relations=[edge])["memory_id"]
    alias = world.ingest("Robert rides.", entities=[{"name": "Robert", "kind": "person"}])["memory_id"]
    body = {"version": 1, "expires_at": "2099-06-01T12:00:00Z"}
    done(world.call(AGENT, "POST", f"/v1/memories/{kept}/renew", body))
    entities = [
        world.call(REVIEWER, "GET", f"/v1/entities?name={name}").json["entities"][0]["entity_id"]
        for name in ("Robert", "Rob")
    ]
    merge = {"into": entities[1], "reason": "One person."}
    done(world.call(REVIEWER, "POST", f"/v1/entities/{entities[0]}/merge", merge))
    done(world.call(AGENT, "POST", f"/v1/memories/{alias}/retract", {"version": 1, "reason": "Never so."}))
    conflicts = world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"]
    for conflict in conflicts[:1]:
        path = f"/v1/conflicts/{conflict['conflict_id']}/resolve"
        done(world.call(REVIEWER, "POST", path, {"resolution": "dismissed", "reason": "Both hold."}))
    for path, content in (
        ("/v1/ingest/markdown", "# Heading\n\nMarkdown text.\n"),
        ("/v1/ingest/memory", "## [ 2024-05-01 ] Day\nA block of that day.\n"),
    ):
        done(world.call(AGENT, "POST", path, {"content": content, "source_uri": "notes/x.md", "revision": "1"}
                        if "markdown" in path else {"content": content}), 201)  # fmt: skip
    records = [{"body": {"text": "A record of a cup."}, "scope": {"visibility": "shared"}}]
    done(world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records}), 201)
    hold = {"memory_ids": [kept], "reason": "litigation", "case_reference": "case-7"}
    placed = done(world.call(ADMIN, "POST", "/v1/legal-holds", hold), 201)
    release = f"/v1/legal-holds/{placed['hold_id']}/release"
    done(world.call(ADMIN, "POST", release, {"reason": "case_closed"}, signed=True))
    patch_settings(world, four_eyes=True)
    retention = {"fact": 365, "episodic": 30, "procedure": 730, "step": 730, "decision": 700}
    done(world.call(ADMIN, "PUT", "/v1/retention", retention, signed=True))
    principal = {
        "name": "Nora",
        "kind": "human",
        "issuer": ISSUER,
        "subject": "nora",
        "capabilities": ["admin"],
    }
    nora = done(world.call(ADMIN, "POST", "/v1/principals", principal, signed=True), 201)["principal_id"]
    key = {"algorithm": "ed25519", "public_key": public_pem(Ed25519PrivateKey.generate())}
    done(world.call(ADMIN, "POST", f"/v1/principals/{nora}/keys", key, signed=True), 201)
    change = {
        "team_grant": "read",
        "add_credential": {"issuer": ISSUER, "subject": "nora-2"},
        "active": False,
    }
    done(world.call(ADMIN, "PATCH", f"/v1/principals/{nora}", change, signed=True))
    done(purge(world, memory_ids=memories))
    begun = done(dsar(world, action="both", owner=world.principals[OTHER_AGENT.name]), 202)
    work(world, begun["job_id"])
    done(dsar(world, action="register", data_subject="someone"), 201)
    decided = [world.propose(f"The door is {colour}.")["proposal_id"] for colour in ("red", "green")]
    rows = [
        {
            "proposal_id": one,
            "decision": way,
            "content_digest": world.shown(one)["content_digest"],
            "reason": "So.",
        }
        for one, way in zip(decided, ("approve", "reject"), strict=True)
    ]
    batch = done(world.call(REVIEWER, "POST", "/v1/proposals/decide", {"rows": rows}))
    assert {row["status"] for row in batch["rows"]} <= {"approved", "rejected"}, batch
    done(world.call(REVIEWER, "POST", "/v1/export", SAMPLES["POST /v1/export"]), 202)
    # Taken on, and called off before anybody works on it; tests/integration/attempts has what its work changes.
    world._open["remember"] = replace(world.services("remember"), start_attempt=lambda attempt_id: None)
    body = SAMPLES["POST /v1/remember"] | {"evidence": [{"content": "Rob owns a bicycle."}]}
    begun = done(world.call(AGENT, "POST", "/v1/remember", body), 202)
    done(world.call(AGENT, "POST", f"/v1/remember/{begun['attempt_id']}/cancel", {}))
    # What schedules change: a capture that nobody decided, a deadline of which somebody is told.
    world.propose("Nobody decides this.")
    world.sql("update proposal set deadline = now() - interval '1 day' where status = 'pending'")
    world.sql("update dsar set deadline = now() + interval '1 hour' where closed_at is null")
    sweep(world.services("sweep"))
    leave = {"tenant": "acme", "reason": "contract_ended", "dry_run": False}
    gone = done(world.call(ADMIN, "POST", "/v1/offboard", leave, signed=True), 202)
    work(world, gone["job_id"])


def test_no_transaction_changes_a_table_of_record_without_a_row_of_the_chain(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bucket(world)
    played: set[tuple[str, str]] = set()
    call = World.call

    def recorded(self: World, person: Any, method: str, path: str, *args: Any, **options: Any) -> Any:
        if path in ERASING:
            assert unaudited(self) == {}, "what goes is looked at before it is gone"
        reply = call(self, person, method, path, *args, **options)
        if reply.status < 300:
            played.add((method, find_route(method, path.partition("?")[0])[1]))
        return reply

    monkeypatch.setattr(World, "call", recorded)
    play(world)
    changing = {(route.method, route.path) for _, route in routes() if route.method != "GET"} - READING
    assert changing - played == set(), "a route that changes something is not played"
    assert unaudited(world) == {}
    assert done(world.call(AUDITOR, "GET", "/v1/audit/verify"))["ok"] is True
    # The search finds what it is for.
    world.sql("update principal set name = name")
    assert unaudited(world).keys() == {"principal"}


def test_a_write_that_audits_nothing_is_undone(world: World) -> None:
    memory = world.ingest("Stays as it is.")["memory_id"].removeprefix("mem_")

    def quiet(unit: Any) -> None:
        unit.run("update memory set screen_overridden = true where memory_id = %(id)s", {"id": memory})

    from tests.integration.probe import call_of

    with pytest.raises(RuntimeError, match="without an audit event"):
        world.services("approve").database.write(call_of(REVIEWER, "POST x").credential, quiet)
    assert world.sql("select screen_overridden as b from memory") == [{"b": False}]
