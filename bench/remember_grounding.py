"""How well the rules assessor tells supported proposals from others, on the labelled set beside it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from remembrancer.domain.assessment import (
    Assessment,
    AssessmentRequest,
    EvidenceView,
    MentionView,
    PredicateView,
    ProposalView,
    ValueView,
)
from remembrancer.domain.assessment_rules import assess
from remembrancer.domain.assessment_validation import validate
from remembrancer.domain.values import canonical_value

CORPUS = Path(__file__).parent / "corpus" / "remember_rules.jsonl"


@dataclass(frozen=True)
class Case:
    id: str
    split: str
    kind: str
    supported: bool
    request: AssessmentRequest


@cache
def cases() -> tuple[Case, ...]:
    with CORPUS.open(encoding="utf-8") as lines:
        return tuple(_case(json.loads(line)) for line in lines)


def _case(row: dict[str, Any]) -> Case:
    evidence = tuple(EvidenceView(f"e{n}", text) for n, text in enumerate(row["evidence"], start=1))
    value = row.get("value")
    proposal = ProposalView(
        ref="r1",
        subject=MentionView(**row["subject"]),
        predicate=PredicateView(row["predicate"]),
        object=MentionView(**row["object"]) if value is None else _value(value),
        polarity=row["polarity"],
        valid_from=None,
        valid_to=None,
        evidence=tuple(view.ref for view in evidence),
    )
    return Case(
        row["id"], row["split"], row["kind"], row["supported"], AssessmentRequest(evidence, (proposal,))
    )


def _value(value: dict[str, Any]) -> ValueView:
    canonical = canonical_value(value["type"], value["value"])
    return ValueView(value["type"], canonical, str(value["value"]), value.get("unit"))


def judge(case: Case) -> bool:
    """Whether the rules store the proposal. Raises ValueError when their answer is not valid."""
    made = validate(case.request, assess(case.request))
    if not isinstance(made, Assessment):
        raise ValueError(f"{case.id}: {made}")
    return made.proposals[0].stored


def grounding() -> dict[str, float]:
    """rules_precision and rules_recall, each also for every split of the set, and per kind the share of proposals
    stored."""
    figures: dict[str, float] = {"rules_proposals": len(cases())}
    stored = {case.id: judge(case) for case in cases()}
    for split in ("", "blind", "development", "traps"):
        chosen = [case for case in cases() if split in ("", case.split)]
        hits = sum(stored[case.id] for case in chosen if case.supported)
        suffix = f"_{split}" if split else ""
        figures[f"rules_precision{suffix}"] = hits / max(1, sum(stored[case.id] for case in chosen))
        figures[f"rules_recall{suffix}"] = hits / sum(case.supported for case in chosen)
    asked = Counter(case.kind for case in cases())
    kept = Counter(case.kind for case in cases() if stored[case.id])
    return figures | {f"rules_stored_{kind}": kept[kind] / asked[kind] for kind in sorted(asked)}
