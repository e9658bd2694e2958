"""What the screen says about a request: verdicts, signals, and the report that is stored with a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_SIGNALS_PER_FIELD = 8
MAX_SIGNALS_PER_REQUEST = 16


class Verdict(StrEnum):
    CLEAN = "clean"
    QUARANTINE = "quarantine"
    REJECT = "reject"


class Severity(StrEnum):
    """How bad one signal is; it alone decides the signal's verdict."""

    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_VERDICT_RANK = {Verdict.CLEAN: 0, Verdict.QUARANTINE: 1, Verdict.REJECT: 2}
_SEVERITY_RANK = {Severity.MEDIUM: 0, Severity.HIGH: 1, Severity.CRITICAL: 2}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest of `verdicts`; clean when there are none."""
    return max(verdicts, key=_VERDICT_RANK.__getitem__, default=Verdict.CLEAN)


@dataclass(frozen=True, slots=True)
class Signal:
    """One finding. `start` and `end` are code points in the ORIGINAL field; the text itself is never kept.

    `view` is `raw`, `normalized` or `decoded:<chain>`, e.g. `decoded:base64+percent` (outermost first).
    """

    field: str
    family: str
    rule: str
    severity: Severity
    start: int
    end: int
    view: str

    @property
    def verdict(self) -> Verdict:
        """Critical signals reject, all others quarantine."""
        return Verdict.REJECT if self.severity is Severity.CRITICAL else Verdict.QUARANTINE

    def to_dict(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "family": self.family,
            "rule": self.rule,
            "severity": self.severity.value,
            "start": self.start,
            "end": self.end,
            "view": self.view,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Signal:
        """Raises KeyError for a missing key and ValueError for an unknown severity."""
        return cls(
            field=data["field"],
            family=data["family"],
            rule=data["rule"],
            severity=Severity(data["severity"]),
            start=data["start"],
            end=data["end"],
            view=data["view"],
        )


@dataclass(frozen=True, slots=True)
class ScreenReport:
    """Layer 1's answer for a whole request.

    `truncated` says that more was found than is listed. The verdict always counts everything found.
    """

    verdict: Verdict
    signals: tuple[Signal, ...]
    truncated: bool
    rules_version: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "signals": [signal.to_dict() for signal in self.signals],
            "truncated": self.truncated,
            "rules_version": self.rules_version,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ScreenReport:
        """Raises KeyError for a missing key and ValueError for an unknown verdict or severity."""
        return cls(
            verdict=Verdict(data["verdict"]),
            signals=tuple(Signal.from_dict(item) for item in data["signals"]),
            truncated=bool(data["truncated"]),
            rules_version=data["rules_version"],
        )


def build_report(found: Mapping[str, Iterable[Signal]], rules_version: str) -> ScreenReport:
    """The report over all fields' signals: the worst are kept first, then listed in reading order."""
    kept: list[Signal] = []
    verdicts: set[Verdict] = set()
    truncated = False
    for signals in found.values():
        unique = sorted(set(signals), key=_worst_first)
        verdicts.update(signal.verdict for signal in unique)
        truncated |= len(unique) > MAX_SIGNALS_PER_FIELD
        kept.extend(unique[:MAX_SIGNALS_PER_FIELD])
    kept.sort(key=_worst_first)
    truncated |= len(kept) > MAX_SIGNALS_PER_REQUEST
    field_order = {name: index for index, name in enumerate(found)}
    listed = sorted(kept[:MAX_SIGNALS_PER_REQUEST], key=lambda s: (field_order[s.field], *_reading_order(s)))
    return ScreenReport(worst(verdicts), tuple(listed), truncated, rules_version)


def _worst_first(signal: Signal) -> tuple[int, int, int, str, str, str]:
    return (-_SEVERITY_RANK[signal.severity], *_reading_order(signal))


def _reading_order(signal: Signal) -> tuple[int, int, str, str, str]:
    return (signal.start, signal.end, signal.family, signal.rule, signal.view)
