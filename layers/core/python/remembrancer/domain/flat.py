"""The view in which secrets and PII are searched: one byte a visible character, look-alikes of ASCII folded.

A linear-time engine searches bytes, and spans must be code points of the original. Here both are the same but
for characters that are left out (invisible ones, combining marks), for which positions are kept. Never
raises: lone surrogates, NUL and unassigned code points are ordinary bytes of the view.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import re2
from numpy.typing import NDArray

from remembrancer.domain.invisible import JOINERS, REMOVABLE, SELECTORS

LETTER = 0xFE
"""A non-ASCII letter of an alphabet that is written with spaces (Latin, Greek, Cyrillic)."""
OTHER = 0xFF
"""Any other character outside ASCII."""
_DROPPED = 0xFD
_TABLE_SIZE = 0x20000
_SPECIAL_TAGS = (0xE0000, 0xE0FFF)


class Flat(NamedTuple):
    data: bytes
    positions: NDArray[np.intp] | None
    """Position in the original of each byte; None when they are the same."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Code-point span of the original for a non-empty byte span of the view."""
        if self.positions is None:
            return start, end
        return int(self.positions[start]), int(self.positions[end - 1]) + 1


def flatten(text: str) -> Flat:
    if text.isascii():
        return Flat(text.encode("ascii"), None)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    flat = _table()[np.minimum(codes, _TABLE_SIZE - 1)]
    dropped = (flat == _DROPPED) | ((codes >= _SPECIAL_TAGS[0]) & (codes <= _SPECIAL_TAGS[1]))
    if not dropped.any():
        return Flat(flat.tobytes(), None)
    positions = np.flatnonzero(~dropped)
    return Flat(flat[positions].tobytes(), positions)


@cache
def compiled(pattern: bytes) -> Any:
    """A regular expression over a view, compiled at its first use: most texts need few of them."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern, options)


@cache
def _table() -> NDArray[np.uint8]:
    """The byte of each code point below U+20000."""
    table = np.full(_TABLE_SIZE, OTHER, dtype=np.uint8)
    table[:0x80] = np.arange(0x80)
    for first, last in ((0xA0, 0x530), (0x1E00, 0x2070), (0x2460, 0x2500), (0x3000, 0x3001), (0xFB00, 0xFB07),
                        (0xFF00, 0xFFF0), (0x1D400, 0x1D800)):  # fmt: skip
        for code in range(first, last):
            table[code] = _folded(chr(code))
    for zero in (0x0660, 0x06F0, 0x0966, 0x09E6):  # decimal digits of the Arabic and Indic scripts
        table[zero : zero + 10] = np.arange(0x30, 0x3A)
    invisible = re.compile(
        f"[{REMOVABLE}{SELECTORS}{JOINERS}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164]"
    )
    for first, last in (
        (0xA0, 0x70F),
        (0x1100, 0x1900),
        (0x2000, 0x2070),
        (0x3160, 0x3170),
        (0xFE00, 0xFF00),
    ):
        for code in range(first, last):
            if invisible.match(chr(code)) or 0x0300 <= code < 0x0370:
                table[code] = _DROPPED
    return table


def _folded(character: str) -> int:
    category = unicodedata.category(character)
    compatible = unicodedata.normalize("NFKC", character)
    if category == "Zs":
        return 0x20
    if category == "Pd":
        return 0x2D
    if character in "‹›":
        return 0x3C if character == "‹" else 0x3E
    if category in ("Pi", "Pf"):
        return 0x27 if character in "‘’‛‚" else 0x22
    if len(compatible) == 1 and ord(compatible) < 0x80:
        return ord(compatible)
    return LETTER if category.startswith("L") and ord(character) < 0x2000 else OTHER
