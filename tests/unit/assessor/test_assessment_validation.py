"""An answer is valid as a whole or not at all; what is wrong with it is told completely and without its text."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.assessment import (
    MAX_ISSUES,
    Assessment,
    Chosen,
    Create,
    EvidenceVerdict,
    MentionView,
    PredicateView,
    ProposalVerdict,
    Register,
    Reuse,
    SecurityFinding,
    Split,
    SupportSpan,
)
from remembrancer.domain.assessment_validation import MAX_ANSWER, validate
from tests import assessments as a

Change = Callable[[dict[str, Any]], object]
Fault = tuple[str, Change, list[tuple[str, str]]]


def bent(change: Change) -> dict[str, Any]:
    document = a.answer()
    change(document)
    return document


def codes(document: object, asked: object = None) -> list[tuple[str, str]]:
    found = validate(asked or a.request(), a.text(document))  # type: ignore[arg-type]
    return [] if isinstance(found, Assessment) else [(issue.pointer, issue.code) for issue in found]


def test_a_valid_answer_becomes_an_assessment_with_exact_spans() -> None:
    made = validate(a.request(), a.text(a.answer()))
    start = a.BUDGET.index("a budget")
    assert made == Assessment(
        (EvidenceVerdict("e1", False, (), "d1"), EvidenceVerdict("e2", False)),
        (
            ProposalVerdict(
                "r1",
                True,
                (Split(Create(), Reuse("n1"), Chosen("p1"), (SupportSpan("e1", 12, 27),)),),
            ),
            ProposalVerdict(
                "r2",
                True,
                (
                    Split(
                        Create(),
                        None,
                        Register("budget", "state", "one", ("organization", "project"), ("number",)),
                        (SupportSpan("e2", start, start + 25),),
                    ),
                ),
            ),
        ),
    )
    assert Assessment.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_the_order_of_an_answer_says_nothing() -> None:
    turned = bent(lambda d: (d["evidence"].reverse(), d["proposals"].reverse()))
    assert validate(a.request(), a.text(turned)) == validate(a.request(), a.text(a.answer()))


def split(document: dict[str, Any], proposal: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["proposals"][proposal]["splits"][0]
    return found


def setting(path: str, value: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        *parents, last = path.strip("/").split("/")
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value

    return change


def fault(name: str, path: str, value: object, code: str, *, at: str | None = None) -> Fault:
    return name, setting(path, value), [(path if at is None else at, code)]


S1, S2 = "/proposals/0/splits/0", "/proposals/1/splits/0"
REGISTER = f"{S2}/predicate/register"
FAULTS: list[Fault] = [
    ("evidence left out", lambda d: d["evidence"].pop(), [("/evidence", "evidence_missing")]),
    ("proposal left out", lambda d: d["proposals"].pop(0), [("/proposals", "proposal_missing")]),
    (
        "evidence twice",
        lambda d: d["evidence"].append(d["evidence"][0]),
        [("/evidence/2/ref", "ref_repeated")],
    ),
    (
        "a relationship nobody proposed",
        lambda d: d["proposals"].append({**d["proposals"][0], "ref": "r3"}),
        [("/proposals/2/ref", "unknown_ref")],
    ),
    (
        "proposal twice",
        lambda d: d["proposals"].append(d["proposals"][0]),
        [("/proposals/2/ref", "ref_repeated")],
    ),
    fault("a lying counter", "/evidence_count", 7, "unknown_member", at=""),
    fault("an unknown member deep inside", f"{S1}/subject/id", "x", "unknown_member", at=f"{S1}/subject"),
    ("a member left out", lambda d: d["evidence"][0].pop("security"), [("/evidence/0", "missing")]),
    fault("null for a list", "/evidence", None, "not_list"),
    fault("null for supports", f"{S1}/supports", None, "not_list"),
    (
        "a number for a text",
        setting("/evidence/1/ref", 2),
        [("/evidence/1/ref", "not_text"), ("/evidence", "evidence_missing")],
    ),
    (
        "an item that is no object",
        setting("/proposals/1", "r2"),
        [("/proposals/1", "not_object"), ("/proposals", "proposal_missing")],
    ),
    fault("security in other words", "/evidence/0/security", "PASS", "not_allowed"),
    fault(
        "reject without a finding",
        "/evidence/0/security",
        "reject",
        "finding_missing",
        at="/evidence/0/findings",
    ),
    (
        "pass with a finding",
        setting("/evidence/0/findings", [{"kind": "other", "quote": "Anna", "occurrence": 1}]),
        [("/evidence/0/findings", "finding_unexpected")],
    ),
    fault("a candidate of another item", "/evidence/1/duplicate", "d1", "unknown_ref"),
    fault("no splits", "/proposals/0/splits", [], "splits_missing"),
    (
        "splits of what is not supported",
        setting("/proposals/0/disposition", "not_supported"),
        [("/proposals/0/splits", "splits_unexpected")],
    ),
    (
        "the same split twice",
        lambda d: d["proposals"][0]["splits"].append(split(d)),
        [("/proposals/0/splits/1", "split_repeated")],
    ),
    (
        "51 splits",
        lambda d: d["proposals"][0].update(splits=[split(d)] * 51),
        [*[(f"/proposals/0/splits/{n}", "split_repeated") for n in range(1, 50)]],
    ),
    fault("another polarity", f"{S1}/polarity", "-", "polarity_differs"),
    fault("another validity", f"{S1}/valid_from", "2020-01-01T00:00:00+00:00", "validity_differs"),
    fault("validity made up", f"{S2}/valid_to", "2030-01-01T00:00:00Z", "validity_differs"),
    fault("another subject", f"{S1}/subject/name", "Anna", "name_differs"),
    fault("another value", f"{S2}/object/value", "250000.0", "value_differs"),
    fault("a value that is a number", f"{S2}/object/value", 250000, "value_differs"),
    fault("an entity for a value", f"{S2}/object/resolution", "create", "object_differs"),
    fault("a value for an entity", f"{S1}/object/resolution", "value", "object_differs"),
    fault("a value beside an entity", f"{S1}/object/value", "Globex", "object_differs"),
    fault("an entity beside a value", f"{S2}/object/entity", "n1", "object_differs"),
    fault("an entity that was not offered", f"{S1}/object/entity", "n9", "unknown_ref"),
    fault("a database id", f"{S1}/object/entity", "ent_01890c5e", "unknown_ref"),
    fault(
        "an entity offered elsewhere",
        f"{S2}/subject",
        {"resolution": "reuse", "entity": "n1", "name": "Nightingale"},
        "unknown_ref",
        at=f"{S2}/subject/entity",
    ),
    fault("reuse of nothing", f"{S1}/object/entity", None, "entity_missing"),
    (
        "create what exists",
        setting(f"{S1}/object", {"resolution": "create", "entity": None, "name": "Globex", "value": None}),
        [(f"{S1}/object/resolution", "entity_exists")],
    ),
    fault("create with a reference", f"{S1}/subject/entity", "n1", "entity_unexpected"),
    (
        "ambiguous among nothing",
        setting(f"{S1}/subject/resolution", "ambiguous"),
        [(f"{S1}/subject/resolution", "ambiguous_nothing")],
    ),
    fault("no predicate", f"{S1}/predicate/choose", None, "predicate_choice", at=f"{S1}/predicate"),
    fault("two predicates", f"{S2}/predicate/choose", "p1", "predicate_choice", at=f"{S2}/predicate"),
    fault("a predicate that was not offered", f"{S1}/predicate/choose", "p9", "unknown_ref"),
    fault("not the exact predicate", f"{S1}/predicate/choose", "p2", "predicate_exact"),
    fault("a key that is active", f"{REGISTER}/key", "likes", "predicate_exists"),
    fault("an alias that is active", f"{REGISTER}/key", "employed_by", "predicate_exists"),
    fault("a key of another form", f"{REGISTER}/key", "Budget!", "predicate_key"),
    fault("a key of 65 characters", f"{REGISTER}/key", "b" * 65, "predicate_key"),
    fault("a cardinality of our own", f"{REGISTER}/cardinality", "two", "not_allowed"),
    fault(
        "a kind twice",
        f"{REGISTER}/subject_kinds",
        ["project", "project"],
        "repeated",
        at=f"{REGISTER}/subject_kinds/1",
    ),
    (
        "a kind that is none",
        setting(f"{REGISTER}/object_kinds", ["money"]),
        [(f"{REGISTER}/object_kinds/0", "not_allowed")],
    ),
    fault(
        "kinds that exclude the object",
        f"{REGISTER}/object_kinds",
        ["string"],
        "predicate_kinds",
        at=f"{S2}/predicate",
    ),
    fault("no supports", f"{S1}/supports", [], "too_few"),
    fault("support from known evidence", f"{S1}/supports/0/evidence", "k1", "unknown_ref"),
    (
        "support from evidence not cited",
        setting(f"{S1}/supports/0", {"evidence": "e2", "quote": "budget", "occurrence": 1}),
        [(f"{S1}/supports/0/evidence", "support_not_cited")],
    ),
    fault("a quote from nowhere", f"{S1}/supports/0/quote", "works for Globex", "quote_not_found"),
    fault("a quote in other case", f"{S1}/supports/0/quote", "Works at Globex", "quote_not_found"),
    fault("a quote that cuts a word", f"{S1}/supports/0/quote", "orks at Globe", "quote_not_found"),
    fault("a blank quote", f"{S1}/supports/0/quote", " ", "quote_empty"),
    fault("an occurrence too many", f"{S1}/supports/0/occurrence", 2, "occurrence_not_found"),
    fault("an occurrence of zero", f"{S1}/supports/0/occurrence", 0, "occurrence_not_found"),
    fault("true for one", f"{S1}/supports/0/occurrence", True, "not_integer"),
    (
        "the same support twice",
        lambda d: split(d)["supports"].append(split(d)["supports"][0]),
        [(f"{S1}/supports/1", "support_repeated")],
    ),
]


@pytest.mark.parametrize(("change", "expected"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_every_fault_is_named_where_it_is(change: Change, expected: list[tuple[str, str]]) -> None:
    found = codes(bent(change))
    if expected[0][1] == "split_repeated" and len(expected) > 1:
        assert found == [("/proposals/0/splits", "too_many"), *expected]
    else:
        assert found == expected


def test_faults_in_one_place_hide_none_in_another() -> None:
    document = a.answer()
    singles = []
    chosen = [f for f in FAULTS if f[0] in ("security in other words", "another polarity", "a key that is active",
              "a candidate of another item", "an occurrence too many", "another value", "a lying counter")]  # fmt: skip
    for _, change, expected in chosen:
        change(document)
        singles += expected
    assert sorted(codes(document)) == sorted(singles)


def test_the_issues_are_at_most_a_hundred_and_hold_no_text_of_the_answer() -> None:
    canary = "canary-7f3a"
    document = a.answer()
    split(document)["supports"] = [{"evidence": canary, "quote": canary, canary: canary}] * 20
    document["proposals"] += [{"ref": canary, "disposition": canary, "splits": canary}] * 150
    found = validate(a.request(), a.text(document))
    assert isinstance(found, tuple) and len(found) == MAX_ISSUES
    assert canary not in str(found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_json"),
        ("null", "not_object"),
        ("[]", "not_object"),
        ("Here is the answer: " + a.text(a.answer()), "not_json"),
        ("```json\n" + a.text(a.answer()) + "\n```", "not_json"),
        ("I looked at {this} and {that}.\n" + a.text(a.answer()), "not_json"),
        (a.text(a.answer())[:-40], "not_json"),
        (a.text(a.answer()) + a.text(a.answer()), "not_json"),
        ('{"evidence": [], "evidence": [], "proposals": []}', "duplicate_member"),
        ('{"evidence": NaN, "proposals": []}', "not_json"),
        ("[" * 200_000, "too_deep"),
        ('{"a":' * 100_000, "too_deep"),
        ('{"n": ' + "9" * 10_000 + "}", "not_json"),
        (" " * (MAX_ANSWER + 1), "too_long"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_answer_is_not_searched_for_one(text: str, code: str) -> None:
    found = validate(a.request(), text)
    assert isinstance(found, tuple) and [issue.code for issue in found] == [code]


@pytest.mark.parametrize("stop", ["truncated", "malformed"])
def test_an_answer_that_did_not_end_well_is_not_read_even_when_it_parses(
    stop: Literal["truncated", "malformed"],
) -> None:
    found = validate(a.request(), a.text(a.answer()), stop)
    assert isinstance(found, tuple) and [issue.code for issue in found] == [stop]


def test_a_rejection_carries_the_spans_of_what_is_unsafe() -> None:
    finding = {"kind": "role_spoofing", "quote": "Porto", "occurrence": 1}
    document = bent(lambda d: d["evidence"][0].update(security="reject", findings=[finding]))
    made = validate(a.request(), a.text(document))
    assert isinstance(made, Assessment)
    at = a.ANNA.index("Porto")
    assert made.evidence[0] == EvidenceVerdict(
        "e1", True, (SecurityFinding("role_spoofing", at, at + 5),), "d1"
    )


def test_a_required_entity_and_predicate_are_the_only_right_ones() -> None:
    asked = a.request(
        a.employment(
            object=MentionView("Globex", "organization", (a.GLOBEX, a.OTHER_GLOBEX), required="n2"),
            predicate=PredicateView(None, (a.LIKES,), required="p2"),
        ),
        a.money(),
    )
    document = a.answer()
    assert codes(document, asked) == [
        (f"{S1}/object/entity", "entity_required"),
        (f"{S1}/predicate/choose", "unknown_ref"),
    ]
    split(document)["object"]["resolution"] = "ambiguous"
    split(document)["object"]["entity"] = None
    split(document)["predicate"] = a.answer()["proposals"][1]["splits"][0]["predicate"]
    split(document)["predicate"]["register"] |= {"object_kinds": [], "subject_kinds": []}
    split(document, 1)["predicate"] = split(document)["predicate"]
    assert codes(document, asked) == [
        (f"{S1}/object/resolution", "entity_required"),
        (f"{S1}/predicate/register", "predicate_required"),
    ]
    split(document)["object"] = {"resolution": "reuse", "entity": "n2", "name": "Globex", "value": None}
    split(document)["predicate"] = {"choose": "p2", "register": None}
    assert codes(document, asked) == []


def test_an_ambiguous_entity_makes_the_only_split() -> None:
    both = MentionView("Globex", "organization", (a.GLOBEX, a.OTHER_GLOBEX))
    asked = a.request(a.employment(object=both), a.money())
    document = a.answer()
    unclear = copy.deepcopy(split(document))
    unclear["object"] |= {"resolution": "ambiguous", "entity": None}
    document["proposals"][0]["splits"].append(unclear)
    assert codes(document, asked) == [("/proposals/0/splits", "ambiguous_alone")]
    document["proposals"][0]["splits"].pop(0)
    assert codes(document, asked) == []


def test_one_new_key_is_one_predicate() -> None:
    asked = a.request(a.money(), a.money(ref="r3"))
    document = a.answer()
    document["proposals"] = [document["proposals"][1], copy.deepcopy(document["proposals"][1])]
    document["proposals"][1]["ref"] = "r3"
    assert codes(document, asked) == []
    split(document, 1)["predicate"]["register"]["cardinality"] = "many"
    assert codes(document, asked) == [("/proposals/1/splits/0/predicate/register", "predicate_contradicts")]


def test_an_alias_is_as_exact_as_a_key() -> None:
    asked = a.request(a.employment(predicate=PredicateView("employed_by", (a.WORKS_AT, a.LIKES))), a.money())
    assert codes(a.answer(), asked) == []
    document = bent(setting(f"{S1}/predicate/choose", "p2"))
    assert codes(document, asked) == [(f"{S1}/predicate/choose", "predicate_exact")]


def test_nothing_is_spliced_from_two_answers() -> None:
    """Each has one right half; together they would be right."""
    first = bent(setting(f"{S1}/polarity", "-"))
    second = bent(setting(f"{S2}/object/value", "1"))
    assert codes(first) and codes(second)
    right = {"evidence": first["evidence"], "proposals": [second["proposals"][0], first["proposals"][1]]}
    assert codes(right) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON | st.text(), st.data())
def test_no_answer_breaks_the_reader(value: object, data: st.DataObject) -> None:
    """A valid answer with any value anywhere, or any text: an assessment that equals the valid one, or issues."""
    document: Any = a.answer()
    place = document
    while True:
        at = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[at], (dict, list)) and place[at] and data.draw(st.booleans()):
            place = place[at]
            continue
        changed = place[at] != value or type(place[at]) is not type(value)
        place[at] = value
        break
    found = validate(a.request(), a.text(document))
    assert isinstance(found, Assessment) or (changed and 1 <= len(found) <= MAX_ISSUES)
    if isinstance(value, str):
        validate(a.request(), value)


def test_the_worst_answer_is_read_in_time() -> None:
    """A megabyte of supports that quote the letter that the evidence repeats."""
    evidence = "a " * 2_000
    asked = a.request(a.employment(), texts=(evidence, a.BUDGET))
    support = {"evidence": "e1", "quote": "a", "occurrence": 2_000}
    document = a.answer()
    one = split(document) | {"supports": [support] * 20}
    document["proposals"] = [document["proposals"][0] | {"splits": [one] * 50}] * 12
    text = a.text(document)
    assert len(text) < MAX_ANSWER
    began = time.process_time()
    validate(asked, text)
    assert time.process_time() - began < 2


def test_an_entity_of_another_kind_is_not_reused() -> None:
    place = replace(a.GLOBEX, kind="place")
    asked = a.request(a.employment(object=MentionView("Globex", "organization", (place,))), a.money())
    assert codes(a.answer(), asked)[0] == (f"{S1}/object/entity", "entity_kind")
