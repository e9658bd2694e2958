"""Personal data in text: e-mail, phone, payment card, IBAN, US social security number; IP address as a flag.

Candidates are found in the view of `flat` with linear-time patterns and then validated: cards by Luhn and
IBANs by ISO 7064 mod 97 (python-stdnum), phones in `phones`. The validators are imported when a candidate
needs them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

from remembrancer.domain import phones
from remembrancer.domain.findings import Finding, mask, merge
from remembrancer.domain.flat import compiled, flatten

DEFAULT_REGIONS = phones.DEFAULT_REGIONS

_Spans = Iterator[tuple[str, int, int]]

_LOCAL = rb"[A-Za-z0-9\xfe!#$%&'*+/=?^_{|}~.-]+"
_AROUND = re.compile(rb"(?s).*(?:[/=?|{}`*&]|(?<![A-Za-z0-9\xfe])')")
_LABEL = rb"[A-Za-z0-9\xfe](?:[A-Za-z0-9\xfe-]{0,61}[A-Za-z0-9\xfe])?"
_EMAIL = rb"(" + _LOCAL + rb")@((?:" + _LABEL + rb"\.){1,8}(?:[A-Za-z\xfe]{2,24}|xn--[A-Za-z0-9-]{2,59}))"
_DIGIT_RUN = rb"\d(?:[ .-]{0,2}\d){11,}"
_CARD_SHAPE = rb"^(?:\d{12,19}|\d{3,6}(?:([ .-])\d{2,7}){1,5})$"
_IBAN = rb"(?i)\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?"
_SSN = rb"\b\d{3}[- ]\d{2}[- ]\d{4}\b"
_SSN_PLAIN = rb"(?i)\b(?:ssn|social security)[^\d\n]{0,40}(\d{9})\b"
_OCTET = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rb"\b" + _OCTET + rb"(?:\." + _OCTET + rb"){3}\b"
_VERSION_BEFORE = re.compile(rb"\b(?:version|ver|release|build|v)[ .:=]{0,3}$", re.IGNORECASE)
_HEXTET = rb"[0-9A-Fa-f]{1,4}"
_HEXTETS = _HEXTET + rb"(?::" + _HEXTET + rb"){0,6}"
_IPV6 = (
    rb"(?:" + _HEXTET + rb":){7}" + _HEXTET + rb"|"
    rb"(?:" + _HEXTETS + rb"::(?:" + _HEXTETS + rb")?|::" + _HEXTETS + rb")"
    rb"(?::\d{1,3}(?:\.\d{1,3}){3})?"
)
_VALIDATED = 2000
"""IBAN candidates of one text that are validated; beyond, the shape alone decides (bounded time)."""


def find_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> tuple[Finding, ...]:
    """Disjoint findings by position, spans in code points: email, phone, card, iban, ssn, ip.

    `regions` (ISO 3166 alpha-2): whose national phone shapes are known; a number with a country code needs
    none of them.
    """
    flat = flatten(text)
    data = flat.data
    found = [*_emails(data), *_ibans(data), *_ssns(data), *_addresses(data)]
    found += _cards(_blanked(data, found))
    found += [("phone", *span) for span in phones.find_phones(_blanked(data, found), regions)]
    return merge(Finding(kind, *flat.span(start, end)) for kind, start, end in found)


def mask_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> str:
    """`text` with `[redacted:<kind>]` for each finding; IP addresses stay."""
    return mask(text, maskable(find_pii(text, regions=regions)), pii_label)


def scan_pii(text: str, *, regions: Sequence[str] = DEFAULT_REGIONS) -> frozenset[str]:
    """The kinds of personal data in `text`, IP address included."""
    return frozenset(finding.kind for finding in find_pii(text, regions=regions))


def maskable(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Without what is only flagged."""
    return tuple(finding for finding in findings if finding.kind != "ip")


def pii_label(kind: str) -> str:
    return f"[redacted:{kind}]"


def _emails(data: bytes) -> _Spans:
    if b"@" not in data:
        return
    for match in compiled(_EMAIL).finditer(data):
        start, end = match.span()
        at = match.end(1)
        start = at - len(_bare_local(data[start:at]))
        scale_suffix = data[at + 2 : at + 4] == b"x."  # icon@2x.png
        remote = data[start:at] == b"git" and data[end : end + 1] == b":"
        if start < at and not scale_suffix and not remote:
            yield "email", start, end


def _bare_local(local: bytes) -> bytes:
    """Without leading marks that are legal in a local part but are far more often around an address."""
    if local.isalnum():
        return local
    cut = _AROUND.search(local)
    return local[cut.end() if cut else 0 :].lstrip(b".-!#$%^~+'")


