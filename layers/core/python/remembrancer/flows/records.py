"""Records judged one by one: what passes the gate becomes items, the rest is told why, with no text in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import Closed, IngestRequest
from remembrancer.domain.screen import Verdict
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows import gate
from remembrancer.flows.batch import Item
from remembrancer.flows.context import Services
from remembrancer.store.database import Unit

PORTION = 64
"""Records that the classifier reads together."""


@dataclass(frozen=True)
class Record:
    """One record as an ingest request, and what its sender claimed of it."""

    index: int
    request: IngestRequest
    claimed: Mapping[str, Any] | None = None
    redacted: tuple[str, ...] = ()
    """Kinds of the secrets that were replaced already."""
    complete: bool = False
    """Nothing is read from its text (domain/ump)."""

    def to_dict(self) -> dict[str, Any]:
        """JSON, for the staging table."""
        return {
            "index": self.index,
            "request": self.request.model_dump(mode="json", exclude_defaults=True),
            "claimed": None if self.claimed is None else dict(self.claimed),
            "redacted": list(self.redacted),
            "complete": self.complete,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Record:
        request = IngestRequest.model_validate(stored["request"])
        return cls(stored["index"], request, stored["claimed"], tuple(stored["redacted"]), stored["complete"])


@dataclass
class Judged:
    """`shown` is what the caller is told, whether the items are written at once or by a job."""

    items: list[Item] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    redactions: list[dict[str, Any]] = field(default_factory=list)
    verdicts: set[str] = field(default_factory=set)

    def shown(self) -> dict[str, Any]:
        return {
            "refused": by_index(self.refused),
            "redactions": by_index(self.redactions),
            "pii": any(item.pii for item in self.items),
        }

    def refuse(self, index: int, status: str, errors: Iterable[FieldError]) -> None:
        self.refused.append(
            {
                "index": index,
                "status": status,
                "errors": [
                    {"pointer": error.pointer, "code": error.code, "detail": error.detail} for error in errors
                ],
            }
        )

    def nothing_left(self) -> Problem:
        """The problem of a request of which no record can be stored."""
        rejected = any(entry["status"] == "rejected" for entry in self.refused)
        errors = [FieldError(**error) for entry in self.refused for error in entry["errors"]]
        return Problem("input_rejected" if rejected else "invalid_input", errors[:50])


def by_index(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: entry["index"])


def audit_refused(unit: Unit, refused: Sequence[Mapping[str, Any]], correlation_id: str) -> None:
    """One content-free row for each record that was refused, and one alert for all that the screen did."""
    for entry in refused:
        unit.audit(
            "input_rejected",
            rules=sorted({error["code"] for error in entry["errors"]}),
            index=entry["index"],
            correlation_id=correlation_id,
        )
    if any(entry["status"] == "rejected" for entry in refused):
        unit.alert("screen", correlation_id)


class _Recorded(Closed):
    """What the gate sees of a record: the request, every name and text of its claims, and the form they are
    stored in (whose quotes alone would make an attack look like one that is reported)."""

    request: IngestRequest
    claims: Annotated[list[str], Field(default_factory=list)]
    claimed: str | None = None


def judge(
    services: Services, judged: Judged, records: Iterable[Record], settings: TenantSettings, pointer: str
) -> None:
    """Every record through the gate. `pointer` says where record `index` lies in the body.

    Pointers of errors go to the record and no deeper: its own names are the sender's, not ours.
    """
    waiting = iter(records)
    while portion := list(islice(waiting, PORTION)):
        seen = [_recorded(record) for record in portion]
        for record, examined in zip(portion, gate.examine_many(services, seen, settings), strict=True):
            _judge_one(services, judged, record, examined, pointer.format(index=record.index))


def redact(judged: Judged, records: Iterable[Record], settings: TenantSettings, pointer: str) -> list[Record]:
    """The records that may wait for `judge`, without their secrets; the others are refused."""
    kept = []
    for record in records:
        place = pointer.format(index=record.index)
        try:
            cleaned, kinds = gate.without_secrets(_recorded(record))
        except Problem as problem:
            judged.refuse(record.index, "invalid", _at(place, problem.errors))
            continue
        if kinds and settings.secrets == "reject":
            errors = [FieldError(place, "secret", f"a secret of kind {kind}") for kind in kinds]
            judged.refuse(record.index, "rejected", errors)
            judged.redactions += _redactions(record.index, place, kinds)
            continue
        kept.append(
            replace(record, request=cleaned.request, claimed=_claims(cleaned.claimed), redacted=kinds)
        )
    return kept


def _recorded(record: Record) -> _Recorded:
    return _Recorded(
        request=record.request,
        claims=gate.names_and_texts(record.claimed),
        claimed=None if record.claimed is None else canonical_json(record.claimed),
    )


def _redactions(index: int, place: str, kinds: Iterable[str]) -> list[dict[str, Any]]:
    return [{"index": index, "pointer": place, "kind": kind} for kind in sorted(kinds)]


def _judge_one(
    services: Services,
    judged: Judged,
    record: Record,
    examined: gate.Examined[_Recorded] | Problem,
    place: str,
) -> None:
    if isinstance(examined, Problem):  # blank once cleaned
        judged.refuse(record.index, "invalid", _at(place, examined.errors))
        return
    kinds = {kind for _, kind in examined.redactions} | set(record.redacted)
    judged.redactions += _redactions(record.index, place, kinds)
    if examined.verdict is Verdict.REJECT:
        judged.refuse(record.index, "rejected", _at(place, gate.errors_of(examined)))
        return
    judged.items.append(
        Item(
            index=record.index,
            request=examined.request.request,
            report=examined.report,
            pii=examined.pii,
            held=examined.verdict is Verdict.QUARANTINE,
            claimed=_claims(examined.request.claimed),
            complete=record.complete,
        )
    )


def _at(place: str, errors: Iterable[FieldError]) -> list[FieldError]:
    return [FieldError(place, error.code, error.detail) for error in errors]


def _claims(cleaned: str | None) -> dict[str, Any] | None:
    """The claims as they may be stored; none when a redacted secret took the form with it."""
    if cleaned is None:
        return None
    try:
        claims: dict[str, Any] = json.loads(cleaned)
    except ValueError:
        return None
    return claims
