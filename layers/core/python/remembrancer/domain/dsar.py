"""Requests of data subjects: how long each law gives, and the certificate of what was done."""

from __future__ import annotations

import hashlib
from calendar import monthrange
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from remembrancer.domain.canonical import canonical_json

Jurisdiction = Literal[
    "gdpr", "uk_gdpr", "ccpa", "us_state", "lgpd", "pipeda", "fadp", "popia", "pdpa_sg", "other"
]


@dataclass(frozen=True)
class Period:
    """The time to answer, from receipt. Extensions are not counted: they must be asked for and reasoned."""

    law: str
    months: int = 0
    days: int = 0


PERIODS: Mapping[Jurisdiction, Period] = {
    "gdpr": Period("Regulation (EU) 2016/679, art. 12(3)", months=1),
    "uk_gdpr": Period("UK GDPR, art. 12(3)", months=1),
    "ccpa": Period("California Civil Code 1798.130(a)(2)(A)", days=45),
    "us_state": Period("US state privacy laws, e.g. Code of Virginia 59.1-577(B)(1)", days=45),
    "lgpd": Period("Brazil, Lei 13.709/2018, art. 19, II", days=15),
    "pipeda": Period("Canada, PIPEDA, s. 8(3)", days=30),
    "fadp": Period("Switzerland, Data Protection Ordinance, art. 18", days=30),
    "popia": Period("South Africa, POPIA s. 23 with PAIA s. 25", days=30),
    "pdpa_sg": Period("Singapore, Personal Data Protection Regulations 2021, reg. 5", days=30),
    "other": Period("no law of the list", days=30),
}
assert set(PERIODS) == set(get_args(Jurisdiction))

WARNINGS = (timedelta(days=7), timedelta(days=1), timedelta(0))
"""How long before the deadline somebody is told, once each; the last when it has passed."""


def deadline(received: datetime, jurisdiction: Jurisdiction) -> datetime:
    """When the answer is due. A month ends on the day of the same number, or on the last day of a shorter month
    (Regulation (EEC, Euratom) 1182/71, art. 3)."""
    period = PERIODS[jurisdiction]
    month = received.month - 1 + period.months
    year, month = received.year + month // 12, month % 12 + 1
    day = min(received.day, monthrange(year, month)[1])
    return received.replace(year=year, month=month, day=day) + timedelta(days=period.days)


def warnings_due(now: datetime, due: datetime) -> int:
    """How many of WARNINGS are due by now."""
    return sum(due - before <= now for before in WARNINGS)


def tombstone_root(macs: Iterable[bytes]) -> str:
    """The Merkle tree hash (RFC 9162, 2.1.1, SHA-256) over the tombstones in the order of their bytes, hexadecimal."""
    return _tree([hashlib.sha256(b"\x00" + mac).digest() for mac in sorted(macs)]).hex()


def _tree(level: list[bytes]) -> bytes:
    """Pairs from the left, a single one carried up: for a list this gives the split of the RFC."""
    if not level:
        return hashlib.sha256(b"").digest()
    while len(level) > 1:
        pairs = [
            hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)
        ]
        level = pairs + (level[-1:] if len(level) % 2 else [])
    return level[0]


def certificate_digest(certificate: Mapping[str, Any]) -> bytes:
    """SHA-256 of the canonical JSON of a certificate: what the audit chain keeps of it."""
    return hashlib.sha256(canonical_json(certificate).encode()).digest()
