"""Spans that a detector found, and their replacement by a label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

PLACEHOLDER = re.compile(r"\[redacted:(?:email|phone|card|iban|ssn|text|secret:[a-z_]{3,32})\]")
"""What `mask` leaves behind; no detector may take it for a finding."""


class Finding(NamedTuple):
    """`text[start:end]`, in code points, is of this kind. Never carries the text itself."""

    kind: str
    start: int
    end: int


def merge(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Disjoint findings by position. Overlapping ones become their union, named by the first in the input."""
    ranked = sorted(enumerate(findings), key=lambda item: (item[1].start, item[0]))
    merged: list[tuple[int, Finding]] = []
    for rank, finding in ranked:
        if finding.end <= finding.start:
            continue
        if merged and finding.start < merged[-1][1].end:
            last_rank, last = merged[-1]
            kind = last.kind if last_rank <= rank else finding.kind
            union = Finding(kind, last.start, max(last.end, finding.end))
            merged[-1] = (min(last_rank, rank), union)
        else:
            merged.append((rank, finding))
    return tuple(finding for _, finding in merged)


def mask(text: str, findings: Iterable[Finding], label: Callable[[str], str]) -> str:
    """`text` with every finding replaced by `label(kind)`; nothing outside the spans changes."""
    pieces: list[str] = []
    position = 0
    for finding in merge(findings):
        pieces.append(text[position : finding.start])
        pieces.append(label(finding.kind))
        position = finding.end
    pieces.append(text[position:])
    return "".join(pieces)
