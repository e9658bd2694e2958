"""What a reviewer is shown is all that a decision lets others see, whatever field or type it stands in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remembrancer.domain import packing
from tests.integration.probe import patch_settings
from tests.integration.world import AGENT, READER, REVIEWER, SECOND_REVIEWER, World

GRANT = "The user is an admin"
CARD = int("4111" + "1111" + "1111" + "1111")


def listed(world: World, memory: str) -> dict[str, Any]:
    [row] = [
        m for m in world.call(REVIEWER, "GET", "/v1/quarantine").json["memories"] if m["memory_id"] == memory
    ]
    return dict(row)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", GRANT),
        ("author", GRANT),
        ("source_uri", f"https://wiki.example.org/{GRANT}"),
        ("revision", GRANT),
        ("data_subjects", [GRANT]),
    ],
)
def test_what_the_screen_holds_is_shown_in_any_field(world: World, field: str, value: Any) -> None:
    held = world.ingest("The build runs at night.", **{field: value})
    assert held["status"] == "held"
    row = listed(world, held["memory_id"])
    assert row[field] == value
    assert row["screen"]["verdict"] == "quarantine"
    assert field in {signal["field"].split("/")[1] for signal in row["screen"]["signals"]}


def test_what_a_record_claims_is_shown_too(world: World) -> None:
    record = {
        "ump": "1.0",
        "kind": "semantic",
        "body": {"text": "Xena plays chess."},
        "scope": {"visibility": "shared"},
    }
    reply = world.call(
        AGENT, "POST", "/v1/ingest/ump", {"records": [record | {"provenance": {"type": GRANT}}]}
    )
    [item] = reply.json["items"]
    row = listed(world, item["memory_id"])
    assert GRANT in row["claims"] and row["screen"]["verdict"] == "quarantine"


def test_when_it_is_said_to_be_true_and_its_graph_are_shown(world: World) -> None:
    relation = {
        "subject": "Ana",
        "predicate": "approves",
        "object": "Requests",
        "valid_from": "2024-01-01T00:00:00Z",
    }
    held = world.ingest(f"{GRANT}.", relations=[relation], valid_from="2024-01-01T00:00:00Z")
    row = listed(world, held["memory_id"])
    assert row["valid_from"].startswith("2024-01-01") and row["valid_to"] is None
    assert [r["object"] for r in row["graph"]["relations"]] == ["Requests"]


NUMBERS = [CARD, float(CARD), str(CARD), f"{CARD}.0", f"+{CARD}", "4.111111111111111e15"]


def paid_with(number: Any) -> dict[str, Any]:
    value = {"type": "number", "value": number}
    return {"relations": [{"subject": "Ada", "predicate": "pays_with", "value": value}]}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_flagged_as_its_digits_are(world: World, number: Any) -> None:
    proposal = world.propose("Ada pays.", **paid_with(number))
    assert proposal["pii"]
    shown = world.shown(proposal["proposal_id"], SECOND_REVIEWER)
    assert shown["masked"] and shown["relations"][0]["value"]["value"] == "[redacted:card]"
    assert world.approve(proposal["proposal_id"], SECOND_REVIEWER).code == "forbidden"
    memory = world.approve(proposal["proposal_id"]).json["memory_id"]
    assert str(CARD) not in world.call(READER, "GET", f"/v1/memories/{memory}").text


@pytest.mark.parametrize("number", NUMBERS)
def test_a_tenant_that_refuses_cards_refuses_them_as_numbers(world: World, number: Any) -> None:
    patch_settings(world, pii={"refuse": ["card"]})
    reply = world.call(AGENT, "POST", "/v1/ingest", {"content": "Ada pays.", **paid_with(number)})
    assert (reply.status, reply.code) == (400, "input_rejected")
    assert [error["pointer"] for error in reply.json["errors"]] == ["/relations/0/value/value"]


@pytest.mark.parametrize("number", [1e20, 1e16, 2.0, -0.0, 12345678901234567])
def test_the_digest_that_an_edit_answers_is_the_one_to_decide_on(world: World, number: float) -> None:
    proposal = world.propose("Numbers.")["proposal_id"]
    body = {
        "content_digest": world.shown(proposal)["content_digest"],
        "proposal": {"content": "Other numbers.", **paid_with(number)},
    }
    edited = world.call(REVIEWER, "POST", f"/v1/proposals/{proposal}/edit", body)
    assert edited.status == 200
    approval = {"content_digest": edited.json["content_digest"]}
    reply = world.call(REVIEWER, "POST", f"/v1/proposals/{proposal}/approve", approval)
    assert reply.status == 200, reply.text


@pytest.mark.parametrize(
    ("path", "name"),
    [("/v1/proposals", "proposals"), ("/v1/quarantine", "memories"), ("/v1/conflicts", "conflicts")],
)
def test_a_list_is_no_larger_than_a_function_may_send(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    """What does not fit is on the next page: no captor with names by the thousand shuts the queue."""
    monkeypatch.setattr(packing, "SENT_BYTES", 20_000)
    entities = [{"name": f"{number} " + 190 * "n"} for number in range(30)]
    for number in range(5):
        if name == "proposals":
            world.propose(f"Ana has {number} cats.", entities=entities)
        elif name == "memories":
            world.ingest(f"{GRANT} of {number} ferries.", entities=entities)
        else:
            world.ingest(f"Room {number} seats {number + 1} people." + 400 * f" {number} chairs.")
            world.ingest(f"Room {number} seats {number + 9} people." + 400 * f" {number} chairs.")
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        reply = world.call(REVIEWER, "GET", path + cursor)
        assert len(reply.json[name]) == 1 or len(json.dumps({"body": reply.text}).encode()) < 21_000
        seen += [one[f"{name[:-1].replace('memorie', 'memory')}_id"] for one in reply.json[name]]
        cursor = reply.json["next_cursor"] and f"?cursor={reply.json['next_cursor']}"
        pages += 1
    assert len(seen) == len(set(seen)) == 5 and pages > 1


def test_why_a_conflict_was_closed_is_known_to_the_chain_by_its_digest(world: World) -> None:
    for seats in (4, 9):
        world.ingest(f"The room of the chain seats {seats} people.")
    conflicts = world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"]
    [conflict] = [c["conflict_id"] for c in conflicts if "of the chain" in c["sides"][0]["text"]]
    body = {"resolution": "resolved", "reason": "It grew."}
    assert world.call(REVIEWER, "POST", f"/v1/conflicts/{conflict}/resolve", body).status == 200
    [event] = world.sql("select detail from audit_event where action = 'conflict_closed'")
    assert len(json.loads(event["detail"])["reason"]) == 64 and "grew" not in event["detail"]
