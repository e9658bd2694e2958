"""The two time axes through the API: the example of the model, succession, correction, late arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.probe import QuickEmbedder, scratch_world
from tests.integration.world import AGENT, READER, REVIEWER, World

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("time")) as made:
        yield made
        made.clock = None


def at(world: World, instant: datetime) -> None:
    world.close()
    world.clock = lambda: instant


def text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def believed(world: World, memory: str, **axes: datetime) -> bool:
    query = "&".join(f"{name}={text(value)}" for name, value in axes.items())
    reply = world.call(READER, "GET", f"/v1/memories/{memory}?{query}")
    assert reply.status in (200, 404), reply.text
    return reply.status == 200


def recalled(world: World, question: str, *memories: str, **axes: datetime) -> list[str]:
    """Which of these memories the view holds, by recall: also what it is not sure enough of to answer with, for
    whether it is sure depends on cosines, and those of this embedder mean nothing."""
    view = {name: text(value) for name, value in axes.items()}
    answer = world.recall(question, limit=100, include=["nearest"], **view)
    found = [*answer["hits"], *answer.get("nearest", ())]
    return [hit["memory_id"] for hit in found if hit["memory_id"] in memories]


def test_acme_then_globex(world: World) -> None:
    year = {y: datetime(y, 6, 1, tzinfo=UTC) for y in (2018, 2020, 2025)}
    at(world, T0)
    acme = world.remember("Lena works at Acme.", valid_from="2019-01-01T00:00:00Z")
    change = T0 + timedelta(days=10)
    at(world, change)
    proposal = world.propose("Lena works at Globex.", valid_from="2024-01-01T00:00:00Z")["proposal_id"]
    reply = world.approve(proposal, supersedes={"memory_id": acme, "version": 1})
    assert reply.status == 200, reply.text
    globex = reply.json["memory_id"]
    at(world, change + timedelta(days=1))
    before = {"known_at": change - timedelta(seconds=1)}
    for axes, expected in (
        ({"at": year[2018]}, []),
        ({"at": year[2020]}, [acme]),
        ({"at": year[2025]}, [globex]),
        ({"at": year[2020], **before}, [acme]),
        ({"at": year[2025], **before}, [acme]),
        ({"at": year[2018], **before}, []),
        ({"at": year[2025], "known_at": change}, [globex]),
        ({"at": year[2020], "known_at": T0 - timedelta(seconds=1)}, []),
        ({}, [globex]),
    ):
        assert [m for m in (acme, globex) if believed(world, m, **axes)] == expected, axes
        assert recalled(world, "Where does Lena work?", acme, globex, **axes) == expected, axes
    history = world.call(READER, "GET", f"/v1/memories/{acme}/history").json["versions"]
    assert [(v["valid_from"], v["valid_to"]) for v in history] == [
        ("2019-01-01T00:00:00Z", None),
        ("2019-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    ]
    assert history[0]["superseded_at"] == history[1]["created_at"] == text(change)
    assert history[0]["superseded_by"] == globex
    mine = world.call(READER, "GET", f"/v1/memories/{globex}/history").json
    assert mine["supersedes"] == [acme] and mine["versions"][0]["valid_from"] == "2024-01-01T00:00:00Z"


def test_an_undated_successor_starts_when_it_is_decided(world: World) -> None:
    at(world, T0)
    old = world.remember("The shop is in Elm Street.")
    decided = T0 + timedelta(days=3)
    at(world, decided)
    proposal = world.propose("The shop is in Oak Street.")["proposal_id"]
    new = world.approve(proposal, supersedes={"memory_id": old, "version": 1}).json["memory_id"]
    instant = timedelta(microseconds=1)
    assert believed(world, old, at=decided - instant) and not believed(world, new, at=decided - instant)
    assert believed(world, new, at=decided) and not believed(world, old, at=decided)
    assert recalled(world, "Where is the shop?", old, new) == [new]


def test_a_successor_from_before_the_old_began_leaves_no_past(world: World) -> None:
    at(world, T0)
    old = world.remember("The pool is open.", valid_from="2025-05-01T00:00:00Z")
    at(world, T0 + timedelta(days=1))
    proposal = world.propose("The pool is closed.", valid_from="2025-01-01T00:00:00Z")["proposal_id"]
    reply = world.approve(proposal, supersedes={"memory_id": old, "version": 1})
    assert reply.status == 200
    for year in (2024, 2025, 2026):
        assert not believed(world, old, at=datetime(year, 6, 1, tzinfo=UTC))
    assert believed(world, old, at=datetime(2025, 6, 1, tzinfo=UTC), known_at=T0)
    history = world.call(READER, "GET", f"/v1/memories/{old}/history").json["versions"]
    assert len(history) == 1 and history[0]["superseded_by"] == reply.json["memory_id"]


def test_a_successor_whose_time_is_over_is_refused(world: World) -> None:
    at(world, T0)
    old = world.remember("The sale is on.")
    proposal = world.propose("The sale was off.", valid_to="2025-01-01T00:00:00Z")["proposal_id"]
    reply = world.approve(proposal, supersedes={"memory_id": old, "version": 1})
    assert (reply.status, reply.code) == (422, "invalid_input")
    assert world.shown(proposal)["status"] == "pending" and believed(world, old)


def edges(world: World, content: str, subject: str, **window: str) -> tuple[str, list[dict[str, Any]]]:
    relation = {"subject": subject, "predicate": "member_of", "object": "Choir", **window}
    reply = world.ingest(content, relations=[relation])
    rows = world.sql(
        "select version, valid_from, valid_to, superseded_at is null as current from relationship"
        " where relationship_id = %s order by version",
        reply["relationship_ids"][0].removeprefix("rel_"),
    )
    return reply["relationship_ids"][0], rows


def test_a_changed_window_that_overlaps_corrects_and_a_disjoint_one_coexists(world: World) -> None:
    at(world, T0)
    y = {n: f"{n}-01-01T00:00:00Z" for n in range(2010, 2030)}
    first, _ = edges(world, "Ida joined.", "Ida", valid_from=y[2019])
    same, rows = edges(world, "Ida joined, again.", "Ida", valid_from=y[2019])
    assert same == first and len(rows) == 1
    corrected, rows = edges(world, "Ida joined in 2018.", "Ida", valid_from=y[2018], valid_to=y[2020])
    assert corrected == first
    assert [(r["version"], r["current"]) for r in rows] == [(1, False), (2, True)]
    assert rows[0]["valid_from"] == datetime(2019, 1, 1, tzinfo=UTC) and rows[0]["valid_to"] is None
    later, _ = edges(world, "Ida came back.", "Ida", valid_from=y[2020], valid_to=y[2022])
    assert later != first
    # One window over both: one current version is left, and what was believed stays verbatim.
    whole, rows = edges(world, "Ida never left.", "Ida", valid_from=y[2017], valid_to=y[2025])
    assert whole == first and [r["current"] for r in rows] == [False, False, True]
    current = world.sql(
        "select count(*) as n from relationship r join entity_name n on n.entity_id = r.subject_id"
        " where n.name = 'Ida' and r.superseded_at is null"
    )
    assert current == [{"n": 1}]


def test_windows_of_two_owners_do_not_correct_each_other(world: World) -> None:
    at(world, T0)
    relation = {"subject": "Jon", "predicate": "member_of", "object": "Choir"}
    mine = world.ingest("Jon sings.", relations=[{**relation, "valid_from": "2019-01-01T00:00:00Z"}])
    body = {"content": "Jon sang.", "relations": [{**relation, "valid_from": "2018-01-01T00:00:00Z"}]}
    theirs = world.call(REVIEWER, "POST", "/v1/ingest", body).json
    assert mine["relationship_ids"] != theirs["relationship_ids"]
    shown = world.call(READER, "GET", f"/v1/memories/{mine['memory_id']}").json
    assert [r["valid_from"] for r in shown["relationships"]] == ["2019-01-01T00:00:00Z"]


def test_what_is_over_or_decayed_is_not_shown_but_stays_in_its_time(world: World) -> None:
    at(world, T0)
    past = world.ingest(
        "The fair is in town.", valid_from="2025-05-01T00:00:00Z", valid_to="2025-06-01T00:00:00Z"
    )
    short = world.ingest("The lift is out of order.", expires_at=text(T0 + timedelta(days=2)))
    talk = world.ingest("We spoke of lifts.", kind="episodic")
    ids = [made["memory_id"] for made in (past, short, talk)]
    assert [believed(world, m) for m in ids] == [False, True, True]
    assert believed(world, ids[0], at=datetime(2025, 5, 15, tzinfo=UTC))
    at(world, T0 + timedelta(days=2))
    assert [believed(world, m) for m in ids] == [False, False, True]
    at(world, T0 + timedelta(days=31))
    assert [believed(world, m) for m in ids] == [False, False, False]
    listed = world.call(READER, "GET", "/v1/memories?limit=200").text
    assert not [m for m in ids if m in listed]
    # What has decayed is no duplicate: the same words are news again.
    assert world.ingest("We spoke of lifts.", kind="episodic")["duplicate"] is False
    assert world.call(AGENT, "GET", f"/v1/memories/{ids[1]}").status == 404
