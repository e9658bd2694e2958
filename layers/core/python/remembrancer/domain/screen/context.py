"""Directive or reported: whether a matched phrase addresses the agent or is quoted, attributed, negated, told."""

from __future__ import annotations

from remembrancer.domain.screen import tokens
from remembrancer.domain.screen.phrases import Lexicon

_SENTENCE = 16
_NEGATION = 4
_SUBJECT = 2
_QUOTATION = 40


def is_reported(codes: str, start: int, end: int, lexicon: Lexicon) -> bool:
    """Whether the tokens `start:end` of an encoded text are reported speech or description."""
    before = codes[max(0, start - _SENTENCE) : start]
    cut = before.rfind(lexicon.codes("=" + tokens.BREAK))
    before = before[cut + 1 :]
    if _any(before, lexicon.codes("attribution")):
        return True
    if _any(before[-_NEGATION:], lexicon.codes("negation")):
        return True
    if _any(before[-_SUBJECT:], lexicon.codes("narrator")):
        return True
    if codes[start] in lexicon.codes("narrated"):
        return True
    return _quoted(codes, start, end, lexicon.codes("=<quote>"))


def _any(codes: str, wanted: str) -> bool:
    return not set(codes).isdisjoint(wanted)


def _quoted(codes: str, start: int, end: int, quote: str) -> bool:
    if quote not in codes[max(0, start - _QUOTATION) : start]:
        return False
    opened = codes[max(0, start - _QUOTATION) : start].count(quote) % 2 == 1
    return opened and quote in codes[end : end + _QUOTATION]
