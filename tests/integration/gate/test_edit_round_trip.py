"""What a reviewer is shown of a proposal is all of it: sent back as an edit, it changes nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from remembrancer.domain.requests import ProposalRequest
from tests.integration.world import REVIEWER, World

EVERYTHING = {
    "content": "The project budget is 55000 dollars, says the wiki.",
    "title": "Budget",
    "kind": "decision",
    "domain": "finance",
    "author": "Jon",
    "source": "connector:wiki",
    "assertion_kind": "inferred",
    "observed_at": "2024-03-01T09:30:00.123456+02:00",
    "valid_from": "2024-03-01T00:00:00Z",
    "valid_to": "2034-03-01T00:00:00Z",
    "expires_at": "2033-01-01T00:00:00Z",
    "data_subjects": ["jon"],
    "source_uri": "https://wiki.example.org/budget#2024",
    "revision": "r17",
    "entities": [{"name": "Project", "kind": "project", "aliases": ["Apollo"]}],
    "relations": [
        {
            "subject": "Project",
            "subject_kind": "project",
            "predicate": "has_budget",
            "value": {"type": "number", "value": 55000.5, "unit": "dollar"},
            "polarity": "-",
            "valid_from": "2024-03-01T00:00:00Z",
        },
        {"subject": "Project", "predicate": "led_by", "object": "Jon", "object_kind": "person"},
        {"subject": "Project", "predicate": "is_open", "value": {"type": "boolean", "value": True}},
    ],
    "source_prompt": "Summarize the wiki.",
}


def said_again(shown: dict[str, Any]) -> dict[str, Any]:
    """The request that a client makes of what it was shown."""
    renamed = {**shown, "expires_at": shown["memory_expires_at"]}
    return {name: renamed[name] for name in ProposalRequest.model_fields if renamed[name] is not None}


def body_of(world: World, proposal: str) -> Any:
    [row] = world.sql("select body from proposal where proposal_id = %s", proposal.removeprefix("prop_"))
    return row["body"]


def test_an_edit_without_a_change_changes_nothing(world: World) -> None:
    assert set(EVERYTHING) == set(ProposalRequest.model_fields), "a field of a proposal is not tried here"
    proposal = world.propose(**EVERYTHING)["proposal_id"]
    before, shown = body_of(world, proposal), world.shown(proposal)
    edit = {"content_digest": shown["content_digest"], "proposal": said_again(shown)}
    reply = world.call(REVIEWER, "POST", f"/v1/proposals/{proposal}/edit", edit)
    assert reply.status == 200, reply.text
    assert reply.json["content_digest"] == shown["content_digest"]
    assert body_of(world, proposal) == before
    assert world.shown(proposal)["source_prompt"] == EVERYTHING["source_prompt"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (5, "5"),
        (2.5, "2.5"),
        (2**53, str(2**53)),
        (2**53 + 1, str(2**53 + 1)),
        (2.0, "2"),
        (1e20, "1" + 20 * "0"),
        (-0.0, "0"),
    ],
)
def test_numbers_that_a_browser_would_round_are_shown_as_text(
    world: World, number: float, shown: Any
) -> None:
    value = {"type": "number", "value": number}
    proposal = world.propose(
        "A number.", relations=[{"subject": "Ada", "predicate": "counts", "value": value}]
    )["proposal_id"]
    before = world.shown(proposal)
    assert before["relations"][0]["value"]["value"] == shown
    edit = {"content_digest": before["content_digest"], "proposal": said_again(before)}
    assert world.call(REVIEWER, "POST", f"/v1/proposals/{proposal}/edit", edit).status == 200
    assert Decimal(body_of(world, proposal)["relations"][0]["value"]["value"]) == number
