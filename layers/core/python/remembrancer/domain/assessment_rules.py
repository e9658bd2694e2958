"""The assessor that needs no model: rules decide, and say so in the same form that a model would.

A proposal is stored when one cited text states it (domain/support_rules.py), with that text's sentences as its
support; everything else is not supported. Names are resolved by what was offered alone: one fitting entity is
it, several are ambiguous, none makes a new one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from remembrancer.domain.assessment import (
    MAX_FINDINGS,
    AssessmentRequest,
    EntityOption,
    EvidenceView,
    FindingKind,
    MentionView,
    PredicateView,
    ProposalView,
    ValueView,
)
from remembrancer.domain.assessment_schema import FINDING_KINDS, NEW
from remembrancer.domain.assessment_validation import exact_options, fits, takes
from remembrancer.domain.facts import predicate_key
from remembrancer.domain.grounding import is_boundary, occurrences
from remembrancer.domain.names import fold
from remembrancer.domain.screen import Signal, Verdict, screen
from remembrancer.domain.support_rules import Claim, EvidenceReading, is_event
from remembrancer.domain.temporal import Window, explicit_interval, overlap

RULES_VERSION = "rules-1"

_PUNCTUATION = re.compile(r"[^\w]+")
_KINDS: Mapping[str, FindingKind] = {
    "prompt_extraction": "credential_extraction",
    "persona_override": "role_spoofing",
    "authority_grant": "role_spoofing",
}
"""Families of the screen that are not the name of a finding themselves."""


def assess(request: AssessmentRequest) -> str:
    """The answer as JSON, valid for the request. Deterministic; never raises."""
    report = screen({view.ref: view.text for view in request.evidence})
    unsafe: dict[str, list[Signal]] = {}
    for signal in report.signals:
        if signal.verdict is not Verdict.CLEAN:
            unsafe.setdefault(signal.field, []).append(signal)
    active = {
        fold(name)
        for view in request.proposals
        for option in view.predicate.options
        for name in (option.key, *option.aliases)
    }
    readings = {view.ref: EvidenceReading(view.text) for view in request.evidence}
    answer = {
        "evidence": [_evidence(view, unsafe.get(view.ref, [])) for view in request.evidence],
        "proposals": [_proposal(view, readings, active) for view in request.proposals],
    }
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _evidence(view: EvidenceView, signals: list[Signal]) -> dict[str, Any]:
    findings = [_finding(view.text, signal) for signal in signals[:MAX_FINDINGS]]
    said = _same_words(view.text)
    duplicate = next(
        (option.ref for option in view.duplicates if said and _same_words(option.text) == said), NEW
    )
    return {
        "ref": view.ref,
        "security": "reject" if findings else "pass",
        "findings": findings,
        "duplicate": duplicate,
    }


def _same_words(text: str) -> str:
    """A text without what makes no difference: case, spacing and punctuation."""
    return _PUNCTUATION.sub(" ", fold(text)).strip()


def _finding(text: str, signal: Signal) -> dict[str, Any]:
    family = _KINDS.get(signal.family, signal.family)
    kind = family if family in FINDING_KINDS else "other"
    start, end = signal.start, min(max(signal.end, signal.start + 1), len(text))
    return {"kind": kind, **_quote(text, start, end)}


def _quote(text: str, start: int, end: int) -> dict[str, Any]:
    """The span, widened to whole words and to something visible, as quote and occurrence."""
    while start > 0 and (not is_boundary(text, start) or not text[start:end].strip()):
        start -= 1
    while end < len(text) and (not is_boundary(text, end) or not text[start:end].strip()):
        end += 1
    quote = text[start:end]
    return {"quote": quote, "occurrence": occurrences(text, quote).index(start) + 1}


def _proposal(
    view: ProposalView, readings: Mapping[str, EvidenceReading], active: set[str]
) -> dict[str, Any]:
    split = _split(view, readings, active)
    return {
        "ref": view.ref,
        "disposition": "not_supported" if split is None else "stored",
        "splits": [] if split is None else [split],
    }


def _split(
    view: ProposalView, readings: Mapping[str, EvidenceReading], active: set[str]
) -> dict[str, Any] | None:
    supports = []
    claim = Claim(view)
    for ref in view.evidence:
        reading = readings[ref]
        verdict = reading.judge(claim)
        if verdict == "contradicted":
            return None
        if verdict is not None and _in_window(reading.text[slice(*verdict)], view):
            supports.append({"evidence": ref, **_quote(reading.text, *verdict)})
    subject, subject_kind = _entity(view.subject)
    target, target_kind = _object(view.object)
    predicate = _predicate(view.predicate, subject_kind, target_kind, active)
    if not supports or predicate is None:
        return None
    return {
        "subject": subject,
        "predicate": predicate,
        "object": target,
        "polarity": view.polarity,
        "valid_from": view.valid_from,
        "valid_to": view.valid_to,
        "supports": supports,
    }


def _in_window(sentence: str, view: ProposalView) -> bool:
    """Whether a time that the sentence names leaves the proposal's validity possible."""
    named = explicit_interval(sentence)
    if named is None or (view.valid_from is None and view.valid_to is None):
        return True
    proposed: Window = (_instant(view.valid_from), _instant(view.valid_to))
    return overlap((named.valid_from, named.valid_to), proposed)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _object(view: MentionView | ValueView) -> tuple[dict[str, Any], str | None]:
    if isinstance(view, ValueView):
        return {"resolution": "value", "entity": None, "name": None, "value": view.text}, view.type
    entity, kind = _entity(view)
    return {**entity, "value": None}, kind


def _entity(mention: MentionView) -> tuple[dict[str, Any], str | None]:
    """The resolution, and the kind that the endpoint then has (None when it is not known)."""
    option = _bearer(mention)
    if isinstance(option, EntityOption):
        return {"resolution": "reuse", "entity": option.ref, "name": mention.name}, option.kind
    resolution = "ambiguous" if option else "create"
    return {"resolution": resolution, "entity": None, "name": mention.name}, None if option else mention.kind


def _bearer(mention: MentionView) -> EntityOption | bool:
    """The entity that is meant; else whether there were several to choose from."""
    if mention.required is not None:
        return next(option for option in mention.options if option.ref == mention.required)
    fitting = [option for option in mention.options if fits(mention, option.kind)]
    same = [option for option in fitting if option.kind == mention.kind] or fitting
    return same[0] if len(same) == 1 else bool(same)


def _predicate(
    view: PredicateView, subject_kind: str | None, target_kind: str | None, active: set[str]
) -> dict[str, Any] | None:
    options = [option for option in view.options if option.ref == view.required]
    if view.required is None:
        options = list(exact_options(view)) or [
            option
            for option in view.options
            if predicate_key(option.key) == predicate_key(view.proposed_key or "")
        ]
    for option in options:
        if takes(option.subject_kinds, subject_kind) and takes(option.object_kinds, target_kind):
            return {"choose": option.ref, "register": None}
    if options or view.proposed_key is None or fold(view.proposed_key) in active:
        return None
    new: dict[str, Any] = {
        "key": view.proposed_key,
        "kind": "event" if is_event(view.proposed_key) else "state",
        "cardinality": "many",
        "subject_kinds": [],
        "object_kinds": [],
    }
    return {"choose": None, "register": new}
