"""The gate: every text of every write passes `examine`, and nothing is stored that did not come out of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from remembrancer import observability
from remembrancer.domain.findings import Finding
from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.pii import scan_pii
from remembrancer.domain.ports import ClassifierUnavailable
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import Captured, Closed
from remembrancer.domain.screen import ScreenReport, Verdict, screen, worst
from remembrancer.domain.screen_policy import WritePolicy, effective
from remembrancer.domain.secrets import redact_secrets
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.domain.values import canonical_value
from remembrancer.flows.context import Call, Services
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
MAX_PLACES = 16
"""Places of personal data that a report lists; its verdict counts them all."""


@dataclass(frozen=True)
class Examined(Generic[R]):
    """A request as it may be stored: invisible characters and secrets are gone, the verdict is in."""

    request: R
    verdict: Verdict
    report: dict[str, Any]
    pii: bool
    redactions: tuple[tuple[str, str], ...]
    """(JSON pointer, secret kind) of everything that was replaced."""


def examine(services: Services, request: R, settings: TenantSettings) -> Examined[R]:
    """Screen, clean and flag every text of the request. Pure but for the classifier behind its port.

    `settings` are the tenant's, which can only tighten the deployment's policy. A reject verdict is returned, not
    raised: the flow writes its audit row first. Raises Problem invalid_input when cleaning leaves a field blank, and
    for a data subject that holds a secret.
    """
    policy = effective(services.screen_policy, settings)
    raw = _raw(request)
    texts = _texts(raw)
    [second] = _second_layers(services, policy, [texts])
    return _examined(request, raw, texts, second, policy)


def examine_many(
    services: Services, requests: Sequence[R], settings: TenantSettings
) -> list[Examined[R] | Problem]:
    """`examine` for each, alone as ever but in one batch of the classifier; a Problem in place of what cleaning
    leaves blank."""
    policy = effective(services.screen_policy, settings)
    raws = [_raw(request) for request in requests]
    every = [_texts(raw) for raw in raws]
    found: list[Examined[R] | Problem] = []
    for request, raw, texts, second in zip(
        requests, raws, every, _second_layers(services, policy, every), strict=True
    ):
        try:
            found.append(_examined(request, raw, texts, second, policy))
        except Problem as problem:
            found.append(problem)
    return found


def without_secrets(request: R) -> tuple[R, tuple[str, ...]]:
    """A request that must wait for its judgement: its secrets replaced, and their kinds.

    Invisible characters stay for the screen to see, and with them a secret that they cut; `examine` takes both out.
    Raises Problem invalid_input as `examine` does.
    """
    kinds: set[str] = set()

    def redact(pointer: str, text: str) -> str:
        redacted, findings = _redacted(pointer, text)
        kinds.update(finding.kind for finding in findings)
        return redacted

    cleaned = _replace(_raw(request), redact)
    return (_revalidate(request, cleaned), tuple(sorted(kinds))) if kinds else (request, ())


def _raw(request: Closed) -> dict[str, Any]:
    return request.model_dump(mode="python", exclude={"source_prompt"}, exclude_none=True)


def _examined(
    request: R, raw: dict[str, Any], texts: dict[str, str], second: dict[str, Any], policy: WritePolicy
) -> Examined[R]:
    first = screen(texts)
    found: list[tuple[str, str]] = []

    def clean(pointer: str, text: str) -> str:
        redacted, findings = _redacted(pointer, strip_invisible(text))
        found.extend((pointer, finding.kind) for finding in findings)
        return redacted

    cleaned = _replace(raw, clean)
    personal = personal_data(_texts(cleaned))
    report = reported(policy, first, second, personal)
    verdict = Verdict(report["verdict"])
    if found and policy.secrets == "reject":
        verdict = Verdict.REJECT
        report["verdict"] = verdict.value
    observability.count("Screened")
    if verdict is Verdict.QUARANTINE:
        observability.count("Quarantined")
    return Examined(
        request=_revalidate(request, cleaned),
        verdict=verdict,
        report=report,
        pii=bool(personal),
        redactions=tuple(dict.fromkeys(found)),
    )


def _redacted(pointer: str, text: str) -> tuple[str, tuple[Finding, ...]]:
    """`redact_secrets`, but of no data subject: stored as a mask, no erasure and no hold would find it again. Raises
    Problem invalid_input."""
    redacted, findings = redact_secrets(text)
    if findings and "data_subjects" in pointer.split("/"):
        raise Problem("invalid_input", [FieldError(pointer, "secret", "names somebody by a secret")])
    return redacted, findings


def personal_data(texts: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The kinds of personal data by pointer, where there are any."""
    return {pointer: kinds for pointer, text in texts.items() if (kinds := _personal(pointer, text))}


def _personal(pointer: str, text: str) -> frozenset[str]:
    """A number has one form in which it is stored and shown, in whatever form it comes."""
    kinds = scan_pii(text)
    if not pointer.endswith("/value"):
        return kinds
    try:
        return kinds | scan_pii(canonical_value("number", text))
    except ValueError:
        return kinds


