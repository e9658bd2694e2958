"""What a hostile review of recall found: each was wrong once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from remembrancer.domain import abstention
from remembrancer.domain.ids import parse_id
from tests.integration.world import READER, REVIEWER, World


@pytest.fixture(autouse=True)
def answer_always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """These tests are about what is found and shown, not about the decision."""
    monkeypatch.setattr(abstention, "THRESHOLD", 0.0)
    yield


def hold(world: World, memory_id: str) -> None:
    world.sql(
        "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
        " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
        " where memory_id = (%s)::uuid",
        str(parse_id("mem", memory_id)),
    )


def verify(world: World, claim: str, **more: Any) -> dict[str, Any]:
    reply = world.call(READER, "POST", "/v1/verify", {"claim": claim, **more})
    assert reply.status == 200, reply.text
    return dict(reply.json)


def texts(answer: dict[str, Any]) -> list[str]:
    return [hit["text"] for hit in answer["hits"]]


def test_an_alias_that_only_a_held_memory_brought_names_nobody(world: World) -> None:
    priya = {"name": "Priya", "kind": "person"}
    world.ingest(
        "She heads the team.",
        entities=[priya],
        relations=[{"subject": "Priya", "subject_kind": "person", "predicate": "leads", "object": "Halcyon"}],
    )
    held = world.ingest("Priya is Nightingale.", entities=[{**priya, "aliases": ["Nightingale"]}])
    path = "/v1/entities?name="
    assert world.call(READER, "GET", f"{path}Nightingale").json["entities"]
    hold(world, held["memory_id"])
    graph = [h["explain"]["legs"]["graph"] for h in world.recall("Nightingale", explain=True)["hits"]]
    assert graph == [0.0]
    assert world.call(READER, "GET", f"{path}Nightingale").json["entities"] == []
    [shown] = world.call(READER, "GET", f"{path}Priya").json["entities"]
    assert "Nightingale" not in json.dumps(shown)
    assert "Nightingale" not in world.call(READER, "GET", f"/v1/entities/{shown['entity_id']}").text


def test_a_match_shows_no_part_of_what_is_masked(world: World) -> None:
    text = "For questions contact john.smith@acme.example on weekdays or card 4111 1111 1111 1111 at night."
    memory = world.ingest(text)["memory_id"]
    for claim in ("contact acme", "card 1111"):
        [match] = verify(world, claim, memory_ids=[memory])["matches"]
        assert "smith" not in match["text"] and "4111" not in match["text"]
    [match] = verify(world, "For questions contact on weekdays", memory_ids=[memory])["matches"]
    assert match["text"] == "For questions contact [redacted:email] on weekdays"
