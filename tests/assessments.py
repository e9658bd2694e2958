"""Requests to an assessor, and answers that are valid for them, for tests to bend."""

from __future__ import annotations

import json
from typing import Any

from remembrancer.domain.assessment import (
    AssessmentRequest,
    DuplicateOption,
    EntityOption,
    EvidenceView,
    KnownView,
    MentionView,
    PredicateOption,
    PredicateView,
    ProposalView,
    ValueView,
)

ANNA = "Anna Keller works at Globex. She lives in Porto."
BUDGET = "The project Nightingale has a budget of 250,000 euros."

GLOBEX = EntityOption("n1", "Globex", "organization", ("Globex Corp",))
OTHER_GLOBEX = EntityOption("n2", "Globex", "organization")
WORKS_AT = PredicateOption("p1", "works_at", "state", "one", ("person",), ("organization",), ("employed_by",))
LIKES = PredicateOption("p2", "likes", "state", "many")


def person(name: str, *options: EntityOption, required: str | None = None) -> MentionView:
    return MentionView(name, "person", options, required)


def employment(**changes: Any) -> ProposalView:
    view: dict[str, Any] = {
        "ref": "r1",
        "subject": person("Anna Keller"),
        "predicate": PredicateView("works_at", (WORKS_AT, LIKES)),
        "object": MentionView("Globex", "organization", (GLOBEX,)),
        "polarity": "+",
        "valid_from": "2020-01-01T00:00:00Z",
        "valid_to": None,
        "evidence": ("e1",),
        "known": ("k1",),
    }
    return ProposalView(**(view | changes))


def money(**changes: Any) -> ProposalView:
    view: dict[str, Any] = {
        "ref": "r2",
        "subject": MentionView("Nightingale", "project"),
        "predicate": PredicateView("budget"),
        "object": ValueView("number", "250000", "250,000", "EUR"),
        "polarity": "+",
        "valid_from": None,
        "valid_to": None,
        "evidence": ("e2",),
    }
    return ProposalView(**(view | changes))


def request(*proposals: ProposalView, texts: tuple[str, ...] = (ANNA, BUDGET)) -> AssessmentRequest:
    """Two pieces of evidence; the first has a duplicate candidate."""
    evidence = [EvidenceView(f"e{index}", text) for index, text in enumerate(texts, start=1)]
    evidence[0] = EvidenceView("e1", texts[0], (DuplicateOption("d1", "Anna is with Globex."),))
    return AssessmentRequest(
        tuple(evidence), proposals or (employment(), money()), (KnownView("k1", "Globex is in Springfield."),)
    )


def answer() -> dict[str, Any]:
    """Valid for `request()`."""
    return {
        "evidence": [
            {"ref": "e1", "security": "pass", "findings": [], "duplicate": "d1"},
            {"ref": "e2", "security": "pass", "findings": [], "duplicate": "new"},
        ],
        "proposals": [
            {
                "ref": "r1",
                "disposition": "stored",
                "splits": [
                    {
                        "subject": {"resolution": "create", "entity": None, "name": "Anna Keller"},
                        "predicate": {"choose": "p1", "register": None},
                        "object": {"resolution": "reuse", "entity": "n1", "name": "Globex", "value": None},
                        "polarity": "+",
                        "valid_from": "2020-01-01T00:00:00Z",
                        "valid_to": None,
                        "supports": [{"evidence": "e1", "quote": "works at Globex", "occurrence": 1}],
                    }
                ],
            },
            {
                "ref": "r2",
                "disposition": "stored",
                "splits": [
                    {
                        "subject": {"resolution": "create", "entity": None, "name": "Nightingale"},
                        "predicate": {
                            "choose": None,
                            "register": {
                                "key": "budget",
                                "kind": "state",
                                "cardinality": "one",
                                "subject_kinds": ["project", "organization"],
                                "object_kinds": ["number"],
                            },
                        },
                        "object": {"resolution": "value", "entity": None, "name": None, "value": "250000"},
                        "polarity": "+",
                        "valid_from": None,
                        "valid_to": None,
                        "supports": [
                            {"evidence": "e2", "quote": "a budget of 250,000 euros", "occurrence": 1}
                        ],
                    }
                ],
            },
        ],
    }


def text(document: object) -> str:
    return json.dumps(document, ensure_ascii=False)
