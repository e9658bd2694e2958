"""Personal data in text: e-mail, phone, payment card, IBAN, US social security number; IP address as a flag.

Candidates are found in the view of `flat` with linear-time patterns and then validated: phones by
phonenumberslite, cards by Luhn, IBANs by ISO 7064 mod 97 and their country's length (python-stdnum).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import re2

from remembrancer.domain.findings import Finding, mask, merge
from remembrancer.domain.flat import Flat, flatten

DEFAULT_REGIONS: tuple[str, ...] = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "CH", "SE", "AU")


def find_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> tuple[Finding, ...]:
    """Disjoint findings by position, spans in code points: email, phone, card, iban, ssn, ip.

    `regions` (ISO 3166 alpha-2): whose national phone shapes are known; numbers with a country code need none.
    """
    flat = flatten(text)
    return merge(Finding(kind, *flat.span(start, end)) for kind, start, end in _emails(flat))


def mask_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> str:
    """`text` with `[redacted:<kind>]` for each finding; IP addresses stay."""
    return mask(text, maskable(find_pii(text, regions=regions)), pii_label)


def scan_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> frozenset[str]:
    """The kinds of personal data in `text`, IP address included."""
    return frozenset(finding.kind for finding in find_pii(text, regions=regions))


def maskable(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Without what is only flagged."""
    return tuple(finding for finding in findings if finding.kind != "ip")


def pii_label(kind: str) -> str:
    return f"[redacted:{kind}]"


def _emails(flat: Flat) -> Iterator[tuple[str, int, int]]:
    if b"@" not in flat.data:
        return
    for match in re2.finditer(rb"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,200}\.[A-Za-z]{2,24}", flat.data):
        yield "email", match.start(), match.end()
