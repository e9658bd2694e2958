"""The gate: every text of every write passes `examine`, and nothing is stored that did not come out of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from remembrancer import observability
from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.pii import scan_pii
from remembrancer.domain.ports import ClassifierUnavailable
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import Captured, Closed
from remembrancer.domain.screen import Verdict, screen, worst
from remembrancer.domain.secrets import redact_secrets
from remembrancer.flows.context import Call, ScreenPolicy, Services
from remembrancer.store.database import Unit

R = TypeVar("R", bound=Closed)

# Members whose values are a closed vocabulary of our own, or no text at all.
_NOT_TEXT = frozenset(
    {"kind", "subject_kind", "object_kind", "assertion_kind", "polarity", "type", "target_space"}
)

_LABELS = frozenset({"source", "domain", "predicate", "source_uri", "revision", "unit", "claimed"})
_SPACE = re.compile(r"\s")
PROSE_WORDS = 3
PROSE_CHARACTERS = 24
"""For scripts that do not part words by spaces."""


@dataclass(frozen=True)
class Examined(Generic[R]):
    """A request as it may be stored: invisible characters and secrets are gone, the verdict is in."""

    request: R
    verdict: Verdict
    report: dict[str, Any]
    pii: bool
    redactions: tuple[tuple[str, str], ...]
    """(JSON pointer, secret kind) of everything that was replaced."""


def examine(services: Services, request: R, *, secrets: str) -> Examined[R]:
    """Screen, clean and flag every text of the request. Pure but for the classifier behind its port.

    `secrets` is the tenant's setting, `redact` or `reject`. A reject verdict is returned, not raised: the
    flow writes its audit row first. Raises Problem invalid_input when cleaning leaves a field blank.
    """
    raw = _raw(request)
    texts = _texts(raw)
    return _examined(request, raw, texts, _second_layer(services, texts), secrets)


def examine_many(services: Services, requests: Sequence[R], *, secrets: str) -> list[Examined[R] | Problem]:
    """`examine` for each, alone as ever but in one batch of the classifier; a Problem in place of what cleaning
    leaves blank."""
    raws = [_raw(request) for request in requests]
    every = [_texts(raw) for raw in raws]
    found: list[Examined[R] | Problem] = []
    for request, raw, texts, second in zip(
        requests, raws, every, _second_layers(services, every), strict=True
    ):
        try:
            found.append(_examined(request, raw, texts, second, secrets))
        except Problem as problem:
            found.append(problem)
    return found


def _raw(request: Closed) -> dict[str, Any]:
    return request.model_dump(mode="python", exclude={"source_prompt"}, exclude_none=True)


def _examined(
    request: R, raw: dict[str, Any], texts: dict[str, str], second: dict[str, Any], secrets: str
) -> Examined[R]:
    first = screen(texts)
    found: list[tuple[str, str]] = []

    def clean(pointer: str, text: str) -> str:
        redacted, findings = redact_secrets(strip_invisible(text))
        found.extend((pointer, finding.kind) for finding in findings)
        return redacted

    cleaned = _replace(raw, clean)
    verdict = worst((first.verdict, second["verdict"]))
    if found and secrets == "reject":
        verdict = Verdict.REJECT
    report = {**first.to_dict(), "layer2": {**second, "verdict": second["verdict"].value}}
    report["verdict"] = verdict.value
    observability.count("Screened")
    if verdict is Verdict.QUARANTINE:
        observability.count("Quarantined")
    return Examined(
        request=_revalidate(request, cleaned),
        verdict=verdict,
        report=report,
        pii=any(scan_pii(text) for text in _texts(cleaned).values()),
        redactions=tuple(dict.fromkeys(found)),
    )


def rejected(services: Services, call: Call, examined: Examined[Any]) -> Problem:
    """The content-free audit row of a refusal, committed, and the problem to raise.

    When the row cannot be written the database's problem propagates: the call fails closed all the same.
    """
    rules = sorted({signal["rule"] for signal in examined.report["signals"]})

    def record(unit: Unit) -> None:
        unit.audit(
            "input_rejected",
            rules=rules,
            secrets=sorted({kind for _, kind in examined.redactions}),
            correlation_id=call.correlation_id,
        )
        unit.alert("screen", call.correlation_id)

    services.database.write(call.credential, record)
    return Problem("input_rejected", errors_of(examined))


def errors_of(examined: Examined[Any]) -> list[FieldError]:
    """Why the gate refuses it, by pointer: rules and places, never the text."""
    signals = [
        FieldError(s["field"], s["rule"], f"{s['family']} at characters {s['start']} to {s['end']}")
        for s in examined.report["signals"]
    ]
    secrets = [
        FieldError(pointer, "secret", f"a secret of kind {kind}") for pointer, kind in examined.redactions
    ]
    learned = [
        FieldError("", "classifier", "the learned screen takes this text for an attack")
        for _ in range(examined.report["layer2"]["verdict"] == Verdict.REJECT.value)
    ]
    return [*signals, *secrets, *learned]


def fresh_verdict(text_fields: dict[str, str], stored: dict[str, Any]) -> dict[str, Any]:
    """The screen as the rules are now, recomputed from the text, with the score layer 2 gave at the write."""
    first = screen(text_fields)
    second = stored.get("layer2", {"verdict": Verdict.CLEAN.value})
    verdict = worst((first.verdict, Verdict(second["verdict"])))
    return {**first.to_dict(), "layer2": second, "verdict": verdict.value}


def text_fields(body: dict[str, Any]) -> dict[str, str]:
    """The texts of a stored request body by JSON pointer: what `examine` screened."""
    return _texts(body)


def _second_layer(services: Services, texts: dict[str, str]) -> dict[str, Any]:
    [found] = _second_layers(services, [texts])
    return found


def _second_layers(services: Services, every: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Layer 2's verdict and score of each; a fault, or a missing model that is required, fails closed."""
    policy = services.screen_policy
    model = services.screen_model
    if model is None:
        verdict = Verdict.QUARANTINE if policy.required else Verdict.CLEAN
        reason = {"reason": "classifier_unavailable"} if policy.required else {}
        return [{"verdict": verdict, **reason} for _ in every]
    prose = [[text for at, text in texts.items() if is_prose(at, text)] for texts in every]
    try:
        scores = [max(own, default=0.0) for own in model.scores_each(prose)]
    except ClassifierUnavailable:
        return [{"verdict": Verdict.QUARANTINE, "reason": "classifier_unavailable"} for _ in every]
    return [
        {"verdict": by_score(score, policy), "score": round(score, 4), "model": model.model_id}
        for score in scores
    ]