def reported(
    policy: WritePolicy,
    first: ScreenReport,
    second: Mapping[str, Any],
    personal: Mapping[str, frozenset[str]],
) -> dict[str, Any]:
    """What is kept of a judgement: both layers, what the policy minds of personal data, the policy itself."""
    verdicts = [first.verdict, Verdict(policy.by_severity(s.severity for s in first.signals))]
    verdicts.append(Verdict(second["verdict"]))
    report = {**first.to_dict(), "layer2": {**second, "verdict": str(second["verdict"])}}
    minded = {pointer: kinds & (policy.pii_hold | policy.pii_refuse) for pointer, kinds in personal.items()}
    places = [{"field": pointer, "kind": kind} for pointer, kinds in minded.items() for kind in sorted(kinds)]
    if places:
        verdicts.append(Verdict(policy.by_pii(place["kind"] for place in places)))
        report["pii"] = {"verdict": verdicts[-1].value, "found": places[:MAX_PLACES]}
    return {**report, "verdict": worst(verdicts).value, "policy": policy.to_dict()}


def same_policy(unit: Unit, then: TenantSettings) -> None:
    """Call inside the write: what was judged is committed only under the settings that it was judged by.

    Raises Problem commit_conflict when an admin has changed them since.
    """
    now = unit.principal.settings
    if (now.screen, now.pii, now.secrets) != (then.screen, then.pii, then.secrets):
        raise Problem("commit_conflict")


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
            pii=sorted({place["kind"] for place in examined.report.get("pii", {}).get("found", [])}),
            policy=examined.report["policy"]["version"],
            correlation_id=call.correlation_id,
        )
        unit.alert("screen", call.correlation_id)

    services.database.write(call.credential, record)
    return Problem("input_rejected", errors_of(examined))


def errors_of(examined: Examined[Any]) -> list[FieldError]:
    """Why the gate refuses it, by pointer: rules and places, never the text."""
    secrets = [
        FieldError(pointer, "secret", f"a secret of kind {kind}") for pointer, kind in examined.redactions
    ]
    return [*report_errors(examined.report), *secrets]


def report_errors(report: Mapping[str, Any]) -> list[FieldError]:
    """The same of a report, which knows nothing of secrets: they are gone from what is stored."""
    signals = [
        FieldError(s["field"], s["rule"], f"{s['family']} at characters {s['start']} to {s['end']}")
        for s in report["signals"]
    ]
    personal = [
        FieldError(place["field"], "pii", f"personal data of kind {place['kind']}")
        for place in report.get("pii", {}).get("found", [])
    ]
    learned = [
        FieldError("", "classifier", "the learned screen takes this text for an attack")
        for _ in range(report["layer2"]["verdict"] == Verdict.REJECT.value)
    ]
    return [*signals, *personal, *learned]


def fresh_verdict(
    text_fields: dict[str, str], stored: Mapping[str, Any], policy: WritePolicy
) -> dict[str, Any]:
    """The report by the rules and the policy as they are now, from the text and the score that layer 2 gave at the
    write. What layer 2 or personal data came to then is the least that they come to now."""
    second = dict(stored.get("layer2", {"verdict": Verdict.CLEAN.value}))
    if "score" in second:
        second["verdict"] = worst((Verdict(second["verdict"]), Verdict(policy.by_score(second["score"]))))
    personal = personal_data(text_fields) if policy.watches_pii else {}
    report = reported(policy, screen(text_fields), second, personal)
    before = stored.get("pii")
    if before is not None:
        report.setdefault("pii", before)
        report["verdict"] = worst((Verdict(report["verdict"]), Verdict(before["verdict"]))).value
    return report


def text_fields(body: dict[str, Any]) -> dict[str, str]:
    """The texts of a stored request body by JSON pointer: what `examine` screened."""
    return _texts(body)


def names_and_texts(value: Any) -> list[str]:
    """Of a JSON value whose names are the sender's too; it is small and shallow (domain/ump)."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for name, item in value.items() for text in (name, *names_and_texts(item))]
        case list():
            return [text for item in value for text in names_and_texts(item)]
    return []


def _second_layers(
    services: Services, policy: WritePolicy, every: Sequence[dict[str, str]]
) -> list[dict[str, Any]]:
    """Layer 2's verdict and score of each; a fault, or a missing model that is required, fails closed."""
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
        {"verdict": Verdict(policy.by_score(score)), "score": shown_score(score), "model": model.model_id}
        for score in scores
    ]


def shown_score(score: float) -> float:
    """To four places and never above what it was: a threshold that let it pass lets the shown one pass."""
    return math.floor(score * 10_000) / 10_000


def is_prose(pointer: str, text: str) -> bool:
    """Whether layer 2 can judge it: sentences, not labels. It was trained on sentences, and a lone word such as
    a source's name says nothing; the rules read those all the same."""
    if pointer.rsplit("/", 1)[-1] in _LABELS:
        return False
    if text.isascii() and not _SPACE.search(text.strip()):
        return False  # an id, a digest or an address
    return len(text.split()) >= PROSE_WORDS or len(text) >= PROSE_CHARACTERS


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
