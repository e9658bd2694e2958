"""What leaves a graph when text is not believed any more, and what holds again: one rule, whichever way it leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from remembrancer.domain.problems import Problem
from remembrancer.flows import remember_commit
from tests.integration.remember.desk import Desk, evidence, relation, request_of, same_as_first
from tests.integration.remember.near import Near
from tests.integration.trust.erasing import purge
from tests.integration.world import AGENT, OTHER_AGENT, READER, REVIEWER

DAY = "{}-01-01T00:00:00Z".format


def revision(text: str, now: str, before: str | None = None) -> dict[str, Any]:
    more = {} if before is None else {"previous_source_revision": before}
    return evidence(text, source_key="handbook", source_revision=now, **more)


def edges(desk: Desk, name: str = "Ada", query: str = "") -> list[tuple[Any, ...]]:
    """(object or value, first day, last day) of what a reader is shown of an entity, in order."""
    reply = desk.world.call(READER, "GET", f"/v1/entities?name={name}")
    shown = []
    for entity in reply.json["entities"]:
        found = desk.world.call(READER, "GET", f"/v1/entities/{entity['entity_id']}{query}")
        for edge in found.json["relationships"]:
            days = [bound and bound[:10] for bound in (edge["valid_from"], edge["valid_to"])]
            shown.append((edge["object"] or edge["value"]["value"], *days))
    return sorted(shown, key=str)


def retracted(desk: Desk, document: dict[str, Any]) -> None:
    path = f"/v1/memories/{document['evidence'][0]['evidence_id']}/retract"
    assert desk.world.call(AGENT, "POST", path, {"version": 1}).status == 200


def left_out(desk: Desk, document: dict[str, Any]) -> None:
    """The source that brought it says nothing of it any more."""
    desk.remember([revision("Bob likes cake.", "2", "1")], [relation("Bob", "likes", "Cake")])


def erased(desk: Desk, document: dict[str, Any]) -> None:
    ids = [document["evidence"][0]["evidence_id"]]
    assert purge(desk.world, memory_ids=ids).json.get("erased") == ids


WAYS: dict[str, Callable[[Desk, dict[str, Any]], None]] = {
    "retracted": retracted,
    "left out": left_out,
    "erased": erased,
}


@pytest.fixture(params=WAYS)
def leaves(request: pytest.FixtureRequest) -> Callable[[Desk, dict[str, Any]], None]:
    return WAYS[request.param]


def test_what_a_correction_had_replaced_holds_again(desk: Desk, leaves: Any) -> None:
    [old] = desk.tell("Ada", "likes", "Tea")["splits"]
    target = {"relationship_id": old["relationship_id"], "expected_version": 1}
    corrected = desk.remember(
        [revision("No: cocoa.", "1")], [relation("Ada", "likes", "Cocoa", correction_target=target)]
    )
    assert edges(desk) == [("Cocoa", None, None)]
    leaves(desk, corrected)
    assert edges(desk) == [("Tea", None, None)]


def brought(desk: Desk, text: str, *relations: dict[str, Any]) -> dict[str, Any]:
    return desk.remember([revision(text, "1")], list(relations))


def test_what_was_succeeded_goes_on(desk: Desk, leaves: Any) -> None:
    """Where one holds at a time, until the next one that is believed; at any time, and as it was known before."""
    desk.tell("Ada", "works_at", "Acme", valid_from=DAY(2019))
    globex = brought(desk, "Globex.", relation("Ada", "works_at", "Globex", valid_from=DAY(2022)))
    before = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    assert edges(desk) == [("Globex", "2022-01-01", None)]
    desk.tell("Ada", "works_at", "Initech", valid_from=DAY(2024))
    leaves(desk, globex)
    assert edges(desk) == [("Initech", "2024-01-01", None)]
    assert edges(desk, "Ada", f"?at={DAY(2023)}") == [("Acme", "2019-01-01", "2024-01-01")]
    then = [] if leaves is erased else [("Globex", "2022-01-01", None)]
    assert edges(desk, "Ada", f"?at={DAY(2023)}&known_at={before}") == then
    days = desk.world.sql("select 1 as n from relationship where %s in (valid_from, valid_to)", DAY(2022))
    assert bool(days) is (leaves is not erased)


def test_what_was_said_to_be_over_is_not(desk: Desk, leaves: Any) -> None:
    desk.tell("Ada", "likes", "Tea", valid_from=DAY(2019))
    over = brought(desk, "Not after 2023.", relation("Ada", "likes", "Tea", valid_to=DAY(2023)))
    assert edges(desk) == []
    leaves(desk, over)
    assert edges(desk) == [("Tea", "2019-01-01", None)]
    days = desk.world.sql("select valid_to from relationship where valid_to is not null")
    assert bool(days) is (leaves is not erased)


def test_a_window_that_others_confirm_stays(desk: Desk, leaves: Any) -> None:
    desk.tell("Ada", "likes", "Tea", valid_from=DAY(2019))
    over = brought(desk, "Not after 2023.", relation("Ada", "likes", "Tea", valid_to=DAY(2023)))
    desk.tell("Ada", "likes", "Tea", valid_to=DAY(2023), text="No, not since 2023.")
    leaves(desk, over)
    assert edges(desk) == []
    assert edges(desk, "Ada", f"?at={DAY(2020)}") == [("Tea", "2019-01-01", "2023-01-01")]


def test_what_was_corrected_into_a_known_fact_holds_again(desk: Desk, leaves: Any) -> None:
    desk.tell("Ada", "likes", "Tea", valid_from=DAY(2019))
    [cake] = desk.tell("Ada", "likes", "Cake", valid_from=DAY(2019))["splits"]
    target = {"relationship_id": cake["relationship_id"], "expected_version": 1}
    tea = brought(desk, "Tea, not cake.", relation("Ada", "likes", "Tea", correction_target=target))
    assert edges(desk) == [("Tea", "2019-01-01", None)]
    leaves(desk, tea)
    assert edges(desk) == [("Cake", "2019-01-01", None), ("Tea", "2019-01-01", None)]


UNDONE: dict[str, dict[str, Any]] = {
    "successor": {"target": "Globex", "valid_from": DAY(2022)},
    "end": {"target": "Acme", "valid_to": DAY(2023)},
    "correction": {"target": "Globex", "corrects": True},
    "window": {"target": "Acme", "valid_from": DAY(2018), "corrects": True},
}


@pytest.mark.parametrize("what", UNDONE)
def test_a_retraction_and_its_undoing_are_the_same_each_time(desk: Desk, what: str) -> None:
    [acme] = desk.tell("Ada", "works_at", "Acme", valid_from=DAY(2019))["splits"]
    change = dict(UNDONE[what])
    if change.pop("corrects", False):
        change["correction_target"] = {"relationship_id": acme["relationship_id"], "expected_version": 1}
    document = desk.remember([evidence("Something else.")], [relation("Ada", "works_at", **change)])
    path = f"/v1/memories/{document['evidence'][0]['evidence_id']}/retract"
    views = [f"?at={DAY(year)}" for year in (2018, 2020, 2025)]
    said = [edges(desk, "Ada", view) for view in views]
    assert [edges(desk, "Ada", view) for view in views] == said
    for version in (1, 2, 3):
        assert desk.world.call(AGENT, "POST", path, {"version": version}).status == 200
        before = [edges(desk, "Ada", view) for view in views]
        assert before == [[], [("Acme", "2019-01-01", None)], [("Acme", "2019-01-01", None)]]
        undo = desk.world.call(AGENT, "POST", path, {"version": version, "undo": True})
        assert undo.status == 200, undo.text
        assert [edges(desk, "Ada", view) for view in views] == said


def test_of_several_corrections_the_last_one_that_is_believed_holds(desk: Desk) -> None:
    documents = [desk.remember([evidence("Text 0.")], [relation("Ada", "likes", "A")])]
    relationship_id = documents[0]["relationships"][0]["splits"][0]["relationship_id"]
    for version, name in ((1, "B"), (2, "C")):
        target = {"relationship_id": relationship_id, "expected_version": version}
        said = relation("Ada", "likes", name, correction_target=target)
        documents.append(desk.remember([evidence(f"Text {version}.")], [said]))
    for number, undo, version, holds in (
        (1, False, 1, "C"),
        (2, False, 1, "A"),
        (2, True, 1, "C"),
        (1, True, 1, "C"),
        (2, False, 2, "B"),
        (1, False, 2, "A"),
    ):
        path = f"/v1/memories/{documents[number]['evidence'][0]['evidence_id']}/retract"
        body = {"version": version, "undo": undo}
        assert desk.world.call(AGENT, "POST", path, body).status == 200
        assert edges(desk) == [(holds, None, None)]


def test_erasing_one_of_two_leaves_the_other_and_what_it_says(desk: Desk) -> None:
    desk.tell("Ada", "likes", "Tea", valid_from=DAY(2019), text="One.")
    again = desk.remember([evidence("Two.")], [relation("Ada", "likes", "Tea", valid_from=DAY(2019))])
    erased(desk, again)
    assert edges(desk) == [("Tea", "2019-01-01", None)]
    assert (
        len(desk.world.sql("select * from relationship")) == len(desk.world.sql("select * from support")) == 1
    )


@pytest.mark.parametrize("start", [DAY(2019), None])
def test_what_a_revision_leaves_out_does_not_bound_what_it_says(desk: Desk, start: str | None) -> None:
    desk.remember(
        [revision("Ada is at Acme.", "1")], [relation("Ada", "works_at", "Acme", valid_from=DAY(2024))]
    )
    said = relation("Ada", "works_at", "Globex", **({} if start is None else {"valid_from": start}))
    desk.remember([revision("Ada is at Globex.", "2", "1")], [said])
    assert edges(desk) == [("Globex", start and start[:10], None)]


def test_an_edge_that_gets_a_support_during_a_revision_is_believed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, said = threading.Event(), threading.Event()
    real = remember_commit.edges.close_unsupported

    def slow(*args: Any, **more: Any) -> Any:
        done = real(*args, **more)
        closed.set()
        said.wait(1)
        return done

    monkeypatch.setattr(remember_commit.edges, "close_unsupported", slow)
    tea = relation("Ada", "likes", "Tea")
    desk.remember([revision("Ada likes tea.", "1")], [tea])
    cake = [relation("Bob", "likes", "Cake")]
    work = desk.prepare(request_of([revision("Bob likes cake.", "2", "1")], cake))
    committing = threading.Thread(target=desk.commit, args=(work,))
    committing.start()
    assert closed.wait(5)
    edge = {"subject": "Ada", "subject_kind": "person", "predicate": "likes", "object": "Tea"}
    desk.world.ingest("Tea it is, for Ada.", relations=[{**edge, "object_kind": "organization"}])
    said.set()
    committing.join()
    assert edges(desk) == [("Tea", None, None)]


@pytest.mark.parametrize("unseen", ["decayed", "held"])
def test_a_revision_leaves_out_what_nobody_is_shown_just_now_too(desk: Desk, unseen: str) -> None:
    document = desk.remember([revision("Ada likes tea.", "1")], [relation("Ada", "likes", "Tea")])
    memory_id = document["evidence"][0]["evidence_id"]
    if unseen == "held":
        desk.world.sql(
            "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
            " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
        )
    else:
        desk.world.sql("update memory_version set expires_at = now() - interval '1 hour'")
    cake = desk.remember([revision("Bob likes cake.", "2", "1")], [relation("Bob", "likes", "Cake")])
    assert cake["evidence"][0]["superseded_ids"] == [memory_id]
    # Shown again, it would be believed again: the source says otherwise.
    desk.world.sql("update hold_out set closed_at = now()")
    reply = desk.world.call(AGENT, "POST", f"/v1/memories/{memory_id}/renew", {"version": 1})
    assert reply.code == "stale_target"
    assert edges(desk) == []


def test_what_a_batch_ends_it_does_not_say_again(desk: Desk) -> None:
    """Stored as one more submission of what ends now, it was told of as stored and shown to nobody."""
    desk.embedder = Near()
    old = desk.remember([evidence("Ada likes tea.")], [relation("Ada", "likes", "Tea")])
    ends = evidence("Ada gave up.", supersedes_evidence_ids=[old["evidence"][0]["evidence_id"]])
    said = [relation("Ada", "likes", "Cocoa"), relation("Ada", "likes", "Tea", cites=(1,))]
    with pytest.raises(Problem) as caught:
        desk.remember([ends, evidence("Ada likes tea.")], said)
    assert [(e.pointer, e.code) for e in caught.value.errors] == [
        ("/evidence/0/supersedes_evidence_ids/0", "itself")
    ]
    document = desk.remember([ends, evidence("Ada is fond of tea.")], said, decide=same_as_first)
    assert [item["disposition"] for item in document["evidence"]] == ["stored", "stored"]
    for item in document["evidence"]:
        assert desk.world.call(READER, "GET", f"/v1/memories/{item['evidence_id']}").status == 200


@pytest.mark.parametrize("leave", [retracted, erased])
def test_a_conflict_stays_open_while_another_memory_says_the_same(desk: Desk, leave: Any) -> None:
    document = desk.remember([evidence("Acme, one.")], [relation("Ada", "works_at", "Acme")])
    again = desk.remember([evidence("Acme, two.")], [relation("Ada", "works_at", "Acme")])
    desk.tell("Ada", "works_at", "Globex", OTHER_AGENT, text="Globex.")
    leave(desk, again)
    assert edges(desk) == [("Acme", None, None), ("Globex", None, None)]
    [conflict] = desk.world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"]
    assert sorted(side["text"] for side in conflict["sides"]) == ["Acme, one.", "Globex."]
    leave(desk, document)
    assert edges(desk) == [("Globex", None, None)]
    assert desk.world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"] == []
