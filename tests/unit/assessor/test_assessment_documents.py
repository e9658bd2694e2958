"""What lies between two steps as JSON comes back as it was, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.assessment import (
    Ambiguous,
    Assessment,
    AssessmentRequest,
    Chosen,
    Conversation,
    Create,
    EvidenceVerdict,
    Issue,
    ProposalVerdict,
    Register,
    Reuse,
    Split,
    SupportSpan,
    Turn,
)
from tests import assessments as a

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
ENDS = st.builds(Reuse, ANY_TEXT) | st.builds(Create) | st.builds(Ambiguous)
PREDICATES = st.builds(Chosen, ANY_TEXT) | st.builds(
    Register, ANY_TEXT, st.just("event"), st.just("one"), st.just(("person",)), st.just(("number", "other"))
)
SPLITS = st.builds(Split, ENDS, st.none() | ENDS, PREDICATES, st.just((SupportSpan("e1", 0, 4),)))
ASSESSMENTS = st.builds(
    Assessment,
    st.just((EvidenceVerdict("e1", False, (), "d1"),)),
    st.lists(
        st.builds(ProposalVerdict, ANY_TEXT, st.just(True), st.lists(SPLITS, max_size=3).map(tuple))
    ).map(tuple),
)


@given(ASSESSMENTS)
def test_an_assessment_comes_back_as_it_was(made: Assessment) -> None:
    assert Assessment.from_json(json.loads(json.dumps(made.to_json()))) == made


@given(st.lists(ANY_TEXT, max_size=2))
def test_a_conversation_comes_back_whatever_a_model_said(answers: list[str]) -> None:
    issue = Issue("/evidence/0", "missing", "A required member is missing.")
    made = Conversation(a.request(), tuple(Turn(answer, (issue,)) for answer in answers))
    assert Conversation.from_json(json.loads(json.dumps(made.to_json()))) == made


def bent(**changes: Any) -> dict[str, Any]:
    return {**a.request().to_json(), **changes}


@pytest.mark.parametrize(
    "document",
    [
        {},
        bent(evidence=None),
        bent(evidence=[{"ref": "canary-31"}]),
        bent(proposals="canary-31"),
        bent(known=[7]),
    ],
)
def test_another_document_is_refused_without_being_shown(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        AssessmentRequest.from_json(document)
    assert "canary-31" not in str(caught.value)
