"""Faults that a second independent reviewer found on the paths of direct admission."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.admission.conftest import Bucket
from tests.integration.world import AGENT, REVIEWER, World


def test_renewing_a_decayed_memory_makes_no_second_live_copy(world: World) -> None:
    old = world.ingest("Zelda keeps bees.", expires_at="2020-01-01T00:00:00Z")["memory_id"]
    new = world.ingest("Zelda keeps bees.")["memory_id"]
    assert old != new
    renewed = world.call(AGENT, "POST", f"/v1/memories/{old}/renew", {"version": 1})
    assert (renewed.status, renewed.code) == (422, "invalid_target"), renewed.text
    assert world.ingest("Zelda keeps bees.")["memory_id"] == new
    assert world.call(AGENT, "POST", f"/v1/memories/{new}/renew", {"version": 1}).status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ingest/ump", {"records": [{"body": {"text": "x"}}] * 5_001}),
        ("/v1/ingest/memory", {"content": "".join(f"## [{n}]\nb{n}\n" for n in range(5_001))}),
        ("/v1/ingest/markdown", {"content": "".join(f"# {n}\nb{n}\n" for n in range(5_001))}),
    ],
)
def test_more_records_than_an_import_takes_are_one_answer(
    world: World, path: str, body: dict[str, Any]
) -> None:
    reply = world.call(AGENT, "POST", path, body)
    assert (reply.status, reply.code) == (413, "input_budget_exceeded"), reply.text[:300]


def test_a_writer_that_began_earlier_and_waited_closes_nothing_before_it_was_opened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version opens where the one before it closes, whatever the order of the transactions' beginnings."""
    said = {"subject": "Ulla", "predicate": "works_at", "object": "Quay"}
    ids = set()
    for n, behind in enumerate((0, 5, 10, 2)):
        instant = datetime.now(UTC) - timedelta(seconds=behind)
        monkeypatch.setattr(world.services("ingest").database, "_clock", lambda instant=instant: instant)
        made = world.ingest(
            f"Ulla is at the quay, {n}.", relations=[{**said, "valid_from": f"20{10 + n}-01-01T00:00:00Z"}]
        )
        ids |= set(made["relationship_ids"])
    [relationship] = ids
    versions = world.call(AGENT, "GET", f"/v1/relationships/{relationship}/history").json["versions"]
    opened = [version["created_at"] for version in versions]
    assert opened == sorted(opened)
    assert [version["superseded_at"] for version in versions] == [*opened[1:], None]


def test_a_merge_is_known_from_when_it_was_made(world: World) -> None:
    """As of before it both are apart, with their own names; as of after it there is one, as there is now."""
    for name in ("Mergo", "Mergus"):
        world.ingest(
            f"{name} is here.",
            entities=[{"name": name, "kind": "person"}],
            relations=[{"subject": name, "predicate": "knows", "object": "Kunz"}],
        )
    ids = {name: named(world, name)[0]["entity_id"] for name in ("Mergo", "Mergus")}
    before = instant(world)
    body = {"into": ids["Mergus"]}
    assert world.call(REVIEWER, "POST", f"/v1/entities/{ids['Mergo']}/merge", body).status == 200
    after = instant(world)
    for name in ("Mergo", "Mergus"):
        [entity] = named(world, name, f"&known_at={before}")
        assert (entity["entity_id"], entity["name"], entity["aliases"]) == (ids[name], name, [])
        now = world.call(AGENT, "GET", f"/v1/entities/{ids[name]}").json
        assert now["aliases"] == ["Mergo"] and len(now["relationships"]) == 1
        assert named(world, name, f"&known_at={after}") == named(world, name)
        assert world.call(AGENT, "GET", f"/v1/entities/{ids[name]}?known_at={after}").json == now


def test_entities_that_nobody_may_look_at_are_not_said_to_look_alike(world: World) -> None:
    first = world.ingest("Look one.", entities=[{"name": "Lookalikery", "kind": "person"}])["memory_id"]
    world.ingest("Look two.", entities=[{"name": "Lookalikerys", "kind": "person"}])
    [entity] = named(world, "Lookalikery")
    assert entity["entity_id"] in world.call(REVIEWER, "GET", "/v1/consistency").text
    assert world.call(AGENT, "POST", f"/v1/memories/{first}/retract", {"version": 1}).status == 200
    assert world.call(REVIEWER, "GET", f"/v1/entities/{entity['entity_id']}").status == 404
    assert entity["entity_id"] not in world.call(REVIEWER, "GET", "/v1/consistency").text


def test_what_its_consent_forbids_to_export_is_in_no_bundle(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]]
) -> None:
    """SPEC.md of UMP, section 2.7."""
    record = {
        "body": {"text": "Kept at home."},
        "scope": {"visibility": "shared"},
        "consent": {"exportable": False},
    }
    sent = {"records": [record], "domain": "consented"}
    assert world.call(AGENT, "POST", "/v1/ingest/ump", sent).status == 201
    asked = world.call(REVIEWER, "POST", "/v1/export", {"format": "ump", "domains": ["consented"]})
    job = run_job(asked.json["job_id"], REVIEWER)
    assert (job["status"], job["result"]["records"], job["result"]["withheld"]) == ("done", 0, 1)
    assert [json.loads(line) for line in bucket.objects.popitem()[1].decode().splitlines()] == []


def named(world: World, name: str, query: str = "") -> list[dict[str, Any]]:
    return list(world.call(AGENT, "GET", f"/v1/entities?name={name}{query}").json["entities"])


def instant(world: World) -> str:
    [row] = world.sql("select clock_timestamp() as now")
    return str(row["now"].astimezone(UTC).isoformat().replace("+00:00", "Z"))
