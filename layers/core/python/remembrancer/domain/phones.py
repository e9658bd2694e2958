"""Telephone numbers in text.

A number with a country code, or a national one that is written in groups, is believed when phonenumberslite
finds it valid for a region. What is only possible (a local number, digits without groups) is believed when
the words beside it speak of a telephone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from remembrancer.domain.flat import compiled

DEFAULT_REGIONS: tuple[str, ...] = (
    "US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "SE", "PL", "PT", "AU", "IN", "BR",
)  # fmt: skip
VALIDATED = 1000
"""Distinct candidates of one text that are validated; beyond, being written like a number is enough."""

_SHAPE = rb"\+?\(?\d(?:\)?[ ./-]{0,2}\(?\d){6,19}\)?(?:[ ,;]{0,2}(?:x|ext\.?|#) ?\d{1,6})?"
_SEVERAL = re.compile(rb"(?:[^/\d]*\d){7}[^/]*/(?:[^/\d]*\d){7}[^/]*$")
_OTHER_SHAPE = re.compile(r"^(?:\d{3}-\d\d-\d{4}|\d{1,3}(?:\.\d{3})+)$")
"""Of a social security number, and of thousands."""
_EXTENSION = re.compile(rb"[ ,;]{0,2}(?:x|ext\.?|#) ?\d{1,6}$", re.IGNORECASE)
_CUE_BEFORE = (
    rb"(?i)(?:\b(?:phone|telephone|tel|mobile|mob|cell|cellphone|fax|desk|call(?:ed|ing)?|dial|ring|"
    rb"text(?:ed)?|sms|whatsapp|signal|reach(?:ed)?|answer(?:ing)?|registered|hotline|landline|pager|"
    rb"messages?|telefon|handy|mobil|t[e\xfe]l[e\xfe]phone|portable|tel[e\xfe]fono|m[o\xfe]vil|cellulare|"
    rb"telefone|b[u\xfe]ro)s?|\b(?:my|your|his|her|their|our|new|old|work|home|office|contact) (?:number|no\.?)|"
    rb"office:)"
    rb"(?:[^\w\n]|\b(?:me|us|him|her|them|at|on|to|is|was|number|no|back|under|my|or|home|work|line|now)\b)"
    rb"{0,12}\n?\s{0,8}$"
)
_CUE_AFTER = rb"(?i)^[ \t\\,;(-]{0,4}(?:office|mobile|cell|fax|home|work|desk|direct|tel|phone|landline)\b"
_STREET_AFTER = (
    rb"^ [A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,3} "
    rb"(?:St|Street|Ave|Avenue|Rd|Road|Dr|Drive|Ln|Lane|Way|Blvd|Apt|Suite)\b"
)
_NOT_PHONE = (
    rb"(?i)(?:[#$]|\b(?:no|nr|id|isbn|issn|order|invoice|ticket|ref|reference|version|v|account|acct|box|"
    rb"apt|suite|zip|section|pages?|pp?|case|model|serial|sku|part|eur|usd|gbp|licen[sc]e|port|lines?|build|"
    rb"rows?|tracking|customer|member|policy|flight|room|article|chapter|passport|code|pin)"
    rb"(?: (?:number|no|id|code))?(?: (?:is|was))?)[ :.#=]{0,3}$"
)
_YEAR, _MONTH, _DAY = rb"(?:1[5-9]|20)\d\d", rb"(?:0?[1-9]|1[0-2])", rb"(?:0?[1-9]|[12]\d|3[01])"
_DATE = (
    rb"^(?:" + _YEAR + rb"[-./ ]" + _MONTH + rb"[-./ ]" + _DAY + rb"|"
    rb"" + _DAY + rb"[-./ ]" + _DAY + rb"[-./ ](?:" + _YEAR + rb"|\d\d)|"
    rb"" + _YEAR + rb" ?[-/] ?(?:" + _YEAR + rb"|\d\d))(?:[ .].*)?$"
)


def find_phones(data: bytes, regions: Sequence[str] = DEFAULT_REGIONS) -> Iterator[tuple[int, int]]:
    """Spans of telephone numbers in a view of `flat`, extension included."""
    verdicts: dict[tuple[bytes, bool], bool] = {}
    for match in compiled(_SHAPE).finditer(data):
        start, end = _trimmed(data, *match.span())
        written = data[start:end]
        if _part_of_more(data, start, end) or compiled(_DATE).search(written):
            continue
        before, after = data[max(0, start - 48) : start], data[end : end + 48]
        if compiled(_NOT_PHONE).search(before) or compiled(_STREET_AFTER).search(after):
            continue
        cued = bool(compiled(_CUE_BEFORE).search(before) or compiled(_CUE_AFTER).search(after))
        for first, last in _pieces(data, start, end):
            key = (data[first:last], cued)
            if key not in verdicts:
                exhausted = len(verdicts) >= VALIDATED
                verdicts[key] = _is_phone(key[0].decode("ascii"), cued, regions, exhausted)
            if verdicts[key]:
                yield first, last


def _pieces(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span, or the numbers that a slash separates in it."""
    written = data[start:end]
    if not _SEVERAL.match(written):
        yield start, end
        return
    for part in re.finditer(rb"[^/]+", written):
        number = part[0].strip()
        first = start + written.index(number, part.start())
        yield first, first + len(number)


