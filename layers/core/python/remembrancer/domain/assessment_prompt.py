"""A conversation as the messages that a model is sent, with every untrusted span fenced.

The instructions are a versioned file, never changed under the same name (a test pins its digest), since a
validated answer is reused only for the same version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from remembrancer.domain.assessment import (
    AssessmentRequest,
    Conversation,
    EntityOption,
    MentionView,
    PredicateOption,
    ProposalView,
    Turn,
)

PROMPT_VERSION = "assess-1"

_FOLDER = Path(__file__).parent / "assessment_prompts"


@dataclass(frozen=True)
class Part:
    """`untrusted` parts hold text of users or agents; the fence around them is in the trusted parts."""

    text: str
    untrusted: bool = False


@dataclass(frozen=True)
class Message:
    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


@cache
def system_prompt() -> str:
    """The instructions: the same for every request, so that a provider can cache them."""
    return (_FOLDER / f"{PROMPT_VERSION}.system.md").read_text(encoding="utf-8")


def messages(conversation: Conversation) -> tuple[Message, ...]:
    """The request, then for each failed turn the model's answer and what is wrong with it. Deterministic."""
    made = [Message("user", tuple(_request(conversation.request)))]
    for turn in conversation.turns:
        # A provider takes no empty message and no lone surrogate.
        said = turn.answer.encode("utf-8", "replace").decode("utf-8").strip() or "{}"
        made.append(Message("assistant", (Part(said),)))
        made.append(Message("user", (Part(_repair(turn)),)))
    return tuple(made)


@cache
def _repair_prompt() -> str:
    return (_FOLDER / f"{PROMPT_VERSION}.repair.md").read_text(encoding="utf-8")


def _repair(turn: Turn) -> str:
    faults = [{"at": issue.pointer, "code": issue.code, "fault": issue.detail} for issue in turn.issues]
    return _repair_prompt() + "\n" + "\n".join(_compact(fault) for fault in faults)


def _request(request: AssessmentRequest) -> Iterator[Part]:
    """Evidence as it is, everything else as a line of JSON an item. Entities and predicates are told once."""
    fence = _fence(request)
    for evidence in request.evidence:
        yield from _fenced(f"Evidence {evidence.ref}", evidence.text, fence)
        for option in evidence.duplicates:
            yield from _fenced(f"Duplicate candidate {option.ref} of {evidence.ref}", option.text, fence)
    for known in request.known:
        yield from _fenced(f"Known evidence {known.ref}", known.text, fence)
    entities: dict[str, EntityOption] = {}
    predicates: dict[str, PredicateOption] = {}
    for proposal in request.proposals:
        for end in (proposal.subject, proposal.object):
            if isinstance(end, MentionView):
                entities.update({option.ref: option for option in end.options})
        predicates.update({option.ref: option for option in proposal.predicate.options})
    if entities:
        lines = "\n".join(_compact(_entity(option)) for option in entities.values())
        yield from _fenced("Entity candidates", lines, fence)
    if predicates:
        lines = "\n".join(_compact(_predicate(option)) for option in predicates.values())
        yield from _fenced("Predicates", lines, fence)
    lines = "\n".join(_compact(_proposal(proposal)) for proposal in request.proposals)
    yield from _fenced("Proposals", lines, fence)


def _fenced(title: str, text: str, fence: str) -> Iterator[Part]:
    yield Part(f"{title}\n<<<{fence}\n")
    yield Part(text, untrusted=True)
    yield Part(f"\n{fence}\n\n")


def _fence(request: AssessmentRequest) -> str:
    """A word that no text of the request holds: its writers would have had to know its digest.

    Derived, not drawn, so that the turns of a conversation begin alike.
    """
    body = _compact(request.to_json())
    fence = hashlib.sha256(body.encode()).hexdigest()[:16]
    while fence in body:
        fence = hashlib.sha256(fence.encode()).hexdigest()[:16]
    return fence


def _entity(option: EntityOption) -> dict[str, Any]:
    told: dict[str, Any] = {"ref": option.ref, "name": option.name, "kind": option.kind}
    return told | ({"aliases": option.aliases} if option.aliases else {})


def _predicate(option: PredicateOption) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ref": option.ref,
        "key": option.key,
        "kind": option.kind,
        "cardinality": option.cardinality,
    }
    lists = ("subject_kinds", "object_kinds", "aliases")
    return told | {name: getattr(option, name) for name in lists if getattr(option, name)}


def _proposal(view: ProposalView) -> dict[str, Any]:
    predicate = {
        "proposed_key": view.predicate.proposed_key,
        "required": view.predicate.required,
        "offered": [option.ref for option in view.predicate.options],
    }
    told: dict[str, Any] = {
        "ref": view.ref,
        "subject": _mention(view.subject),
        "predicate": {name: value for name, value in predicate.items() if value},
    }
    if isinstance(view.object, MentionView):
        told["object"] = _mention(view.object)
    else:
        value = view.object
        told["object"] = {"value": value.text, "type": value.type}
        if value.unit is not None:
            told["object"]["unit"] = value.unit
        if value.original != value.text:
            told["object"]["as_written"] = value.original
    told |= {
        "polarity": view.polarity,
        "valid_from": view.valid_from,
        "valid_to": view.valid_to,
        "cites": view.evidence,
    }
    return told | ({"known": view.known} if view.known else {})


def _mention(mention: MentionView) -> dict[str, Any]:
    told: dict[str, Any] = {"name": mention.name, "kind": mention.kind}
    if mention.required is not None:
        return told | {"required": mention.required}
    return told | ({"candidates": [option.ref for option in mention.options]} if mention.options else {})


def _compact(value: Any) -> str:
    """ASCII would cost tokens; a name with a line break must not look like two lines."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
