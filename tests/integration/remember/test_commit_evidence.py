"""Evidence through the commit: duplicates, occurrences, supersession, revisions of a source, context."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from remembrancer.domain.problems import Problem
from tests.integration.remember.desk import (
    Desk,
    accept,
    assessment_request,
    evidence,
    relation,
    request_of,
    same_as_first,
)
from tests.integration.remember.near import Near
from tests.integration.world import AGENT, OTHER_AGENT, READER, REVIEWER, Person

TEA = [relation("Ada", "likes", "Tea")]


def items(document: dict[str, Any]) -> list[tuple[str, str | None, str]]:
    return [(item["disposition"], item["reason"], item["evidence_id"]) for item in document["evidence"]]


def shown(desk: Desk, memory_id: str) -> bool:
    return desk.world.call(READER, "GET", f"/v1/memories/{memory_id}").status == 200


def stale(caught: pytest.ExceptionInfo[Problem]) -> list[str]:
    assert caught.value.code == "stale_input", caught.value.code
    return [error.pointer for error in caught.value.errors]


def test_the_same_bytes_are_reused_and_need_no_vector(desk: Desk) -> None:
    first = desk.remember([evidence("Ada likes tea.")], TEA)
    work = desk.prepare(request_of([evidence("Ada likes tea.", force_insert=True)], TEA))
    assert work.vectors == {} and work.context.evidence[0].passages == ()
    again = desk.commit(work).document
    [(_, _, memory_id)] = items(first)
    assert items(again) == [("reused", "exact_duplicate", memory_id)]
    assert again["evidence"][0]["occurrence_id"] != first["evidence"][0]["occurrence_id"]
    rows = desk.world.sql("select content from occurrence")
    assert [row["content"] for row in rows] == [None, None]
    # One letter or another owner, another space: another memory.
    for other in (
        desk.remember([evidence("Ada likes tea!")], TEA),
        desk.remember([evidence("Ada likes tea.")], TEA, person=OTHER_AGENT),
        desk.remember([evidence("Ada likes tea.")], TEA, space="private"),
    ):
        assert items(other)[0][0] == "stored"


def test_a_text_of_another_path_is_reused(desk: Desk) -> None:
    memory_id = desk.world.ingest("Ada likes tea.")["memory_id"]
    assert items(desk.remember([evidence("Ada likes tea.")], TEA)) == [
        ("reused", "exact_duplicate", memory_id)
    ]


def test_identical_items_share_an_id_and_keep_their_occurrences(desk: Desk) -> None:
    done = desk.remember(
        [evidence("Ada likes tea.", source="one"), evidence("Ada likes tea.", source="two")],
        [relation("Ada", "likes", "Tea", cites=(0,)), relation("Ada", "likes", "Cake", cites=(1,))],
    )
    [one, two] = done["evidence"]
    assert one["evidence_id"] == two["evidence_id"] and one["occurrence_id"] != two["occurrence_id"]
    assert (one["disposition"], two["disposition"]) == ("stored", "reused")
    history = desk.world.call(READER, "GET", f"/v1/memories/{one['evidence_id']}/history").json
    assert {(told["occurrence_id"], told["source"]) for told in history["submissions"]} == {
        (one["occurrence_id"], "one"),
        (two["occurrence_id"], "two"),
    }


def test_a_semantic_duplicate_keeps_the_canonical_text_and_the_submitted_one(desk: Desk) -> None:
    desk.embedder = Near()
    first = desk.remember([evidence("Ada likes tea.")], TEA)
    again = desk.remember([evidence("Ada is fond of tea.")], TEA, decide=same_as_first)
    [(_, _, memory_id)] = items(first)
    assert items(again) == [("reused", "semantic_duplicate", memory_id)]
    assert desk.world.call(READER, "GET", f"/v1/memories/{memory_id}").json["text"] == "Ada likes tea."
    history = desk.world.call(READER, "GET", f"/v1/memories/{memory_id}/history").json
    assert [told["text"] for told in history["submissions"]] == [None, "Ada is fond of tea."]
    # The assessor may say no, and is not asked when the item is to be inserted or has a lifecycle of its own.
    new = desk.remember([evidence("Ada is very fond of tea.")], TEA)
    assert items(new)[0][0] == "stored"
    for item in (
        evidence("Tea is what Ada likes.", force_insert=True),
        evidence("Tea it is that Ada likes.", source_key="doc", source_revision="1"),
    ):
        assert desk.prepare(request_of([item], TEA)).context.evidence[0].duplicates == ()


def test_only_the_own_evidence_of_the_space_above_the_floor_is_offered(desk: Desk) -> None:
    desk.embedder = Near()
    desk.remember([evidence("Ada likes tea.")], TEA, person=OTHER_AGENT)
    desk.remember([evidence("Ada likes tea.")], TEA, space="private")
    work = desk.prepare(request_of([evidence("Ada is fond of tea.")], TEA))
    assert work.context.evidence[0].duplicates == ()
    for number in range(12):
        desk.remember([evidence(f"Ada likes tea, number {number}.")], TEA)
    asked = desk.prepare(request_of([evidence("Ada is fond of tea.")], TEA)).context.evidence[0]
    assert [candidate.ref for candidate in asked.duplicates] == [f"d{n}" for n in range(1, 11)]
    desk.floor = 0.999
    assert desk.prepare(request_of([evidence("Ada is fond.")], TEA)).context.evidence[0].duplicates == ()


def test_held_and_retracted_text_is_not_reused(desk: Desk) -> None:
    [(_, _, first)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    path = f"/v1/memories/{first}/retract"
    assert desk.world.call(AGENT, "POST", path, {"version": 1}).status == 200
    [(disposition, _, second)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    assert disposition == "stored" and second != first
    desk.world.sql(
        "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
        " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
    )
    assert items(desk.remember([evidence("Ada likes tea.")], TEA))[0][0] == "stored"


def test_superseded_evidence_holds_until_now_and_ends_what_rested_on_it(desk: Desk) -> None:
    old = desk.remember([evidence("Ada likes tea.")], TEA)
    both = desk.remember(
        [evidence("Ada and Bob like cake.")],
        [relation("Ada", "likes", "Cake"), relation("Bob", "likes", "Cake")],
    )
    [(_, _, old_id)], [(_, _, kept)] = items(old), items(both)
    new = desk.remember(
        [evidence("Ada likes coffee.", supersedes_evidence_ids=[old_id])],
        [relation("Ada", "likes", "Coffee")],
    )
    assert new["evidence"][0]["superseded_ids"] == [old_id]
    assert not shown(desk, old_id) and shown(desk, kept)
    history = desk.world.call(READER, "GET", f"/v1/memories/{old_id}/history").json["versions"]
    assert [v["superseded_by"] for v in history] == [new["evidence"][0]["evidence_id"]] * 2
    rows = desk.world.sql(
        """
        select n.name, r.valid_to is not null as over from relationship r
        join entity_name n on n.entity_id = r.object_id and n.canonical
        where r.superseded_at is null order by 1, r.relationship_id
        """
    )
    assert [(r["name"], r["over"]) for r in rows] == [
        ("Cake", False),
        ("Cake", False),
        ("Coffee", False),
        ("Tea", True),
    ]


def test_what_may_not_be_superseded(desk: Desk) -> None:
    [(_, _, mine)] = items(desk.remember([evidence("Ada likes tea.")], TEA))

    def supersede(*ids: str, text: str = "New.", person: Person = AGENT, space: str = "team_shared") -> Any:
        item = evidence(text, supersedes_evidence_ids=list(ids))
        return desk.remember([item], TEA, person=person, space=space)

    for attempt in (
        lambda: supersede(mine, text="Ada likes tea."),
        lambda: desk.remember(
            [evidence(text, supersedes_evidence_ids=[mine]) for text in ("One.", "Two.")],
            [relation("Ada", "likes", "Tea", cites=(0, 1))],
        ),
    ):
        with pytest.raises(Problem) as caught:
            attempt()
        assert caught.value.code == "invalid_target"
    with pytest.raises(Problem) as caught:
        supersede(mine, person=OTHER_AGENT)
    assert caught.value.code == "forbidden"
    with pytest.raises(Problem) as caught:
        supersede("mem_" + "0" * 32)
    assert stale(caught) == ["/evidence/0/supersedes_evidence_ids/0"]
    with pytest.raises(Problem) as caught:
        supersede(mine, space="private")
    assert stale(caught) == ["/evidence/0/supersedes_evidence_ids/0"]
    assert supersede(mine, person=REVIEWER)["evidence"][0]["superseded_ids"] == [mine]
    with pytest.raises(Problem) as caught:
        supersede(mine)
    assert stale(caught) == ["/evidence/0/supersedes_evidence_ids/0"]


def revision(text: str, now: str, before: str | None = None) -> dict[str, Any]:
    more = {} if before is None else {"previous_source_revision": before}
    return evidence(text, source_key="handbook", source_revision=now, **more)


def test_a_new_revision_of_a_source_is_compared_and_set(desk: Desk) -> None:
    first = desk.remember(
        [revision("Ada likes tea.", "1"), revision("Bob likes tea.", "1")],
        [relation("Ada", "likes", "Tea"), relation("Bob", "likes", "Tea", cites=(1,))],
    )
    [(_, _, ada), (_, _, bob)] = items(first)
    for item in (revision("X.", "2"), revision("X.", "2", "0"), revision("X.", "1", "0")):
        with pytest.raises(Problem) as caught:
            desk.remember([item], TEA)
        assert stale(caught) == ["/evidence/0/previous_source_revision"]
    # Another owner has another handbook; the current revision may grow.
    assert desk.remember([revision("X.", "7")], TEA, person=OTHER_AGENT)["state"] == "completed"
    grown = desk.remember([revision("Cem likes tea.", "1")], [relation("Cem", "likes", "Tea")])
    second = desk.remember(
        [revision("Ada likes tea.", "2", "1"), revision("Bob likes cake.", "2", "1")],
        [relation("Ada", "likes", "Tea"), relation("Bob", "likes", "Cake", cites=(1,))],
    )
    [(_, _, cem)] = items(grown)
    # What both revisions say is one memory; what the new one does not say is not believed any more.
    assert items(second)[0] == ("reused", "exact_duplicate", ada)
    assert second["evidence"][0]["superseded_ids"] == sorted([bob, cem])
    assert (shown(desk, ada), shown(desk, bob), shown(desk, cem)) == (True, False, False)
    rows = desk.world.sql(
        """
        select s.name as subject, o.name as object from relationship r
        join entity_name s on s.entity_id = r.subject_id and s.canonical
        join entity_name o on o.entity_id = r.object_id and o.canonical
        where r.superseded_at is null and r.owner_id = %s order by 1, 2
        """,
        desk.world.principals[AGENT.name].removeprefix("prin_"),
    )
    assert [(row["subject"], row["object"]) for row in rows] == [("Ada", "Tea"), ("Bob", "Cake")]
    [row] = desk.world.sql("select distinct revision from evidence_source where revision <> '7'")
    assert row["revision"] == "2"


def test_a_batch_brings_one_revision_of_a_source(desk: Desk) -> None:
    with pytest.raises(Problem) as caught:
        desk.remember(
            [revision("X.", "1"), revision("Y.", "2")], [relation("Ada", "likes", "Tea", cites=(0, 1))]
        )
    assert caught.value.code == "invalid_input"


def test_what_others_brought_too_outlives_the_revision(desk: Desk) -> None:
    [(_, _, tea)] = items(desk.remember([revision("Ada likes tea.", "1")], TEA))
    desk.remember([evidence("Ada likes tea.", source="a friend")], TEA)
    desk.remember([revision("Ada likes cake.", "2", "1")], [relation("Ada", "likes", "Cake")])
    assert shown(desk, tea)


def test_a_correction_in_a_new_revision_finds_what_rested_on_the_old_one(desk: Desk) -> None:
    first = desk.remember([revision("Ada works at Acme.", "1")], [relation("Ada", "works_at", "Acme")])
    [old] = first["relationships"][0]["splits"]
    target = {"relationship_id": old["relationship_id"], "expected_version": 1}
    second = desk.remember(
        [revision("Ada works at Globex.", "2", "1")],
        [relation("Ada", "works_at", "Globex", correction_target=target)],
    )
    [new] = second["relationships"][0]["splits"]
    assert (new["relationship_id"], new["version"]) == (old["relationship_id"], 2)
    assert len(desk.world.sql("select * from relationship where superseded_at is null")) == 1


def known(desk: Desk, memory_id: str, space: str = "team_shared") -> Any:
    return desk.prepare(
        request_of(
            [evidence("New.")], [relation("Ada", "likes", "Tea", known_evidence_ids=[memory_id])], space
        )
    )


def test_known_evidence_is_context_and_supports_nothing(desk: Desk) -> None:
    [(_, _, memory_id)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    work = known(desk, memory_id)
    asked = assessment_request(work.request, work.context)
    assert [item.text for item in asked.known] == ["Ada likes tea."]
    assert asked.proposals[0].known == (asked.known[0].ref,)
    done = desk.commit(work).document
    [split] = done["relationships"][0]["splits"]
    assert [support["evidence_id"] for support in split["supports"]] == [items(done)[0][2]]


def test_known_evidence_of_another_space(desk: Desk) -> None:
    [(_, _, private)] = items(desk.remember([evidence("Ada likes gin.")], TEA, space="private"))
    with pytest.raises(Problem) as caught:
        known(desk, private)
    assert stale(caught) == ["/relationships/0/known_evidence_ids/0"]
    [(_, _, shared)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    assert known(desk, shared, "private").context.known != ()


# Between assess and commit -----------------------------------------------------------------------------------
def test_cited_evidence_replaced_in_between(desk: Desk) -> None:
    [(_, _, memory_id)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    cited, reused = known(desk, memory_id), desk.prepare(request_of([evidence("Ada likes tea.")], TEA))
    superseding = desk.prepare(request_of([evidence("Cocoa.", supersedes_evidence_ids=[memory_id])], TEA))
    desk.remember([evidence("Ada likes cake.", supersedes_evidence_ids=[memory_id])], TEA)
    before = desk.world.sql("select count(*) as n from occurrence")
    for work, pointer in (
        (cited, "/relationships/0/known_evidence_ids/0"),
        (reused, "/evidence/0"),
        (superseding, "/evidence/0/supersedes_evidence_ids/0"),
    ):
        with pytest.raises(Problem) as caught:
            desk.commit(work)
        assert stale(caught) == [pointer]
    assert desk.world.sql("select count(*) as n from occurrence") == before


def test_a_semantic_duplicate_gone_in_between(desk: Desk) -> None:
    desk.embedder = Near()
    [(_, _, memory_id)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    work = desk.prepare(request_of([evidence("Ada is fond of tea.")], TEA))
    asked = assessment_request(work.request, work.context)
    work = replace(work, assessment=same_as_first(asked, accept(asked)))
    assert desk.world.call(AGENT, "POST", f"/v1/memories/{memory_id}/retract", {"version": 1}).status == 200
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert stale(caught) == ["/evidence/0"]


def test_the_same_text_stored_in_between_is_reused(desk: Desk) -> None:
    work = desk.prepare(request_of([evidence("Ada likes tea.")], TEA))
    [(_, _, memory_id)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    assert items(desk.commit(work).document) == [("reused", "exact_duplicate", memory_id)]


def test_a_source_revised_in_between(desk: Desk) -> None:
    desk.remember([revision("One.", "1")], TEA)
    work = desk.prepare(request_of([revision("Two.", "2", "1")], TEA))
    desk.remember([revision("Too.", "2b", "1")], TEA)
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert stale(caught) == ["/evidence/0/previous_source_revision"]


def test_a_corrected_relationship_changed_in_between(desk: Desk) -> None:
    [old] = desk.tell("Ada", "works_at", "Acme")["splits"]
    target = {"relationship_id": old["relationship_id"], "expected_version": 1}

    def request(text: str, employer: str) -> Any:
        return request_of([evidence(text)], [relation("Ada", "works_at", employer, correction_target=target)])

    work = desk.prepare(request("One.", "Globex"))
    desk.commit(desk.prepare(request("Two.", "Initech")))
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert stale(caught) == ["/relationships/0/correction_target"]


def test_a_name_made_in_between_is_the_same_entity(desk: Desk) -> None:
    work = desk.prepare(request_of([evidence("Ada likes cake.")], [relation("Ada", "likes", "Cake")]))
    [made] = desk.tell("Ada", "likes", "Tea")["splits"]
    [found] = desk.commit(work).document["relationships"][0]["splits"]
    assert found["subject"] == made["subject"]


def test_an_entity_merged_in_between_is_what_it_is_now(desk: Desk) -> None:
    [ada] = desk.tell("Ada", "likes", "Tea")["splits"]
    [augusta] = desk.tell("Augusta", "likes", "Tea")["splits"]
    work = desk.prepare(request_of([evidence("Ada likes cake.")], [relation("Ada", "likes", "Cake")]))
    path = f"/v1/entities/{ada['subject']['entity_id']}/merge"
    reply = desk.world.call(REVIEWER, "POST", path, {"into": augusta["subject"]["entity_id"]})
    assert reply.status == 200, reply.text
    [found] = desk.commit(work).document["relationships"][0]["splits"]
    assert found["subject"] == augusta["subject"]
    with pytest.raises(Problem) as caught:
        desk.tell({"known_entity_id": ada["subject"]["entity_id"]}, "likes", "Gin", text="Gin.")  # type: ignore[arg-type]
    assert stale(caught) == ["/relationships/0/subject/known_entity_id"]


@pytest.mark.parametrize("kind", ["product", "organization"])
def test_a_merged_name_is_the_whole_whichever_of_its_kinds_is_said(desk: Desk, kind: str) -> None:
    def tell(name: str, kind: str, value: str) -> Any:
        said: Any = {"name": name, "entity_kind": kind}
        return desk.tell(said, "makes", value, text=f"{name} makes {value}.")["splits"][0]["subject"]

    part, whole = tell("Gizmo", "product", "Noise"), tell("Gizmo Works", "organization", "Light")
    path = f"/v1/entities/{part['entity_id']}/merge"
    assert desk.world.call(REVIEWER, "POST", path, {"into": whole["entity_id"]}).status == 200
    assert tell("Gizmo", kind, "Heat") == whole


def test_a_predicate_registered_otherwise_in_between(desk: Desk) -> None:
    work = desk.prepare(request_of([evidence("Ada works at Acme.")], [relation("Ada", "works_at", "Acme")]))
    desk.world.ingest("Bob.", relations=[{"subject": "Bob", "predicate": "works_at", "object": "Acme"}])
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert stale(caught) == ["/relationships/0/predicate"]


def test_a_grant_revoked_in_between(desk: Desk) -> None:
    work = desk.prepare(request_of([evidence("Ada likes tea.")], TEA))
    for grant in ("read", "none"):
        desk.world.sql("update principal set team_grant = %s where name = %s", grant, AGENT.name)
        with pytest.raises(Problem) as caught:
            desk.commit(work)
        assert caught.value.code == "forbidden"
    desk.world.sql("update principal set active = false where name = %s", AGENT.name)
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert caught.value.code == "forbidden"
    assert desk.world.sql("select count(*) as n from memory") == [{"n": 0}]


def test_an_erasure_in_between(desk: Desk) -> None:
    from tests.integration.probe import erase_of

    [(_, _, memory_id)] = items(desk.remember([evidence("Ada likes tea.")], TEA))
    work = desk.prepare(request_of([evidence("Bob likes tea.")], [relation("Bob", "likes", "Tea")]))
    erase_of(desk.world, memory_ids=[memory_id])
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert caught.value.code == "commit_conflict" and caught.value.entry.retryable
    assert desk.world.sql("select count(*) as n from memory") == [{"n": 0}]
    assert desk.world.sql("select count(*) as n from predicate") == [{"n": 0}]


@pytest.mark.parametrize("spoil", ["size", "nan", "infinite", "missing", "contract"])
def test_vectors_that_are_none(desk: Desk, spoil: str) -> None:
    work = desk.prepare(request_of([evidence("Ada likes tea.")], TEA))
    [(sha, vector)] = work.vectors.items()
    broken = {
        "size": {sha: vector[:383]},
        "nan": {sha: np.where(np.arange(384) == 7, np.nan, vector)},
        "infinite": {sha: np.where(np.arange(384) == 7, np.inf, vector)},
        "missing": {},
        "contract": {sha: vector},
    }[spoil]
    work = replace(work, vectors=broken, contract="another" if spoil == "contract" else work.contract)
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert caught.value.code == ("commit_conflict" if spoil == "contract" else "embedding_unavailable")
    assert desk.world.sql("select count(*) as n from memory") == [{"n": 0}]
