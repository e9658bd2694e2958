"""Characters that a reader cannot see: which are removed from text, and which carry meaning and stay.

Removed anywhere: zero-width space, byte-order mark, word joiner and the invisible operators, bidirectional
controls, tag characters, soft hyphen. Joiners (ZWJ, ZWNJ) and variation selectors shape words and emoji, so
they stay where they can act: after a visible character, at most one selector and one joiner. Elsewhere (at
the start, after white space, in longer runs) they shape nothing and only hide data.
"""

from __future__ import annotations

import re

REMOVABLE = (
    "\u00ad"  # soft hyphen
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u180e\u200b\ufeff"  # Mongolian vowel separator, zero-width space, byte-order mark
    "\u2060-\u2065\u206a-\u206f"  # word joiner, invisible operators, deprecated format controls
    "\U000e0000-\U000e007f"  # tags
)
"""Body of a regular-expression character class."""
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
JOINERS = "\u200c\u200d"

_REMOVABLE = re.compile(f"[{REMOVABLE}]+")
_ADRIFT = re.compile(rf"(?<!\S)[{SELECTORS}{JOINERS}]+")
_RUN = re.compile(f"[{SELECTORS}{JOINERS}]{{2,}}")
_EFFECTIVE = re.compile(f"[{SELECTORS}]?[{JOINERS}]?")


def strip_invisible(text: str) -> str:
    """`text` without removable invisible characters. Idempotent; everything else is kept as it is."""
    if text.isascii():
        return text
    return _RUN.sub(_effective, _ADRIFT.sub("", _REMOVABLE.sub("", text)))


def _effective(run: re.Match[str]) -> str:
    head = _EFFECTIVE.match(run[0])
    return head[0] if head else ""
