"""The screen at the door of remember: evidence stays exact, so nothing is cleaned and nothing doubtful comes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remembrancer import observability
from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.pii import scan_pii
from remembrancer.domain.ports import ClassifierUnavailable
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.remember_requests import RememberRequest
from remembrancer.domain.screen import Verdict, screen, worst
from remembrancer.domain.screen_policy import WritePolicy, effective
from remembrancer.domain.secrets import redact_secrets
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows import gate
from remembrancer.flows.context import Call, Services
from remembrancer.store.database import Unit

# Members that are ids or closed vocabularies: checked by the contract, never text.
_NOT_TEXT = {
    "evidence": {"source_type", "authority", "supersedes_evidence_ids"},
    "relationships": {"ref", "known_evidence_ids", "correction_target"},
}
MAX_ERRORS = 50


@dataclass(frozen=True)
class Judged:
    """`report` holds rules, spans and scores, no text; `pii` has a flag for each evidence item."""

    verdict: Verdict
    report: dict[str, Any]
    pii: tuple[bool, ...]
    errors: tuple[FieldError, ...]
    secrets: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What the attempt keeps for its commit."""
        return {"report": self.report, "pii": list(self.pii)}


def judge(services: Services, request: RememberRequest, settings: TenantSettings) -> Judged:
    """Every text of the request, keys of metadata and client's comments too. Pure but for the classifier."""
    policy = effective(services.screen_policy, settings)
    shape = _shape(request)
    texts = gate.text_fields(shape)
    first = screen(texts)
    learned, layer2 = _second_layer(services, policy, texts)
    secrets = [
        (pointer, finding.kind)
        for pointer, text in texts.items()
        for finding in redact_secrets(strip_invisible(text))[1]
    ]
    report = gate.reported(policy, first, layer2, gate.personal_data(texts) if policy.watches_pii else {})
    verdict = Verdict(report["verdict"])
    if secrets:
        verdict = Verdict.REJECT
    observability.count("Screened")
    if verdict is Verdict.QUARANTINE:
        observability.count("Quarantined")
    errors = [
        *(
            FieldError(s.field, s.rule, f"{s.family} at characters {s.start} to {s.end}")
            for s in first.signals
        ),
        *(
            FieldError(pointer, "secret", f"a secret of kind {kind}")
            for pointer, kind in dict.fromkeys(secrets)
        ),
        *(
            FieldError(place["field"], "pii", f"personal data of kind {place['kind']}")
            for place in report.get("pii", {}).get("found", [])
        ),
        *(
            FieldError(pointer, "classifier", "the learned screen doubts this text")
            for pointer, found in learned.items()
            if found is not Verdict.CLEAN
        ),
    ]
    return Judged(
        verdict,
        {**report, "verdict": verdict.value},
        tuple(any(scan_pii(text) for text in gate.text_fields(item).values()) for item in shape["evidence"]),
        tuple(errors[:MAX_ERRORS]),
        tuple(sorted({kind for _, kind in secrets})),
    )


def refuse(services: Services, call: Call, judged: Judged) -> Problem:
    """The content-free audit row of the refusal, committed, and the problem to raise. Nothing else is kept.

    When the row cannot be written the database's problem propagates: the call fails closed all the same.
    """
    doubtful = judged.verdict is Verdict.QUARANTINE

    def record(unit: Unit) -> None:
        unit.audit(
            "remember_refused",
            verdict=judged.verdict.value,
            findings=[
                {"field": s["field"], "rule": s["rule"], "start": s["start"], "end": s["end"]}
                for s in judged.report["signals"]
            ],
            secrets=list(judged.secrets),
            pii=sorted({place["kind"] for place in judged.report.get("pii", {}).get("found", [])}),
            policy=judged.report["policy"]["version"],
            correlation_id=call.correlation_id,
        )
        unit.alert("screen", call.correlation_id)

    services.database.write(call.credential, record)
    return Problem(
        "submission_policy_rejected",
        judged.errors,
        next_action="submit_proposal" if doubtful else None,
        extensions={"reason": "needs_review" if doubtful else "rejected"},
    )


def _shape(request: RememberRequest) -> dict[str, Any]:
    """What is screened, under pointers without a word of the caller's: metadata become pairs."""
    body = request.model_dump(mode="python", exclude={"idempotency_key", "target_space"}, exclude_none=True)
    for kind, dropped in _NOT_TEXT.items():
        body[kind] = [
            {name: value for name, value in item.items() if name not in dropped} for item in body[kind]
        ]
    for item in body["evidence"]:
        item["metadata"] = [list(pair) for pair in item["metadata"].items()]
    for proposal in body["relationships"]:
        for end in (proposal["subject"], proposal["object"].get("entity", {})):
            end.pop("known_entity_id", None)
            end.pop("entity_kind", None)
    return body


def _second_layer(
    services: Services, policy: WritePolicy, texts: Mapping[str, str]
) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """The verdict of each text that is prose, and what is reported of them all; a fault fails closed."""
    model = services.screen_model
    prose = {pointer: text for pointer, text in texts.items() if gate.is_prose(pointer, text)}
    missing = {"verdict": Verdict.QUARANTINE, "reason": "classifier_unavailable"}
    if model is None:
        return {}, missing if policy.required else {"verdict": Verdict.CLEAN}
    try:
        scores = model.scores(list(prose.values()))
    except ClassifierUnavailable:
        return {}, missing
    verdicts = {
        pointer: Verdict(policy.by_score(score)) for pointer, score in zip(prose, scores, strict=True)
    }
    highest = gate.shown_score(max(scores, default=0.0))
    return verdicts, {"verdict": worst(verdicts.values()), "score": highest, "model": model.model_id}
