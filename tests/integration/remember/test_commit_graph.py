"""Relationships through the commit: time on both axes, corrections, conflicts, names, predicates, values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remembrancer.domain.problems import Problem
from tests.integration.remember.desk import Desk, evidence, relation
from tests.integration.world import AGENT, OTHER_AGENT, OUTSIDER, READER, REVIEWER


def history(desk: Desk, relationship_id: str) -> list[dict[str, Any]]:
    reply = desk.world.call(READER, "GET", f"/v1/relationships/{relationship_id}/history")
    assert reply.status == 200, reply.text
    return list(reply.json["versions"])


def windows(desk: Desk, relationship_id: str) -> list[tuple[str | None, str | None, bool]]:
    """(valid_from, valid_to, still believed) of each version."""
    return [
        (
            v["valid_from"] and v["valid_from"][:10],
            v["valid_to"] and v["valid_to"][:10],
            v["superseded_at"] is None,
        )
        for v in history(desk, relationship_id)
    ]


def split(result: dict[str, Any]) -> dict[str, Any]:
    [one] = result["splits"]
    return one


def current(desk: Desk, at: str, known_at: datetime | None = None) -> list[str]:
    """The employers that are believed for that day, straight from the rows."""
    rows = desk.world.sql(
        """
        select n.name from relationship r join entity_name n on n.entity_id = r.object_id and n.canonical
        where r.predicate_key = 'works_at' and r.created_at <= coalesce(%s, now())
          and (r.superseded_at is null or r.superseded_at > coalesce(%s, now()))
          and (r.valid_from is null or r.valid_from <= %s) and (r.valid_to is null or r.valid_to > %s)
        order by 1
        """,
        known_at,
        known_at,
        at,
        at,
    )
    return [row["name"] for row in rows]


def test_acme_then_globex(desk: Desk) -> None:
    acme = split(desk.tell("Ada", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z"))
    before = datetime.now(UTC)
    globex = split(desk.tell("Ada", "works_at", "Globex", valid_from="2024-01-01T00:00:00Z"))
    assert windows(desk, acme["relationship_id"]) == [
        ("2019-01-01", None, False),
        ("2019-01-01", "2024-01-01", True),
    ]
    assert windows(desk, globex["relationship_id"]) == [("2024-01-01", None, True)]
    assert current(desk, "2020-06-01") == ["Acme"]
    assert current(desk, "2025-06-01") == ["Globex"]
    assert current(desk, "2020-06-01", before) == current(desk, "2025-06-01", before) == ["Acme"]
    assert desk.world.sql("select * from conflict") == []


def test_a_late_arrival_about_an_older_time_retires_nothing(desk: Desk) -> None:
    globex = split(desk.tell("Ada", "works_at", "Globex", valid_from="2024-01-01T00:00:00Z"))
    acme = split(desk.tell("Ada", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z"))
    assert acme["valid_to"] == "2024-01-01T00:00:00Z"
    assert windows(desk, globex["relationship_id"]) == [("2024-01-01", None, True)]
    assert current(desk, "2020-06-01") == ["Acme"] and current(desk, "2025-06-01") == ["Globex"]


def test_disjoint_windows_coexist(desk: Desk) -> None:
    day = "{}-01-01T00:00:00Z".format
    first = split(desk.tell("Ada", "works_at", "Acme", valid_from=day(2010), valid_to=day(2012)))
    split(desk.tell("Ada", "works_at", "Globex", valid_from=day(2015), valid_to=day(2017)))
    again = split(desk.tell("Ada", "works_at", "Acme", valid_from=day(2019), text="Ada is back at Acme."))
    assert again["relationship_id"] != first["relationship_id"]
    assert [current(desk, f"{year}-06-01") for year in (2011, 2013, 2016, 2020)] == [
        ["Acme"],
        [],
        ["Globex"],
        ["Acme"],
    ]


def test_said_again_is_one_fact_with_one_more_support(desk: Desk) -> None:
    start = "2019-01-01T00:00:00Z"
    first = split(desk.tell("Ada", "works_at", "Acme", valid_from=start))
    again = split(desk.tell("ADA", "works_at", "Acme", valid_from=start, text="She is at Acme since 2019."))
    undated = split(desk.tell("Ada", "works_at", "Acme", text="Ada is at Acme."))
    assert {(s["relationship_id"], s["version"]) for s in (first, again, undated)} == {
        (first["relationship_id"], 1)
    }
    assert len(desk.world.sql("select distinct memory_id from support")) == 3
    assert len(desk.world.sql("select * from entity")) == 2
    # Stated to have ended, it is another version of the same fact, still with all its supports.
    ended = split(
        desk.tell("Ada", "works_at", "Acme", valid_to="2023-01-01T00:00:00Z", text="Ada left Acme in 2023.")
    )
    assert (ended["relationship_id"], ended["version"]) == (first["relationship_id"], 2)
    assert windows(desk, first["relationship_id"])[-1] == ("2019-01-01", "2023-01-01", True)
    assert len(desk.world.sql("select * from support where version = 2")) == 4


def test_an_undated_successor_starts_with_the_decision(desk: Desk) -> None:
    acme = split(desk.tell("Ada", "works_at", "Acme"))
    assert acme["valid_from"] is None
    globex = split(desk.tell("Ada", "works_at", "Globex"))
    assert globex["valid_from"] is not None
    [_, past] = history(desk, acme["relationship_id"])
    assert (past["valid_from"], past["valid_to"]) == (None, globex["valid_from"])


CHANGES: dict[str, dict[str, Any]] = {
    "subject": {"subject": "Augusta"},
    "object": {"target": "Globex"},
    "window": {"valid_from": "2018-01-01T00:00:00Z"},
    "end": {"valid_from": "2019-01-01T00:00:00Z", "valid_to": "2022-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_correction_closes_the_old_version_verbatim(desk: Desk, what: str) -> None:
    old = split(desk.tell("Ada", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z"))
    change = {"subject": "Ada", "target": "Acme", **CHANGES[what]}
    new = split(
        desk.tell(
            change.pop("subject"),
            "works_at",
            change.pop("target"),
            text="A correction.",
            correction_target={"relationship_id": old["relationship_id"], "expected_version": 1},
            **change,
        )
    )
    assert (new["relationship_id"], new["version"]) == (old["relationship_id"], 2)
    [first, second] = history(desk, old["relationship_id"])
    assert (first["subject"], first["object"], first["valid_from"], first["valid_to"]) == (
        "Ada",
        "Acme",
        "2019-01-01T00:00:00Z",
        None,
    )
    assert first["superseded_at"] == second["created_at"] and second["superseded_at"] is None
    expected = {
        "subject": ("Augusta", "Acme", "2019-01-01T00:00:00Z", None),
        "object": ("Ada", "Globex", "2019-01-01T00:00:00Z", None),
        "window": ("Ada", "Acme", "2018-01-01T00:00:00Z", None),
        "end": ("Ada", "Acme", "2019-01-01T00:00:00Z", "2022-01-01T00:00:00Z"),
    }[what]
    assert (second["subject"], second["object"], second["valid_from"], second["valid_to"]) == expected
    # What supported the old statement supports a new window, and no other statement.
    supports = desk.world.sql("select memory_id from support where version = 2")
    assert len(supports) == (1 if what in ("subject", "object") else 2)


def test_a_value_is_corrected(desk: Desk) -> None:
    old = split(desk.tell("Ada", "has_age", {"type": "number", "value": "36.0"}))
    assert old["object"] == {
        "entity": None,
        "value": {"type": "number", "value": "36", "unit": None, "original": "36.0"},
    }
    new = split(
        desk.tell(
            "Ada",
            "has_age",
            {"type": "number", "value": 37},
            text="She is 37.",
            correction_target={"relationship_id": old["relationship_id"], "expected_version": 1},
        )
    )
    assert (new["relationship_id"], new["version"]) == (old["relationship_id"], 2)
    assert [v["value"]["value"] for v in history(desk, old["relationship_id"])] == ["36", "37"]


def test_a_value_is_the_same_in_another_unit_and_kept_as_it_was_written(desk: Desk) -> None:
    run = split(desk.tell("Ada", "ran", {"type": "number", "value": 5, "unit": "km"}))
    again = split(desk.tell("Ada", "ran", {"type": "number", "value": "5000.0", "unit": "metres"}))
    assert run["object"]["value"] == {"type": "number", "value": "5000", "unit": "meter", "original": "5 km"}
    assert again["relationship_id"] == run["relationship_id"]
    assert again["object"] == run["object"]
    split(
        desk.tell(
            "Ada",
            "ran",
            {"type": "number", "value": 5, "unit": "km"},
            valid_to="2024-01-01T00:00:00Z",
            text="X.",
        )
    )
    rows = desk.world.sql("select version, value_original from relationship order by version")
    assert [row["value_original"] for row in rows] == ["5 km"] * len(rows)
    cost = split(desk.tell("Ada", "paid", {"type": "number", "value": 5, "unit": "EUR"}))
    assert cost["object"]["value"] == {"type": "number", "value": "5", "unit": "EUR", "original": "5"}


def test_a_correction_of_another_version_or_of_nothing_is_stale(desk: Desk) -> None:
    old = split(desk.tell("Ada", "works_at", "Acme"))
    for target in (
        {"relationship_id": old["relationship_id"], "expected_version": 2},
        {"relationship_id": "rel_" + "0" * 32, "expected_version": 1},
    ):
        with pytest.raises(Problem) as caught:
            desk.tell("Ada", "works_at", "Globex", text="A correction.", correction_target=target)
        assert caught.value.code == "stale_input"
        [error] = caught.value.errors
        assert error.pointer.startswith("/relationships/0/correction_target/")


def test_a_correction_keeps_predicate_and_polarity(desk: Desk) -> None:
    old = split(desk.tell("Ada", "works_at", "Acme"))
    target = {"relationship_id": old["relationship_id"], "expected_version": 1}
    for change in ({"predicate": "owns"}, {"predicate": "works_at", "polarity": "-"}):
        with pytest.raises(Problem) as caught:
            desk.tell("Ada", change.pop("predicate"), "Acme", text="X.", correction_target=target, **change)
        assert caught.value.code == "invalid_target"


def test_only_the_owner_or_a_reviewer_corrects(desk: Desk) -> None:
    old = split(desk.tell("Ada", "works_at", "Acme"))
    target = {"relationship_id": old["relationship_id"], "expected_version": 1}
    with pytest.raises(Problem) as caught:
        desk.tell("Ada", "works_at", "Globex", OTHER_AGENT, text="X.", correction_target=target)
    assert caught.value.code == "forbidden"
    new = split(desk.tell("Ada", "works_at", "Globex", REVIEWER, text="X.", correction_target=target))
    assert new["version"] == 2
    [owner] = desk.world.sql("select distinct owner_id::text from relationship")
    assert owner["owner_id"].replace("-", "") in desk.world.principals[AGENT.name]


def test_another_owner_s_other_object_is_a_conflict_and_overwrites_nothing(desk: Desk) -> None:
    acme = split(desk.tell("Ada", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z"))
    document = desk.remember(
        [evidence("Ada is at Globex.")],
        [relation("Ada", "works_at", "Globex", valid_from="2021-01-01T00:00:00Z")],
        person=OTHER_AGENT,
    )
    [warning] = document["warnings"]
    assert (warning["code"], warning["reason"], warning["pointer"]) == (
        "conflict",
        "other_object",
        "/relationships/0",
    )
    assert windows(desk, acme["relationship_id"]) == [("2019-01-01", None, True)]
    [conflict] = desk.world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"]
    assert conflict["conflict_id"] == warning["conflict_id"]
    assert sorted(side["text"] for side in conflict["sides"])[0] == "Ada is at Globex."
    assert {"relationship_id": acme["relationship_id"], "version": 1} in conflict["relationships"]
    # Said once more it is no second conflict; where the windows are disjoint there is none.
    desk.tell("Ada", "works_at", "Globex", OTHER_AGENT, valid_from="2021-01-01T00:00:00Z", text="At Globex.")
    desk.tell(
        "Ada",
        "works_at",
        "Initech",
        OTHER_AGENT,
        valid_from="2010-01-01T00:00:00Z",
        valid_to="2012-01-01T00:00:00Z",
    )
    assert len(desk.world.sql("select * from conflict")) == 1


def test_the_opposite_is_a_conflict_whoever_says_it(desk: Desk) -> None:
    yes = desk.tell("Ada", "likes", "Tea")
    no = desk.remember([evidence("Ada does not like tea.")], [relation("Ada", "likes", "Tea", polarity="-")])
    assert [w["reason"] for w in no["warnings"]] == ["opposite_polarity"]
    assert history(desk, split(yes)["relationship_id"])[-1]["superseded_at"] is None
    # Many may be liked: another object contradicts nothing.
    desk.tell("Ada", "likes", "Coffee", OTHER_AGENT)
    assert len(desk.world.sql("select * from conflict")) == 1


def test_a_correction_settles_the_conflict(desk: Desk) -> None:
    desk.tell("Ada", "works_at", "Acme")
    theirs = desk.tell("Ada", "works_at", "Globex", OTHER_AGENT)
    target = {"relationship_id": split(theirs)["relationship_id"], "expected_version": 1}
    desk.tell("Ada", "works_at", "Acme", OTHER_AGENT, text="Acme it is.", correction_target=target)
    [row] = desk.world.sql("select status from conflict")
    assert row["status"] == "resolved"


def test_two_mentions_of_a_new_name_are_one_entity(desk: Desk) -> None:
    document = desk.remember(
        [evidence("Ada likes tea, and ADA likes cake. Ada knows Ada's brother.")],
        [
            relation("Ada", "likes", "Tea"),
            relation("ＡＤＡ", "likes", "Cake"),
            relation({"name": "ada"}, "likes", "Milk"),
        ],
    )
    subjects = {split(r)["subject"]["entity_id"] for r in document["relationships"]}
    assert len(subjects) == 1
    assert desk.world.sql("select kind, name from entity_name where name_key = 'ada'") == [
        {"kind": "person", "name": "Ada"}
    ]
    # And the next write finds it, not ambiguous.
    assert desk.tell("Ada", "likes", "Juice")["disposition"] == "stored"


def test_a_name_of_several_is_ambiguous_and_told_apart_by_id(desk: Desk) -> None:
    desk.tell("Springfield", "likes", "Tea")
    desk.remember(
        [evidence("Springfield is a town.")],
        [relation({"name": "Springfield", "entity_kind": "place"}, "likes", "Rain")],
    )
    both = desk.remember(
        [evidence("Springfield has a mayor.")], [relation({"name": "Springfield"}, "has", "Mayor")]
    )
    [result] = both["relationships"]
    assert (result["disposition"], result["reason"], result["splits"]) == (
        "not_stored",
        "ambiguous_entity",
        [],
    )
    assert [item["disposition"] for item in both["evidence"]] == ["stored"]
    kinds = {candidate["kind"]: candidate["entity_id"] for candidate in result["candidates"]}
    assert kinds.keys() == {"person", "place"}
    named = desk.tell({"known_entity_id": kinds["place"]}, "has", "Mayor", text="It has a mayor.")  # type: ignore[arg-type]
    assert split(named)["subject"] == {"entity_id": kinds["place"], "name": "Springfield", "kind": "place"}


def test_more_bearers_of_a_name_than_can_be_shown_are_an_error_that_names_the_proposal(desk: Desk) -> None:
    bobs = [{"name": f"Bob {n}", "kind": "person", "aliases": ["Bob"]} for n in range(51)]
    desk.world.ingest("Many are called Bob.", entities=bobs[:50])
    assert desk.tell("Bob", "likes", "Tea")["reason"] == "ambiguous_entity"
    desk.world.ingest("One more is called Bob.", entities=bobs[50:])
    with pytest.raises(Problem) as caught:
        desk.remember(
            [evidence("Ada and Bob.")],
            [relation("Ada", "likes", "Tea"), relation("Ada", "knows", {"name": "Bob"})],
        )
    assert caught.value.code == "input_budget_exceeded"
    assert [error.pointer for error in caught.value.errors] == ["/relationships/1/object/entity/name"]


def test_a_target_that_is_not_allowed_is_refused_and_never_redirected(desk: Desk) -> None:
    for person in (OUTSIDER, READER):
        with pytest.raises(Problem) as caught:
            desk.tell("Ada", "likes", "Tea", person)
        assert caught.value.code == "forbidden"
    desk.tell("Ada", "likes", "Tea", OUTSIDER, space="private")
    [row] = desk.world.sql("select s.kind from memory m join space s using (space_id)")
    assert row["kind"] == "private"


def test_who_brought_it_is_what_the_server_knows(desk: Desk) -> None:
    """A caller's word for its source, and for its authority, is kept as a word."""
    desk.remember(
        [evidence("One.", source_type="manual", authority="authoritative")], [relation("Ada", "likes", "Tea")]
    )
    desk.remember(
        [evidence("Two.", authority="inferred")], [relation("Ada", "likes", "Tea")], person=REVIEWER
    )
    rows = desk.world.sql(
        "select m.origin, m.source, m.assertion_kind, m.confidence, b.source_type, b.authority"
        " from memory m join submission b using (memory_id) order by m.content"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("model", "memory", "stated", 1.0, "manual", "authoritative"),
        ("human", "manual", "inferred", 0.9, "conversation", "inferred"),
    ]


