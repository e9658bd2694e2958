"""Directive or reported: whether a phrase addresses the agent or is quoted, attributed, negated, told."""

from __future__ import annotations

from enum import Enum

from remembrancer.domain.screen import tokens
from remembrancer.domain.screen.phrases import Lexicon

_SENTENCE = 16
_NEGATION = 4
_SUBJECT = 2
_FORGET = 2
_QUOTATION = 40
_QUOTED_TEXT = 200


class Speech(Enum):
    """How a phrase stands in its sentence."""

    DIRECTIVE = "directive"
    NARRATED = "narrated"
    REPORTED = "reported"
    OPPOSITE = "opposite"  # "do not forget your instructions"


def speech(codes: str, start: int, end: int, lexicon: Lexicon) -> Speech:
    """Whether the tokens `start:end` of an encoded text address the agent, have a narrator, or are reported."""
    before = codes[max(0, start - _SENTENCE) : start]
    cut = before.rfind(lexicon.codes("=" + tokens.BREAK))
    before = before[cut + 1 :]
    if codes[start] in lexicon.codes("=forget") and _any(before[-_FORGET:], lexicon.codes("negation")):
        return Speech.OPPOSITE
    if _quoted(codes, start, end, lexicon.codes("=<quote>")):
        return Speech.REPORTED
    if _any(before, lexicon.codes("attribution")) or _any(before[-_NEGATION:], lexicon.codes("negation")):
        return Speech.REPORTED
    if _any(before[-_SUBJECT:], lexicon.codes("narrator")) or codes[start] in lexicon.codes("narrated"):
        return Speech.NARRATED
    return Speech.DIRECTIVE


def in_quotes(text: str, start: int, end: int) -> bool:
    """Whether a folded text has a quotation or code mark open before `start` and one after `end`, on the way."""
    before = text[max(0, start - _QUOTED_TEXT) : start].rsplit("\n\n", 1)[-1]
    after = text[end : end + _QUOTED_TEXT].split("\n\n", 1)[0]
    return any(before.count(mark) % 2 == 1 and mark in after for mark in ('"', "`", "'"))


def _any(codes: str, wanted: str) -> bool:
    return not set(codes).isdisjoint(wanted)


def _quoted(codes: str, start: int, end: int, quote: str) -> bool:
    before = codes[max(0, start - _QUOTATION) : start]
    return before.count(quote) % 2 == 1 and quote in codes[end : end + _QUOTATION]
