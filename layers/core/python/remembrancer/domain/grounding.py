"""Quotes of evidence and the exact spans they stand for, at word granularity.

A model names a place by copying words and, when they come more than once, by saying which time. That costs a
few tokens where they are needed; a marker before every word, or worse every character, costs them everywhere.
"""

from __future__ import annotations

import re
import unicodedata

MAX_QUOTE = 4_000
"""Code points: an evidence item is no longer."""

_LETTER = frozenset("LMN")
# Scripts that are written without spaces: a word may begin at any of their characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)


def is_boundary(text: str, place: int) -> bool:
    """Whether a word may begin or end before code point `place` of `text`; never inside a combined character."""
    if place in (0, len(text)):
        return True
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M":
        return False
    if _UNSPACED.match(before) or _UNSPACED.match(after):
        return True
    return not (_in_word(before) and _in_word(after))


def occurrences(text: str, quote: str) -> list[int]:
    """Where `quote` begins in `text`, byte-exact, each time between word boundaries. Empty for no quote.

    Found times may overlap. Linear in the text for each time it is found.
    """
    found: list[int] = []
    if not quote:
        return found
    place = text.find(quote)
    while place >= 0:
        if is_boundary(text, place) and is_boundary(text, place + len(quote)):
            found.append(place)
        place = text.find(quote, place + 1)
    return found


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in _LETTER
