"""From references to ids; what is offered to the assessor for a name and for a predicate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.assessment import (
    Ambiguous,
    Assessment,
    Chosen,
    Create,
    EvidenceVerdict,
    PredicateOption,
    ProposalVerdict,
    Register,
    Reuse,
    Split,
    SupportSpan,
)
from remembrancer.domain.remember_plan import (
    Context,
    DuplicateCandidate,
    EntityCandidate,
    EvidenceContext,
    EvidencePlan,
    Mention,
    PredicateContext,
    ProposalContext,
    Span,
    Target,
    evidence_key,
    plan,
    text_keys,
)
from remembrancer.flows.remember_context import bearing, ranked

STORED, EXACT = Target(UUID(int=1), 1), Target(UUID(int=2), 3)
ADA = EntityCandidate("n1", UUID(int=10), "Ada", "person")
TOWN = EntityCandidate("n2", UUID(int=11), "Ada", "place")
CONTEXT = Context(
    space_id=UUID(int=90),
    generation=4,
    owner_id=UUID(int=91),
    contract="quick",
    evidence=(
        EvidenceContext("e1", duplicates=(DuplicateCandidate("d1", STORED, "text"),)),
        EvidenceContext("e2", exact=EXACT),
        EvidenceContext("e3", same_as=0),
    ),
    proposals=(
        ProposalContext(
            "r1",
            Mention("Ada", "ada", "other", ("n1", "n2")),
            PredicateContext("likes", ("p1",)),
            Mention("Tea", "tea", "other"),
            None,
        ),
    ),
    entities=(ADA, TOWN),
    predicates=(PredicateOption("p1", "likes", "state", "many"),),
)
SPLIT = Split(Reuse("n1"), Create(), Chosen("p1"), (SupportSpan("e2", 3, 5),))
GIVEN = Assessment(
    tuple(EvidenceVerdict(f"e{n}", False, duplicate="d1" if n == 1 else None) for n in (1, 2, 3)),
    (ProposalVerdict("r1", True, (SPLIT,)),),
)


def stored(*splits: Split) -> Assessment:
    return replace(GIVEN, proposals=(ProposalVerdict("r1", bool(splits), splits),))


def test_references_become_ids() -> None:
    made = plan(CONTEXT, GIVEN)
    assert made.evidence == (EvidencePlan(STORED, None), EvidencePlan(EXACT, None), EvidencePlan(STORED, 0))
    [edge] = made.edges
    assert (edge.subject.entity_id, edge.subject.kind) == (UUID(int=10), "person")
    assert edge.object is not None
    assert (edge.object.entity_id, edge.object.name, edge.object.key) == (None, "Tea", "tea")
    assert (edge.predicate, edge.register, edge.supports) == ("likes", None, (Span(1, 3, 5),))
    assert made.not_stored == {}


def test_a_registration_keeps_its_form() -> None:
    register = Register("is_fond_of", "state", "many")
    [edge] = plan(CONTEXT, stored(replace(SPLIT, predicate=register))).edges
    assert (edge.predicate, edge.register) == ("is_fond_of", register)


def test_what_is_not_stored_and_why() -> None:
    assert plan(CONTEXT, stored()).not_stored[0].reason == "not_supported_by_evidence"
    ambiguous = plan(CONTEXT, stored(replace(SPLIT, subject=Ambiguous())))
    assert ambiguous.edges == ()
    assert ambiguous.not_stored[0].reason == "ambiguous_entity"
    assert ambiguous.not_stored[0].candidates == (ADA, TOWN)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GIVEN, evidence=GIVEN.evidence[:2]),
        replace(GIVEN, evidence=(replace(GIVEN.evidence[0], ref="e9"), *GIVEN.evidence[1:])),
        replace(GIVEN, evidence=(replace(GIVEN.evidence[0], rejected=True), *GIVEN.evidence[1:])),
        replace(GIVEN, evidence=(replace(GIVEN.evidence[0], duplicate="d2"), *GIVEN.evidence[1:])),
        replace(GIVEN, proposals=()),
        replace(GIVEN, proposals=(replace(GIVEN.proposals[0], ref="r2"),)),
        stored(replace(SPLIT, subject=Reuse("n9"))),
        stored(replace(SPLIT, object=None)),
        stored(replace(SPLIT, predicate=Chosen("p9"))),
        stored(replace(SPLIT, supports=(SupportSpan("e9", 0, 1),))),
    ],
)
def test_an_assessment_of_something_else_is_none(wrong: Assessment) -> None:
    with pytest.raises((KeyError, ValueError)):
        plan(CONTEXT, wrong)


def test_the_context_survives_its_json() -> None:
    assert Context.from_json(CONTEXT.to_json()) == CONTEXT
    assert CONTEXT.shown == {STORED.memory_id}
    with pytest.raises(ValueError, match="not a context"):
        Context.from_json({"space_id": "x"})


def test_evidence_is_told_apart_by_space_owner_and_bytes() -> None:
    keys = {
        evidence_key(UUID(int=space), UUID(int=owner), text)
        for space in (1, 2)
        for owner in (1, 2)
        for text in ("a", "b")
    }
    assert len(keys) == 8
    assert len(set(text_keys(UUID(int=1), UUID(int=1), "a", "global"))) == 6


def rows(*kinds: str) -> list[dict[str, Any]]:
    """`was/is` is what it was under the name before it was merged, and what it is."""
    return [
        {"entity_id": UUID(int=n), "kind": kind.rpartition("/")[2], "named_kind": kind.partition("/")[0]}
        for n, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "mentioned", "meant"),
    [
        (("person", "place", "other"), "person", ["person"]),
        (("place", "other"), "person", ["other"]),
        (("place",), "person", []),
        (("product/organization", "place"), "product", ["organization"]),
        (("product/organization", "place"), "organization", ["organization"]),
        (("place", "person", "other"), "other", ["place", "person", "other"]),
        ((), "other", []),
    ],
)
def test_who_may_be_meant(kinds: tuple[str, ...], mentioned: str, meant: list[str]) -> None:
    assert [row["kind"] for row in bearing(rows(*kinds) * 2, mentioned)] == meant


def predicate(key: str, *aliases: str) -> dict[str, Any]:
    return {"predicate_key": key, "aliases": list(aliases)}


def test_a_key_then_an_alias_then_the_most_alike() -> None:
    registry = [predicate("likes"), predicate("works_at", "employed_by"), predicate("lives_in")]

    def offered(key: str) -> list[str]:
        return [row["predicate_key"] for row in ranked(key, registry)]

    assert offered("likes") == ["likes"]
    assert offered("employed_by") == ["works_at"]
    assert offered("works_for")[0] == "works_at" and len(offered("works_for")) == 3
    assert len(ranked("x", [predicate(f"p_{n}") for n in range(300)])) == 20
