"""Verifying claims, and reading the graph."""

from __future__ import annotations

from typing import Any

import pytest

from remembrancer.flows import know
from tests.integration.world import AGENT, OTHER_AGENT, READER, World


def verify(world: World, claim: str, **more: Any) -> dict[str, Any]:
    reply = world.call(READER, "POST", "/v1/verify", {"claim": claim, **more})
    assert reply.status == 200, reply.text
    return dict(reply.json)


def test_support_with_spans_in_code_points(world: World) -> None:
    text = "😀 Maria moved to Lisbon in May 2024."
    memory = world.ingest(text)["memory_id"]
    found = verify(world, "maria moved to LISBON", memory_ids=[memory])
    assert found["verdict"] == "supported" and found["contradicted"] is False
    [match] = found["matches"]
    start, end = match["span"]
    assert text[start:end] == "Maria moved to Lisbon" and match["kind"] == "normalized"
    assert verify(world, "Maria moved to Lisbon")["verdict"] == "supported"
    assert verify(world, "Pigs fly over Lisbon at night")["verdict"] == "unsupported"


def test_the_graph_holds_the_opposite(world: World) -> None:
    world.ingest(
        "Ana works at Globex.",
        entities=[{"name": "Ana", "kind": "person"}],
        relations=[{"subject": "Ana", "predicate": "works_at", "object": "Globex"}],
    )
    opposed = verify(world, "Ana works at Initech.")
    assert opposed["contradicted"] is True
    assert opposed["contradictions"][0]["relationship"]["object"] == "Globex"
    assert opposed["contradictions"][0]["memory_ids"]
    agreed = verify(world, "Ana works at Globex.")
    assert (agreed["verdict"], agreed["contradicted"]) == ("supported", False)
    denied = verify(world, "Ana does not work at Globex.")
    assert denied["contradicted"] is True and denied["verdict"] != "supported"


def test_a_predicate_has_one_value_where_its_space_says_so(world: World) -> None:
    """The team's registry says nothing about a private statement."""
    for name, space in (("Ana", "private"), ("Ben", "team_shared")):
        world.ingest(
            f"{name} has a tool.",
            target_space=space,
            relations=[{"subject": name, "subject_kind": "person", "predicate": "tool", "object": "Slack"}],
        )
    world.sql(
        "update predicate p set cardinality = 'one' from space s"
        " where s.space_id = p.space_id and s.kind = 'team_shared'"
    )
    for name, contradicted in (("Ana", False), ("Ben", True)):
        answer = world.call(AGENT, "POST", "/v1/verify", {"claim": f"{name}'s tool is Zoom"}).json
        assert answer["contradicted"] is contradicted


def test_a_memory_that_may_not_be_seen_is_not_found(world: World) -> None:
    private = world.ingest("The private word is heliotrope.", target_space="private")["memory_id"]
    body = {"claim": "The private word is heliotrope.", "memory_ids": [private]}
    assert world.call(AGENT, "POST", "/v1/verify", body).json["verdict"] == "supported"
    assert world.call(OTHER_AGENT, "POST", "/v1/verify", body).status == 404
    assert world.call(OTHER_AGENT, "POST", "/v1/verify", {**body, "memory_ids": ["mem_x"]}).status == 404


def test_bad_claims(world: World) -> None:
    bodies: list[dict[str, Any]] = [
        {"claim": ""},
        {"claim": "x" * 2_001},
        {"claim": "x", "memory_ids": []},
        {"claim": "x", "memory_ids": ["mem_1"], "query": "y"},
    ]
    for body in bodies:
        assert world.call(READER, "POST", "/v1/verify", body).status == 422, body


def test_entities_relationships_and_predicates(world: World) -> None:
    made = world.ingest(
        "Ana Silva works at Globex.",
        entities=[{"name": "Ana Silva", "kind": "person", "aliases": ["Anita"]}],
        relations=[{"subject": "Ana Silva", "predicate": "works_at", "object": "Globex"}],
    )
    [found] = world.call(READER, "GET", "/v1/entities?name=ANITA").json["entities"]
    assert (found["name"], found["aliases"], found["kind"]) == ("Ana Silva", ["Anita"], "person")
    entity = world.call(READER, "GET", f"/v1/entities/{found['entity_id']}").json
    assert [edge["predicate"] for edge in entity["relationships"]] == ["works_at"]
    [relationship] = made["relationship_ids"]
    history = world.call(READER, "GET", f"/v1/relationships/{relationship}/history").json
    assert [version["version"] for version in history["versions"]] == [1]
    predicates = world.call(READER, "GET", "/v1/predicates").json["predicates"]
    assert {"works_at"} <= {predicate["predicate"] for predicate in predicates}


def test_relationships_that_are_left_out_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(know, "MAX_RELATIONSHIPS", 2)
    world.ingest(
        "Hub knows many.",
        relations=[{"subject": "Hub", "predicate": "knows", "object": f"P{n}"} for n in range(5)],
    )
    for name, shown in (("Hub", (2, 3)), ("P1", (1, 0))):
        [found] = world.call(READER, "GET", f"/v1/entities?name={name}").json["entities"]
        entity = world.call(READER, "GET", f"/v1/entities/{found['entity_id']}").json
        assert (len(entity["relationships"]), entity["omitted"]) == shown


def test_the_graph_of_a_private_space_is_its_owners_alone(world: World) -> None:
    made = world.ingest(
        "Zed knows Yan.",
        target_space="private",
        relations=[{"subject": "Zed", "predicate": "knows", "object": "Yan"}],
    )
    [mine] = world.call(AGENT, "GET", "/v1/entities?name=Zed").json["entities"]
    assert world.call(OTHER_AGENT, "GET", "/v1/entities?name=Zed").json["entities"] == []
    assert world.call(OTHER_AGENT, "GET", f"/v1/entities/{mine['entity_id']}").status == 404
    path = f"/v1/relationships/{made['relationship_ids'][0]}/history"
    assert world.call(AGENT, "GET", path).status == 200
    assert world.call(OTHER_AGENT, "GET", path).status == 404
    assert world.call(READER, "GET", "/v1/entities/ent_nonsense").status == 404
    assert world.call(READER, "GET", "/v1/entities").status == 422


def test_what_only_a_held_memory_supports_is_not_shown(world: World) -> None:
    made = world.ingest(
        "Zed knows Yan.", relations=[{"subject": "Zed", "predicate": "knows", "object": "Yan"}]
    )
    world.sql(
        "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
        " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
    )
    assert world.call(READER, "GET", "/v1/entities?name=Zed").json["entities"] == []
    path = f"/v1/relationships/{made['relationship_ids'][0]}/history"
    assert world.call(READER, "GET", path).status == 404
    assert verify(world, "Zed does not know Yan.")["contradicted"] is False