def _cards(data: bytes) -> _Spans:
    for match in compiled(_DIGIT_RUN).finditer(data):
        start, end = match.span()
        if end - start <= 40 and not _touches_word(data, start, end) and data[start - 1 : start] != b"+":
            digits = bytes(byte for byte in match.group() if 0x30 <= byte <= 0x39).decode("ascii")
            if _is_card(match.group(), digits):
                yield "card", start, end


def _is_card(written: bytes, digits: str) -> bool:
    separators = {byte for byte in written if not 0x30 <= byte <= 0x39}
    if len(separators) > 1 or len(set(digits)) < 2 or not _issued(digits):
        return False
    if not compiled(_CARD_SHAPE).search(written):
        return False
    from stdnum import luhn

    return bool(luhn.is_valid(digits))


def _issued(digits: str) -> bool:
    """Whether an issuer uses this length with this first digit; times, article numbers and ids do not."""
    first = digits[0]
    return {
        12: first in "56" or digits.startswith("0604"),
        13: first in "456",
        14: first in "356",
        15: True,
        16: first != "1",
        17: first in "56",
        18: first in "56",
        19: first in "4569",
    }.get(len(digits), False)


def _ibans(data: bytes) -> _Spans:
    regex = compiled(_IBAN)
    match = regex.search(data)
    validated = 0
    while match:
        start, end = match.span()
        validated += 1
        length = _iban_length(data[start : end + 1]) if validated <= _VALIDATED else end - start
        if length:
            yield "iban", start, start + length
        match = regex.search(data, start + (length or 4))


def _iban_length(candidate: bytes) -> int:
    """Bytes of the valid IBAN that `candidate` (with the byte after it) begins with; 0 for none."""
    for end in range(min(len(candidate), 42), 14, -1):
        whole = _is_word(candidate[end - 1 : end]) and not _is_word(candidate[end : end + 1])
        if whole and _is_iban(candidate[:end].decode("ascii", "replace")):
            return end
    return 0


def _is_iban(written: str) -> bool:
    compact = written.replace(" ", "").replace("-", "").upper()
    if not (compact.isascii() and compact.isalnum()):
        return False
    if int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 != 1:
        return False
    from stdnum import iban

    return bool(iban.is_valid(compact, check_country=False))


def _ssns(data: bytes) -> _Spans:
    for match in compiled(_SSN).finditer(data):
        start, end = match.span()
        issued = _is_ssn(data[start : start + 3], data[start + 4 : start + 6], data[start + 7 : end])
        if issued and data[start + 3] == data[start + 6] and _stands_alone(data, start, end):
            yield "ssn", start, end
    for match in compiled(_SSN_PLAIN).finditer(data):
        start, end = match.start(1), match.end()
        if _is_ssn(data[start : start + 3], data[start + 3 : start + 5], data[start + 5 : end]):
            yield "ssn", start, end


def _is_ssn(area: bytes, group: bytes, serial: bytes) -> bool:
    return area not in (b"000", b"666") and area < b"900" and group != b"00" and serial != b"0000"


def _addresses(data: bytes) -> _Spans:
    if b"." in data:
        for match in compiled(_IPV4).finditer(data):
            start, end = match.span()
            version = _VERSION_BEFORE.search(data[max(0, start - 12) : start])
            if not version and _stands_alone(data, start, end):
                yield "ip", start, end
    if b":" in data:
        for match in compiled(_IPV6).finditer(data):
            start, end = match.span()
            if not _touches_word(data, start, end) and _is_ipv6(data[start:end]):
                yield "ip", start, end


def _is_ipv6(written: bytes) -> bool:
    if not any(0x30 <= byte <= 0x39 for byte in written):
        return False  # a scope operator: `dead::beef` is code more often than an address
    try:
        ipaddress.IPv6Address(written.decode("ascii"))
    except ValueError:
        return False
    return True


def _touches_word(data: bytes, start: int, end: int) -> bool:
    return _is_word(data[start - 1 : start]) or _is_word(data[end : end + 1])


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Not a piece of a longer number, version or word."""
    before, after = data[max(0, start - 2) : start], data[end : end + 2]
    if _touches_word(data, start, end) or (before[-1:] in (b".", b"-") and before[:1].isalnum()):
        return False
    return not (after[:1] in (b".", b"-", b"/") and after[1:].isdigit())


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte in (b"_", b"\xfe")


def _blanked(data: bytes, found: Sequence[tuple[str, int, int]]) -> bytes:
    """`data` with what is already known blanked out, so that its digits are not taken for another kind."""
    if not found:
        return data
    remaining = bytearray(data)
    for _, start, end in found:
        remaining[start:end] = b"\x00" * (end - start)
    return bytes(remaining)