def test_a_reference_that_does_not_hold_is_stale_with_its_pointer(desk: Desk) -> None:
    ada = split(desk.tell("Ada", "likes", "Tea"))["subject"]["entity_id"]
    private = split(desk.tell("Bob", "likes", "Tea", space="private"))["subject"]["entity_id"]
    for bad in ("ent_" + "0" * 32, private):
        with pytest.raises(Problem) as caught:
            desk.remember(
                [evidence("X.")],
                [
                    relation({"known_entity_id": ada}, "likes", {"known_entity_id": bad}),
                    {
                        **relation({"known_entity_id": ada}, "likes", "Tea", ref="second"),
                        "predicate": {"known_predicate_key": "unheard_of"},
                    },
                ],
            )
        assert caught.value.code == "stale_input"
        assert [error.pointer for error in caught.value.errors] == [
            "/relationships/0/object/entity/known_entity_id",
            "/relationships/1/predicate/known_predicate_key",
        ]


def test_predicates_are_registered_once_with_their_other_name(desk: Desk) -> None:
    from dataclasses import replace

    from remembrancer.domain.assessment import Assessment, AssessmentRequest, Register

    def under_another_key(asked: AssessmentRequest, given: Assessment) -> Assessment:
        register = Register("employed_by", "state", "one", ("person",), ("organization",))
        [verdict] = given.proposals
        [one] = verdict.splits
        return replace(given, proposals=(replace(verdict, splits=(replace(one, predicate=register),)),))

    desk.remember(
        [evidence("Ada earns her bread at Acme.")],
        [relation("Ada", "earns_bread_at", "Acme")],
        decide=under_another_key,
    )
    [row] = desk.world.sql("select kind, cardinality, subject_kinds, object_kinds from predicate")
    assert row == {
        "kind": "state",
        "cardinality": "one",
        "subject_kinds": ["person"],
        "object_kinds": ["organization"],
    }
    again = desk.tell("Bob", "earns_bread_at", "Globex")
    assert split(again)["predicate"] == {"key": "employed_by", "kind": "state", "cardinality": "one"}
    assert desk.world.call(READER, "GET", "/v1/predicates").json["predicates"] == [
        {
            "predicate": "employed_by",
            "kind": "state",
            "cardinality": "one",
            "subject_kinds": ["person"],
            "object_kinds": ["organization"],
            "aliases": ["earns_bread_at"],
            "space": "team_shared",
        }
    ]


