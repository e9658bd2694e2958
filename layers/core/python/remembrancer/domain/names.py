"""Names of entities brought to one comparable form."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = frozenset({"Cf", "Cc", "Cs"})
_SPACE = re.compile(r"\s+")
_MARKS = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "＇": "'", "‐": "-", "‑": "-", "–": "-", "ı": "i"})
_DOT_ABOVE = "̇"


def fold(text: str) -> str:
    """`text` without what two spellings of one name may differ in. May be empty; never raises.

    NFKC (so composed, decomposed and full-width forms agree), case-folded, format and control
    characters dropped, white space collapsed, typographic quotes and hyphens plain. The four Turkish
    letters i, İ, I, ı become one: a lookup key rather merges `ISTANBUL` with `ıstanbul` than splits it.
    Accents stay: `José` is not `Jose`.
    """
    if text.isascii() and text.isalnum():
        return text.lower()
    spaced = _SPACE.sub(" ", unicodedata.normalize("NFKC", text))
    visible = "".join(c for c in spaced if unicodedata.category(c) not in _INVISIBLE)
    folded = unicodedata.normalize("NFKC", visible.translate(_MARKS).casefold())
    # `İ` case-folds to i plus a combining dot, which no other spelling of the name carries.
    return _SPACE.sub(" ", folded.replace("i" + _DOT_ABOVE, "i")).strip()


def name_key(name: str) -> str:
    """The key under which an entity name is looked up. Raises ValueError when nothing visible is left."""
    key = fold(name)
    if not key:
        raise ValueError("the name has no visible character")
    return key
