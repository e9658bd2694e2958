"""Faults that an independent reviewer found on the paths of direct admission."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.admission.conftest import Bucket, markdown, step
from tests.integration.world import AGENT, OTHER_AGENT, REVIEWER, World


def exported(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]], domain: str
) -> list[dict[str, Any]]:
    asked = world.call(REVIEWER, "POST", "/v1/export", {"format": "ump", "domains": [domain]})
    job = run_job(asked.json["job_id"], REVIEWER)
    assert job["status"] == "done", job
    return [json.loads(line) for line in bucket.objects.popitem()[1].decode().splitlines()]


def test_a_memory_with_more_names_than_a_request_may_list_is_exported(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]]
) -> None:
    relations = [{"subject": f"S{n}", "predicate": "knows", "object": f"O{n}"} for n in range(200)]
    world.ingest("Everybody knows somebody.", domain="crowd", relations=relations)
    records = exported(world, bucket, run_job, "crowd")
    said = [relation for record in records for relation in record["body"]["structured"].get("relations", [])]
    assert len(said) == 200
    again = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records})
    assert again.status == 200 and again.json["refused"] == [], again.text


def test_a_text_sent_with_ever_new_relations_is_exported(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]]
) -> None:
    for start in (0, 150):
        relations = [
            {"subject": "Hub", "predicate": "knows", "object": f"Spoke{start + n}"} for n in range(150)
        ]
        world.ingest("The hub knows its spokes.", domain="wheel", relations=relations)
    records = exported(world, bucket, run_job, "wheel")
    said = [relation for record in records for relation in record["body"]["structured"].get("relations", [])]
    assert len(said) == 300 and {record["body"]["text"] for record in records} == {
        "The hub knows its spokes."
    }


def test_an_alias_of_the_same_request_is_the_entity_it_names(world: World) -> None:
    world.ingest(
        "Roberta, called Bobbie, leads Quill.",
        entities=[{"name": "Roberta", "kind": "person", "aliases": ["Bobbie"]}],
        relations=[{"subject": "Bobbie", "predicate": "leads", "object": "Quill"}],
    )
    found = world.call(AGENT, "GET", "/v1/entities?name=Bobbie").json["entities"]
    assert [entity["name"] for entity in found] == ["Roberta"]


def test_a_markdown_import_of_a_source_that_was_sent_as_one_text(world: World) -> None:
    world.ingest("Loose page.", source="markdown", source_uri="loose.md", revision="1")
    reply = markdown(world, "# Loose\n\nPage.\n", source_uri="loose.md", revision="2")
    assert reply.status == 201, reply.text


def test_what_is_read_from_a_denial_does_not_date_a_denied_relation(world: World) -> None:
    made = world.ingest(
        "Nora is no longer at Fjordbank since 2020.",
        relations=[{"subject": "Nora", "predicate": "works_at", "object": "Fjordbank", "polarity": "-"}],
    )
    history = world.call(AGENT, "GET", f"/v1/relationships/{made['relationship_ids'][0]}/history").json
    assert history["versions"][0]["valid_to"] is None, history


def test_an_announced_end_does_not_hide_the_text_when_it_comes_true(world: World) -> None:
    made = world.ingest("Nils is no longer at Fjordbank as of 2031.")
    [row] = world.sql(
        "select valid_to from memory_version where memory_id = %s", made["memory_id"].partition("_")[2]
    )
    assert row["valid_to"] is None


def test_a_memory_of_another_time_is_in_the_bundle(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]]
) -> None:
    world.ingest("The tram cost one crown.", domain="prices", valid_to="2015-01-01T00:00:00Z")
    assert len(exported(world, bucket, run_job, "prices")) == 1


def test_undoing_a_retraction_does_not_make_a_second_live_copy(world: World) -> None:
    made = world.ingest("Petra keeps newts.")
    path = f"/v1/memories/{made['memory_id']}/retract"
    assert world.call(AGENT, "POST", path, {"version": 1}).status == 200
    again = world.ingest("Petra keeps newts.")
    assert not again["duplicate"]
    undone = world.call(AGENT, "POST", path, {"version": 1, "undo": True})
    assert (undone.status, undone.code) == (422, "invalid_target"), undone.text
    live = world.sql(
        "select count(*) as n from memory m join memory_version v using (tenant_id, memory_id)"
        " where content = 'Petra keeps newts.' and v.superseded_at is null"
    )
    assert live[0]["n"] == 1, undone.text
    third = world.ingest("Petra keeps newts.")
    assert third["duplicate"]


@pytest.mark.parametrize("filed", [0, 1])
def test_undoing_a_retraction_does_not_either_where_the_domain_was_said_once_and_found_once(
    world: World, filed: int
) -> None:
    text, domain = f"Petra feeds newts, {filed}.", f"newts-{filed}"
    said: list[dict[str, str]] = [{"domain": domain}, {"domain": domain}]
    said[filed] = {}

    def send(more: dict[str, str]) -> str:
        made = world.ingest(text, **more)
        assert not made["duplicate"]
        memory = str(made["memory_id"])
        # As if its nearest centroid had been this domain's.
        world.sql("update memory set domain = %s where memory_id = %s", domain, memory.partition("_")[2])
        return memory

    path = f"/v1/memories/{send(said[0])}/retract"
    assert world.call(AGENT, "POST", path, {"version": 1}).status == 200
    again = send(said[1])
    undone = world.call(AGENT, "POST", path, {"version": 1, "undo": True})
    assert (undone.status, undone.code) == (422, "invalid_target"), undone.text
    world.sql("update memory set domain = 'other' where memory_id = %s", again.partition("_")[2])
    if said[
        1
    ]:  # filed elsewhere it is another memory; sent without a domain it is this one wherever it was filed
        assert world.call(AGENT, "POST", path, {"version": 1, "undo": True}).status == 200


def test_a_relation_is_dated_by_the_sentence_that_names_it(world: World) -> None:
    made = world.ingest(
        "Ylvi is CEO of Brim. Ove was CFO of Brim in 2012.",
        relations=[
            {"subject": "Ylvi", "predicate": "ceo_of", "object": "Brim"},
            {"subject": "Ove", "predicate": "cfo_of", "object": "Brim"},
        ],
    )
    windows = [
        world.call(AGENT, "GET", f"/v1/relationships/{relationship}/history").json["versions"][0]
        for relationship in made["relationship_ids"]
    ]
    assert [window["valid_to"] for window in windows] == [None, "2013-01-01T00:00:00Z"]


def test_a_text_does_not_end_with_one_of_its_statements(world: World) -> None:
    made = world.ingest("Ebba keeps hens. The permit of the mill is valid until 2031.")
    [row] = world.sql(
        "select valid_to from memory_version where memory_id = %s", made["memory_id"].partition("_")[2]
    )
    assert row["valid_to"] is None


def test_a_job_whose_principal_no_longer_sees_the_space_is_not_done(world: World) -> None:
    """It said done with no item, and the staged text stayed where nobody empties it."""
    text = "\n\n".join(f"# H{n}\n\nRevoked {n}" for n in range(70))
    job = markdown(world, text, person=OTHER_AGENT, source_uri="revoked.md", revision="1").json["job_id"]
    world.sql("update principal set team_grant = 'none' where name = %s", OTHER_AGENT.name)
    try:
        event: dict[str, Any] = {"tenant_id": world.tenant_id, "job_id": job.partition("_")[2], "more": True}
        while event["more"]:
            event |= step(world, event)
        seen = world.call(OTHER_AGENT, "GET", f"/v1/jobs/{job}").json
        assert (seen["status"], seen["failure"]) == ("failed", "forbidden")
        assert world.sql("select from job_item where job_id = %s", job.partition("_")[2]) == []
    finally:
        world.sql("update principal set team_grant = 'write' where name = %s", OTHER_AGENT.name)


@pytest.mark.parametrize("observed", [{}, {"observed_at": "2024-06-01T00:00:00Z"}])
@pytest.mark.parametrize("said", ["no longer works", "has not worked"])
def test_who_left_is_not_said_to_be_there(world: World, said: str, observed: dict[str, str]) -> None:
    """Read by the linker from a text of unknown age, the end was lost and the relation held today."""
    name = f"Birk{len(said)}{len(observed)}"
    made = world.ingest(f"{name} {said} at Skagen since 2020.", **observed)
    for relationship in made["relationship_ids"]:
        [version] = world.call(AGENT, "GET", f"/v1/relationships/{relationship}/history").json["versions"]
        assert version["polarity"] == "-" or version["valid_to"] == "2020-01-01T00:00:00Z", version


def test_undoing_a_retraction_opens_its_conflict_again(world: World) -> None:
    world.ingest("Sindre's office is in Bergen.", domain="offices")
    second = world.ingest("Sindre's office is in Tromso.", domain="offices")
    assert second["conflict"] is not None
    path = f"/v1/memories/{second['memory_id']}/retract"
    assert world.call(AGENT, "POST", path, {"version": 1}).status == 200
    assert world.call(AGENT, "POST", path, {"version": 1, "undo": True}).status == 200
    found = world.call(REVIEWER, "GET", "/v1/conflicts").text
    assert second["memory_id"] in found


def test_a_statement_without_a_date_does_not_undo_one_with_a_date(world: World) -> None:
    """Both by the linker: nobody said that the start was wrong."""
    world.ingest("Runa has worked at Skagen since 2019.")
    assert len(edges(world, "Runa", "?at=2010-01-01T00:00:00Z")) == 0
    world.ingest("Runa works at Skagen.")
    assert len(edges(world, "Runa")) == 1
    assert len(edges(world, "Runa", "?at=2010-01-01T00:00:00Z")) == 0
    # One that is over is no answer to who says so today.
    world.ingest("Tove worked at Skagen from 2010 to 2012.")
    world.ingest("Tove works at Skagen.")
    assert len(edges(world, "Tove")) == 1


def test_retracting_a_correction_leaves_what_another_memory_says(world: World) -> None:
    said = {"subject": "Quirin", "predicate": "works_at", "object": "Harbour"}
    world.ingest(
        "Quirin is at Harbour, says one.", relations=[{**said, "valid_from": "2020-01-01T00:00:00Z"}]
    )
    second = world.ingest(
        "Quirin is at Harbour, says two.", relations=[{**said, "valid_from": "2021-01-01T00:00:00Z"}]
    )
    path = f"/v1/memories/{second['memory_id']}/retract"
    assert world.call(AGENT, "POST", path, {"version": 1}).status == 200
    [left] = edges(world, "Quirin")
    assert left["valid_from"] == "2020-01-01T00:00:00Z"
    # And undone: it corrects again.
    assert world.call(AGENT, "POST", path, {"version": 1, "undo": True}).status == 200
    [back] = edges(world, "Quirin")
    assert back["valid_from"] == "2021-01-01T00:00:00Z"
    assert world.call(AGENT, "POST", path, {"version": 2}).status == 200
    [left] = edges(world, "Quirin")
    assert left["valid_from"] == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("said", [{}, {"valid_to": "2099-01-01T00:00:00Z"}])
def test_a_successor_comes_back_as_known(
    world: World, bucket: Bucket, run_job: Callable[..., dict[str, Any]], said: dict[str, str]
) -> None:
    domain = f"desks-{len(said)}"
    old = world.remember("Odin's desk is in room 4.", domain=domain)
    new = world.approve(
        world.propose("Odin's desk is in room 5.", domain=domain, **said)["proposal_id"],
        supersedes={"memory_id": old, "version": 1},
    )
    assert new.status == 200, new.text
    asked = world.call(REVIEWER, "POST", "/v1/export", {"format": "ump", "domains": [domain]})
    assert run_job(asked.json["job_id"], REVIEWER)["status"] == "done"
    records = [json.loads(line) for line in bucket.objects.popitem()[1].decode().splitlines()]
    again = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records})
    assert [item["status"] for item in again.json["items"]] == ["duplicate"] * len(records), again.text
    elsewhen = [
        {**record, "time": {**record["time"], "valid_from": "2020-01-01T00:00:00Z"}}
        for record in records[-1:]
    ]
    other = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": elsewhen})
    assert [item["status"] for item in other.json["items"]] == ["stored"], other.text


def edges(world: World, name: str, query: str = "") -> list[dict[str, Any]]:
    [entity] = world.call(AGENT, "GET", f"/v1/entities?name={name}").json["entities"]
    reply = world.call(AGENT, "GET", f"/v1/entities/{entity['entity_id']}{query}")
    return list(reply.json["relationships"]) if reply.status == 200 else []