def test_one_statement_split_in_a_batch_against_itself(desk: Desk) -> None:
    """Two rivals with one start: the later one holds, the earlier is in the history and was never believed."""
    start = "2019-01-01T00:00:00Z"
    document = desk.remember(
        [evidence("Ada works at Acme. No: at Globex.")],
        [
            relation("Ada", "works_at", "Acme", valid_from=start),
            relation("Ada", "works_at", "Globex", valid_from=start),
        ],
    )
    acme, globex = (split(result) for result in document["relationships"])
    assert current(desk, "2020-06-01") == ["Globex"]
    [never] = history(desk, acme["relationship_id"])
    assert never["superseded_at"] == never["created_at"]
    assert never["superseded_by"] == globex["relationship_id"]


def test_remembered_evidence_is_recalled_through_its_relationship_alone(desk: Desk) -> None:
    from dataclasses import replace as changed

    from remembrancer.domain.assessment import Assessment, AssessmentRequest, ProposalVerdict

    def unsupported(asked: AssessmentRequest, given: Assessment) -> Assessment:
        return changed(given, proposals=tuple(ProposalVerdict(p.ref, False) for p in asked.proposals))

    stored = desk.remember([evidence("Quokkas sing.")], [relation("Ada", "likes", "Tea")], decide=unsupported)
    [result] = stored["relationships"]
    assert (result["disposition"], result["reason"]) == ("not_stored", "not_supported_by_evidence")
    [item] = stored["evidence"]
    assert item["disposition"] == "stored"
    include = {"include": ["nearest"]}
    assert desk.world.recall("Quokkas sing.", **include).get("nearest", []) == []
    later = desk.remember([evidence("Quokkas sing.")], [relation("Quokkas", "likes", "Songs")])
    assert later["evidence"][0]["evidence_id"] == item["evidence_id"]
    answer = desk.world.recall("Quokkas sing.", **include)
    assert [h["memory_id"] for h in [*answer["hits"], *answer.get("nearest", [])]] == [item["evidence_id"]]