def _trimmed(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Without brackets that have no partner inside."""
    while start < end and data[start : start + 1] == b"(" and b")" not in data[start:end]:
        start += 1
    while start < end and data[end - 1 : end] == b")" and b"(" not in data[start:end]:
        end -= 1
    return start, end


def _part_of_more(data: bytes, start: int, end: int) -> bool:
    before, after = data[max(0, start - 2) : start], data[end : end + 2]
    if _is_word(before[-1:]) or _is_word(after[:1]):
        return True
    if before[-1:] in (b".", b"-", b"/", b":", b",", b"=", b"%", b"@", b"&") and before[:1].isalnum():
        return not before[:1].isalpha() or before[-1:] not in (b":", b",", b".", b"=")
    return after[:1] in (b"@", b"%") or (after[:1] in (b".", b"-", b"/", b":", b",") and after[1:].isdigit())


def _is_phone(written: str, cued: bool, regions: Sequence[str], exhausted: bool) -> bool:
    import phonenumbers

    core = _EXTENSION.sub(b"", written.encode("ascii")).decode("ascii")
    digits = "".join(character for character in core if character.isdigit())
    if len(digits) > 15 + 2 or len(set(digits)) < 2:
        return False
    if core.startswith("+"):
        return cued or exhausted or _possible(phonenumbers, core)
    if digits.startswith("00") and len(digits) >= 10 and _possible(phonenumbers, "+" + digits[2:]):
        return True
    if cued:
        return len(digits) <= 13
    groups = compiled(rb"\d+").findall(core.encode("ascii"))
    if not _is_grouped(core, groups):
        return False
    return exhausted or any(_valid(phonenumbers, core, region) for region in regions)


def _is_grouped(core: str, groups: list[bytes]) -> bool:
    """Written as people write telephone numbers: a few groups, one sort of separator, nine digits or more."""
    if len(groups) < 2 or sum(map(len, groups)) < 9 or _OTHER_SHAPE.search(core):
        return False
    separators = set(core) - set("0123456789()")
    if len(groups) == 2 and "(" not in core and not core.startswith("0"):
        return False
    return len(separators) <= 2


def _possible(phonenumbers: Any, number: str) -> bool:
    """Of a length that its country has. Validity would miss ranges that are newer than the metadata."""
    try:
        return bool(phonenumbers.is_possible_number(phonenumbers.parse(number, None)))
    except phonenumbers.NumberParseException:
        return False


def _valid(phonenumbers: Any, number: str, region: str) -> bool:
    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, region)))
    except phonenumbers.NumberParseException:
        return False


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte in (b"_", b"\xfe")