def is_prose(pointer: str, text: str) -> bool:
    """Whether layer 2 can judge it: sentences, not labels. It was trained on sentences, and a lone word such as
    a source's name says nothing; the rules read those all the same."""
    if pointer.rsplit("/", 1)[-1] in _LABELS:
        return False
    if text.isascii() and not _SPACE.search(text.strip()):
        return False  # an id, a digest or an address
    return len(text.split()) >= PROSE_WORDS or len(text) >= PROSE_CHARACTERS


def by_score(score: float, policy: ScreenPolicy) -> Verdict:
    if score >= policy.reject_at:
        return Verdict.REJECT
    return Verdict.QUARANTINE if score >= policy.quarantine_at else Verdict.CLEAN


def _texts(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}

    def note(pointer: str, text: str) -> str:
        found[pointer] = text
        return text

    _replace(value, note)
    return found


def _replace(value: Any, change: Callable[[str, str], str], pointer: str = "") -> Any:
    """The same structure with every text member changed; `pointer` is its RFC 6901 pointer."""
    match value:
        case str():
            return change(pointer, value)
        case dict():
            return {
                name: item if name in _NOT_TEXT else _replace(item, change, f"{pointer}/{name}")
                for name, item in value.items()
            }
        case list():
            return [_replace(item, change, f"{pointer}/{index}") for index, item in enumerate(value)]
    return value


def _revalidate(request: R, cleaned: dict[str, Any]) -> R:
    if isinstance(request, Captured) and "source_prompt" in type(request).model_fields:
        cleaned = {**cleaned, "source_prompt": getattr(request, "source_prompt")}  # noqa: B009
    try:
        return type(request).model_validate(cleaned)
    except ValidationError as error:
        raise Problem(
            "invalid_input",
            [
                FieldError("/" + "/".join(map(str, e["loc"])), "after_cleaning", "does not fit once cleaned")
                for e in error.errors(include_url=False, include_context=False, include_input=False)
            ],
        ) from None
