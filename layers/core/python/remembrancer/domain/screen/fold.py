"""Character folding: what a hostile spelling and its plain spelling have in common.

`soften` is safe for every script (compatibility forms, case, marks, invisible characters). `latinize` goes
further and reads look-alikes and leet as Latin; i, l, 1, | and ! all become `i`, on both sides of a comparison.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

_TABLE_LIMIT = 160_000  # the characters that Unicode assigns; hostile text cannot make the tables larger
_MAX_EXPANSION = 4  # a few ligatures stand for whole sentences
_KEPT_CONTROLS = "\t\n"
_DROPPED_CATEGORIES = frozenset({"Mn", "Me", "Cf", "Cc", "Co", "Cs"})
_PUNCTUATION = {
    **dict.fromkeys("‘’‚‛′`´ʼʹ＇", "'"),
    **dict.fromkeys("“”„‟″«»「」『』〝〞", '"'),
    **dict.fromkeys("‐‑‒–—―−﹘", "-"),
    **dict.fromkeys("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e", "\n"),
    "\r": " ",
    **dict.fromkeys("。｡।۔", "."),
    **dict.fromkeys("？؟", "?"),
    "！": "!",
    "：": ":",
    "⁄": "/",
    "∕": "/",
}
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5\u180e")
_LEET = str.maketrans("0123456789$€£l", "oizeasgtbgseii")
_LEET_AT = re.compile(r"@(?![\w-]{1,63}\.\w)")
_LEET_BAR = re.compile(r"[!|¡](?=\w)")
_LEETABLE = re.compile(r"[0-9@$€£][^\W\d_]|[^\W\d_][0-9@$€£!|]|[!|¡][^\W\d_]|[^\x00-\x7f]")
_LATIN_NAME = re.compile(
    r"LATIN (?:SMALL |CAPITAL )?LETTER (?:SMALL CAPITAL |DOTLESS |TURNED |REVERSED )?([A-Z])\b"
)


class _FoldTable(dict[int, str]):
    """A lazily filled `str.translate` table that stops growing at a limit."""

    def __missing__(self, code: int) -> str:
        folded = soften_char(chr(code))
        if len(self) < _TABLE_LIMIT:
            self[code] = folded
        return folded


def soften_char(char: str) -> str:
    """The soft fold of one character; empty for what is removed."""
    if char in _PUNCTUATION:
        return _PUNCTUATION[char]
    if char in _KEPT_CONTROLS:
        return char
    if char in _BLANK_LETTERS:
        return ""
    out = []
    for part in unicodedata.normalize("NFKD", char).casefold():
        if part in _PUNCTUATION:
            out.append(_PUNCTUATION[part])
            continue
        category = unicodedata.category(part)
        if category == "Zs":
            out.append(" ")
        elif category not in _DROPPED_CATEGORIES and part not in _BLANK_LETTERS:
            out.append(part)
    return "".join(out[:_MAX_EXPANSION])


_SOFT = _FoldTable()


def soften(text: str) -> str:
    """NFKD, casefold, no marks, no invisible, control, private or surrogate characters. Linear."""
    return text.translate(_SOFT)


def soft_offsets(text: str) -> list[int]:
    """For each character of `soften(text)`, the index in `text` that it came from."""
    offsets: list[int] = []
    for index, char in enumerate(text):
        folded = _SOFT[ord(char)]
        if len(folded) == 1:
            offsets.append(index)
        elif folded:
            offsets.extend([index] * len(folded))
    return offsets


class _LatinTable(dict[int, str]):
    def __missing__(self, code: int) -> str:
        folded = _latin_letter(chr(code)).translate(_LEET)
        if len(self) < _TABLE_LIMIT:
            self[code] = folded
        return folded


_LATIN = _LatinTable()


def latinize(softened: str) -> str:
    """One character for each of `softened`: look-alikes and leet as Latin letters, l, 1, ! and | as i."""
    return _LEET_BAR.sub("i", _LEET_AT.sub("a", softened.translate(_LATIN)))


def may_latinize(softened: str) -> bool:
    """Whether `latinize` could turn a non-word into a word."""
    return _LEETABLE.search(softened) is not None


def _latin_letter(char: str) -> str:
    if char.isascii():
        return char
    code = ord(char)
    for first in (0x1F1E6, 0x1F150, 0x1F170):  # regional indicators, negative circled and squared letters
        if first <= code < first + 26:
            return chr(ord("a") + code - first)
    return _letter_by_name(char) or _confusable_letters().get(char) or char


def _letter_by_name(char: str) -> str:
    found = _LATIN_NAME.match(unicodedata.name(char, ""))
    return found.group(1).lower() if found else ""


@cache
def _confusable_letters() -> Mapping[str, str]:
    """Character -> lower-case ASCII letter, from the Unicode confusables of `confusable_homoglyphs`."""
    from confusable_homoglyphs.confusables import confusables_data  # a megabyte: only for text that needs it

    letters: dict[str, str] = {}
    pairs = [(char, entry["c"]) for char, entries in confusables_data.items() for entry in entries]
    pairs += [(alike, char) for char, alike in pairs]
    pairs = [(char.strip("\u200e"), alike.strip("\u200e")) for char, alike in pairs]
    pairs.sort(
        key=lambda pair: pair[0] != pair[0].casefold()
    )  # a small letter's own look before its capital's
    for char, alike in pairs:
        _remember_alike(letters, char, alike)
    for char, alike in pairs:
        if alike.casefold() in letters:
            _remember_alike(letters, char, letters[alike.casefold()])
    return letters


def _remember_alike(letters: dict[str, str], char: str, alike: str) -> None:
    char = char.casefold()
    if len(char) == 1 and not char.isascii() and len(alike) == 1 and alike.isascii() and alike.isalnum():
        letters.setdefault(char, alike.casefold())