def test_what_is_past_is_not_now(desk: Desk) -> None:
    """Evidence whose only relationship is over is not recalled by default, and is by its time."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    desk.tell(
        "Ada",
        "works_at",
        "Acme",
        text="Ada was at Acme.",
        valid_from="2019-01-01T00:00:00Z",
        valid_to=yesterday,
    )
    found = desk.world.recall("Ada was at Acme.", include=["nearest"])
    assert [*found["hits"], *found.get("nearest", [])] == []


def test_a_measure_is_the_same_whichever_path_and_unit_it_came_by(desk: Desk) -> None:
    tall = split(desk.tell("Ada", "has_age", {"type": "number", "value": "1.8", "unit": "m"}))
    said = {"subject": "Ada", "subject_kind": "person", "predicate": "has_age"}
    value = {"type": "number", "value": 180, "unit": "cm"}
    again = desk.world.ingest("She is 180 cm tall.", relations=[{**said, "value": value}])
    assert again["relationship_ids"] == [tall["relationship_id"]]
    theirs = desk.world.ingest("180 cm, says the other.", OTHER_AGENT, relations=[{**said, "value": value}])
    assert theirs["conflict"] is None
    desk.tell("Ada", "has_age", {"type": "number", "value": 1800, "unit": "mm"}, OTHER_AGENT)
    assert desk.world.sql("select * from conflict") == []
