"""What an attempt costs in tokens, and what other ways to name places in evidence would.

Counted with o200k, the tokenizer of OpenAI's current models, which `bpe-openai` ships (bench/requirements.txt).
Models on Bedrock have tokenizers of their own that are not published; the proportions hold, the numbers are within
some tens of percent. The typical request is the one below: three pieces of evidence, six proposals, an entity that
is known, and eight predicates offered to each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from remembrancer.domain.assessment import (
    Assessment,
    AssessmentRequest,
    Conversation,
    DuplicateOption,
    EntityOption,
    EvidenceView,
    MentionView,
    PredicateOption,
    PredicateView,
    ProposalView,
    Turn,
    ValueView,
)
from remembrancer.domain.assessment_prompt import messages, system_prompt
from remembrancer.domain.assessment_rules import assess
from remembrancer.domain.assessment_schema import ANSWER_SCHEMA
from remembrancer.domain.assessment_validation import validate

Count = Callable[[str], int]

TEXTS = (
    "Notes from the weekly sync. Ines Duarte leads the Harbour project. The Harbour project has a budget of 180,000 "
    "euros, and its first milestone is due on 2026-09-30. Nobody raised a risk. Tomas will be on holiday in week 34.",
    "Tomas Lind works at Brightwater. He reports to Ines Duarte. Tomas mentioned that he might move to the Lisbon "
    "office next year, but nothing is decided.",
    "The Harbour project uses PostgreSQL for its event store. The old prototype was written in Ruby and is not "
    "maintained any more; the team keeps it for reference only.",
)
_KEYS = ("leads", "budget", "works_at", "reports_to", "uses", "due_on", "member_of", "located_in")
PREDICATES = tuple(PredicateOption(f"p{n}", key, "state", "many") for n, key in enumerate(_KEYS, start=1))


def _proposal(
    ref: str, subject: MentionView, key: str, target: MentionView | ValueView, cites: str
) -> ProposalView:
    return ProposalView(ref, subject, PredicateView(key, PREDICATES), target, "+", None, None, (cites,))


def typical() -> AssessmentRequest:
    ines = MentionView("Ines Duarte", "person", (EntityOption("n1", "Ines Duarte", "person", ("Ines",)),))
    tomas = MentionView("Tomas Lind", "person")
    harbour = MentionView("Harbour", "project")
    return AssessmentRequest(
        tuple(
            EvidenceView(f"e{n}", text, (DuplicateOption(f"d{n}", text.split(". ")[1] + "."),))
            for n, text in enumerate(TEXTS, start=1)
        ),
        (
            _proposal("r1", ines, "leads", harbour, "e1"),
            _proposal("r2", harbour, "budget", ValueView("number", "180000", "180000", "EUR"), "e1"),
            _proposal("r3", tomas, "works_at", MentionView("Brightwater", "organization"), "e2"),
            _proposal("r4", tomas, "reports_to", ines, "e2"),
            _proposal("r5", tomas, "located_in", MentionView("Lisbon", "place"), "e2"),
            _proposal("r6", harbour, "uses", MentionView("PostgreSQL", "product"), "e3"),
        ),
    )


def counter() -> Count | None:
    """None when the tokenizer is not installed."""
    try:
        from bpe_openai import get_encoding
    except ImportError:
        return None
    encoding = get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def tokens(count: Count) -> dict[str, float]:
    """tokens_* of one attempt, and tokens_markers_* of the evidence alone under each way of naming places."""
    asked = typical()
    answer = assess(asked)
    faulty = answer.replace('"polarity":"+"', '"polarity":"-"', 1)
    issues = validate(asked, faulty)
    if isinstance(issues, Assessment):
        raise ValueError("the faulty answer is valid")
    first = sum(count(message.text) for message in messages(Conversation(asked)))
    second = sum(count(message.text) for message in messages(Conversation(asked, (Turn(faulty, issues),))))
    fixed = count(system_prompt()) + count(json.dumps(ANSWER_SCHEMA, separators=(",", ":")))
    plain = sum(count(text) for text in TEXTS)
    return {
        "tokens_fixed_prefix": fixed,
        "tokens_request": first,
        "tokens_answer": count(answer),
        "tokens_attempt_one_turn": fixed + first + count(answer),
        "tokens_attempt_two_turns": 2 * fixed + first + second + 2 * count(answer),
        "tokens_evidence": plain,
        "tokens_quotes": sum(map(count, _quotes(json.loads(answer)))),
        "tokens_markers_words": sum(count(_marked(text, r"\S+")) for text in TEXTS) - plain,
        "tokens_markers_characters": sum(count(_marked(text, r"(?s).")) for text in TEXTS) - plain,
    }


def _quotes(answer: dict[str, Any]) -> list[str]:
    splits = [split for proposal in answer["proposals"] for split in proposal["splits"]]
    return [json.dumps(support) for split in splits for support in split["supports"]]


def _marked(text: str, unit: str) -> str:
    """A boundary reference before every unit, as `[17]`."""
    places = iter(range(len(text)))
    return re.sub(unit, lambda found: f"[{next(places)}]{found[0]}", text)
