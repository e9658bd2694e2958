"""The graph under repetition, correction and hostile input; what the text itself says when the caller is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.admission.conftest import markdown, reached
from tests.integration.probe import counts
from tests.integration.world import AGENT, OTHER_AGENT, Reply, World, new_world


def ingest(world: World, content: str, **more: Any) -> Reply:
    return world.call(AGENT, "POST", "/v1/ingest", {"content": content, **more})


def edges(world: World, subject: str) -> list[dict[str, Any]]:
    return world.sql(
        "select r.*, o.name as object from relationship r"
        " join entity_name s on s.entity_id = r.subject_id and s.canonical"
        " left join entity_name o on o.entity_id = r.object_id and o.canonical where s.name = %s"
        " order by r.relationship_id, r.version",
        subject,
    )


def test_an_unchanged_window_is_a_no_op_and_a_changed_one_a_correction(world: World) -> None:
    relation = {
        "subject": "Quill",
        "predicate": "rents",
        "object": "Loft",
        "valid_from": "2020-01-01T00:00:00Z",
    }
    ingest(world, "Quill rents the loft.", relations=[relation])
    ingest(world, "Quill still rents the loft.", relations=[relation])
    assert [e["version"] for e in edges(world, "Quill")] == [1]
    ingest(
        world,
        "Quill rents the loft since 2019.",
        relations=[{**relation, "valid_from": "2019-01-01T00:00:00Z"}],
    )
    old, new = edges(world, "Quill")
    assert (old["version"], new["version"]) == (1, 2)
    # The old belief closes at exactly the instant at which the new one opens, and stays verbatim.
    assert old["superseded_at"] == new["created_at"] and old["valid_from"].year == 2020
    assert new["superseded_at"] is None and new["valid_from"].year == 2019


def test_the_graph_is_read_as_of_the_asked_times(world: World) -> None:
    relation = {"subject": "Wanda", "predicate": "works_at"}
    acme = {**relation, "object": "Acmeworks", "valid_from": "2019-01-01T00:00:00Z"}
    first = ingest(
        world, "Wanda joined Acmeworks.", relations=[acme], entities=[{"name": "Wanda", "kind": "person"}]
    )
    assert first.status == 201, first.text
    known = world.call(AGENT, "GET", f"/v1/memories/{first.json['memory_id']}").json["created_at"]
    corrected = {**acme, "valid_to": "2024-01-01T00:00:00Z"}
    globex = {**relation, "object": "Globexia", "valid_from": "2024-01-01T00:00:00Z"}
    assert ingest(world, "Wanda changed to Globexia.", relations=[corrected, globex]).status == 201
    [found] = world.call(AGENT, "GET", "/v1/entities?name=wanda").json["entities"]

    def employers(query: str = "") -> list[str]:
        reply = world.call(AGENT, "GET", f"/v1/entities/{found['entity_id']}{query}")
        assert reply.status == 200, reply.text
        return [edge["object"] for edge in reply.json["relationships"]]

    assert employers() == ["Globexia"]
    assert employers("?at=2023-12-31T23:59:59.999999Z") == ["Acmeworks"]
    assert employers("?at=2024-01-01T00:00:00Z") == ["Globexia"]
    assert employers("?at=2018-01-01T00:00:00Z") == []
    # As it was known before the correction: one employer without an end.
    assert (
        employers(f"?known_at={known}")
        == employers(f"?known_at={known}&at=2020-01-01T00:00:00Z")
        == ["Acmeworks"]
    )
    before = "2001-01-01T00:00:00Z"
    assert (
        world.call(AGENT, "GET", f"/v1/entities/{found['entity_id']}?known_at={before}").code == "not_found"
    )
    assert world.call(AGENT, "GET", f"/v1/entities?name=wanda&known_at={before}").json["entities"] == []


def test_relations_to_oneself_and_cycles_are_stored_as_said(world: World) -> None:
    ring = [("Ra", "Rb"), ("Rb", "Rc"), ("Rc", "Ra"), ("Ra", "Ra")]
    relations = [{"subject": a, "predicate": "follows", "object": b} for a, b in ring]
    ring_id = ingest(world, "A ring of followers.", relations=relations).json["memory_id"]
    assert [(e["object"]) for e in edges(world, "Ra")] == ["Rb", "Ra"]
    assert ring_id in reached(world, "A ring of followers")


@pytest.mark.parametrize(
    "relations",
    [
        [{"subject": "S", "predicate": "p", "object": "O", "valid_from": "2024-01-01T00:00:00Z",
          "valid_to": "2023-01-01T00:00:00Z"}],
        [{"subject": "S", "predicate": "p", "object": "O"}] * 201,
        [{"subject": "S", "predicate": "P p", "object": "O"}],
        [{"subject": "\u200b", "predicate": "p", "object": "O"}],
        [{"subject": "S", "predicate": "p"}],
        [{"subject": "S", "predicate": "p", "object": "O", "value": {"type": "string", "value": "v"}}],
    ],
    ids=["window", "201", "predicate", "invisible", "no-object", "two-objects"],
)  # fmt: skip
def test_a_bad_relation_stores_nothing(world: World, relations: list[dict[str, Any]]) -> None:
    before = counts(world)
    reply = ingest(world, "Bad relation.", relations=relations)
    assert (reply.status, reply.code) == (422, "invalid_input")
    assert counts(world) == before


def test_the_spellings_of_a_name_are_one_entity(world: World) -> None:
    spellings = [
        "İstanbul Café",
        "istanbul cafe\u0301",
        "ＩＳＴＡＮＢＵＬ ＣＡＦÉ",
        "Istanbul  Café",
        "ıstanbul café",
    ]
    for number, name in enumerate(spellings):
        reply = ingest(world, f"Spelling {number}.", entities=[{"name": name, "kind": "place"}])
        assert reply.status == 201, reply.text
    rows = world.sql("select distinct entity_id from entity_name where name = any (%s)", spellings)
    assert len(rows) == 1


def test_a_name_without_a_kind_is_no_second_entity(world: World) -> None:
    ingest(world, "One.", entities=[{"name": "Sofia Ek", "kind": "person"}])
    ingest(world, "Two.", entities=[{"name": "Sofia Ek"}])
    ingest(world, "Three.", relations=[{"subject": "Sofia Ek", "predicate": "likes", "object": "Tea"}])
    ingest(world, "Four.", entities=[{"name": "Sofia Ek", "kind": "place"}])
    rows = world.sql(
        "select e.kind from entity_name n join entity e using (tenant_id, entity_id)"
        " where n.name = 'Sofia Ek'"
    )
    assert sorted(row["kind"] for row in rows) == ["person", "place"]


def test_the_linker_speaks_when_the_caller_does_not(world: World) -> None:
    reply = ingest(world, "Tilda works at Vandelay.")
    assert reply.status == 201 and len(reply.json["relationship_ids"]) >= 1
    assert "Vandelay" in [e["object"] for e in edges(world, "Tilda")]
    silent = ingest(world, "Tilda works at Kruger.", entities=[{"name": "Tilda", "kind": "person"}])
    assert silent.json["relationship_ids"] == []
    wiki = markdown(world, "# Umbra\n\n[[part_of::Penumbra]]\n")
    assert wiki.status == 201
    assert [(e["predicate_key"], e["object"]) for e in edges(world, "Umbra")] == [("part_of", "Penumbra")]


@pytest.mark.parametrize(
    ("text", "relation", "window"),
    [
        ("Ulf has worked at Initech since 2020.", {}, (2020, None)),
        ("Ulf worked at Initech from 2015 to 2018.", {}, (2015, 2018)),
        ("Ulf no longer works at Initech since 2020.", {}, (None, 2020)),
        ("Ulf pays invoice total 1234 in Berlin.", {}, (None, None)),
        ("Ulf has worked at Initech since 2020.", {"valid_from": "2001-01-01T00:00:00Z"}, (2001, None)),
    ],
)
def test_a_window_is_read_from_the_text_unless_the_caller_gives_one(
    world: World, text: str, relation: dict[str, Any], window: tuple[int | None, int | None]
) -> None:
    name = f"Ulf {abs(hash((text, bool(relation)))) % 10**6}"
    edge = {"subject": name, "predicate": "works_at", "object": "Initech", **relation}
    assert ingest(world, text.replace("Ulf", name.replace(" ", "")), relations=[edge]).status == 201
    [row] = edges(world, name)
    assert tuple(None if at is None else at.year for at in (row["valid_from"], row["valid_to"])) == window


def test_a_memory_takes_a_window_only_while_it_holds(world: World) -> None:
    now = ingest(world, "Vigo has lived in Lund since 2020.").json["memory_id"]
    past = ingest(world, "Vigo lived in Malmo from 2010 to 2015.").json["memory_id"]
    seen = world.call(AGENT, "GET", f"/v1/memories/{now}").json
    assert seen["valid_from"] == "2020-01-01T00:00:00Z" and seen["valid_to"] is None
    assert world.call(AGENT, "GET", f"/v1/memories/{now}?at=2015-01-01T00:00:00Z").status == 404
    # A sentence about the past stays findable today.
    assert world.call(AGENT, "GET", f"/v1/memories/{past}").json["valid_to"] is None


def test_a_duplicate_is_one_of_the_same_space_and_tenant(world: World, tmp_path: Path) -> None:
    """Whether a text is known elsewhere is not told."""
    text = "Xenia keeps bees on the roof."
    shared = world.ingest(text)["memory_id"]
    again = world.ingest(text, OTHER_AGENT)
    assert again["duplicate"] and again["memory_id"] == shared
    own = [world.ingest(text, person, target_space="private") for person in (AGENT, OTHER_AGENT)]
    assert [one["duplicate"] for one in own] == [False, False]
    assert len({shared, *(one["memory_id"] for one in own)}) == 3
    elsewhere = new_world(world.database, world.embedder, tmp_path, suffix="-bees", name="bees")
    try:
        assert elsewhere.ingest(text)["duplicate"] is False
    finally:
        elsewhere.close()


def test_a_megabyte_on_one_line_is_a_job_in_time(world: World) -> None:
    text = "wagtail " * 124_000
    reply = ingest(world, text[:1_000_000])
    assert reply.status == 202, reply.text
    assert markdown(world, "`" * 999_999).status in (201, 202)
    for path in ("/v1/ingest", "/v1/ingest/markdown", "/v1/ingest/memory"):
        long = world.call(AGENT, "POST", path, {"content": "x" * 1_000_001})
        assert (long.status, long.code) == (413, "input_budget_exceeded"), path
        assert long.json["errors"][0]["pointer"] == "/content"
