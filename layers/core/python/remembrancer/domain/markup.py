"""Markup in stored text: links and images become their text, and fences of a client cannot be forged.

The fence rule, which clients may rely on when they put recalled text between marks of their own:

- no tag: `<` before a letter, `/`, `!`, `?` or `|` becomes `‹`, and so does `[` before `/` and a letter or
  before `INST]`, so that neither `</memory>` nor `<|im_end|>` nor `[/INST]` occurs;
- no fence: a run of three or more of ``` ` ~ " ' ``` anywhere, or of `- = * _ + # < >` at the start of a
  line, is cut to two;
- no script address: the colon of `javascript:`, `vbscript:` and `data:text/html` becomes U+A789.
"""

from __future__ import annotations

import re

from remembrancer.domain.invisible import strip_invisible

_IMAGE_TAG = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_ANCHOR_TAG = re.compile(r"<a\b[^<>]*>|</a\s*>", re.IGNORECASE)
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto|tel):[^<>\s]*|[^<>\s@]+@[^<>\s@]+)>", re.IGNORECASE)

_BRACKET = re.compile(r"!?\[|\]")
_ADDRESS = re.compile(r"\s*(?:<|[a-z][a-z0-9+.-]+:\S|[/.#?]|www\.|\))", re.IGNORECASE)
_REFERENCE = re.compile(r"\[([^\[\]]{0,200})\]")
_DEFINITION = re.compile(r"(?m)(?:^|(?<=\r))([ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]*)*\[([^\[\]]+)\]):")

_TAG_OPENER = re.compile(r"<(?=[A-Za-z/!?|])|\[(?=/[A-Za-z]|INST\])")
_FENCE = re.compile(r"""([`~"'])\1{2,}""")
_RULE_LINE = re.compile(r"(?m)(?:^|(?<=\r))([ \t]*)([-=*_+#<>])\2{2,}")
_GAP = r"[\x00-\x20]*"  # browsers skip these inside a scheme
_SCRIPT = _GAP.join("script") + _GAP
_SCRIPT_ADDRESS = re.compile(
    rf"({_GAP.join('java')}{_GAP}{_SCRIPT}|{_GAP.join('vb')}{_GAP}{_SCRIPT}"
    rf"|data{_GAP}(?=:{_GAP}text{_GAP}/{_GAP}html)):",
    re.IGNORECASE,
)


def to_plain(text: str) -> str:
    """`text` without active markup, by the rules of this module. Linear in its length."""
    text = _IMAGE_TAG.sub(_alternative, text)
    text = _AUTOLINK.sub(r"\1", _ANCHOR_TAG.sub("", text))
    text = strip_invisible(_links_to_text(text))
    text = text.replace("](", "] (")
    if "]:" in text:
        text = _DEFINITION.sub(r"\1 :", text)
    if ":" in text:
        text = _SCRIPT_ADDRESS.sub("\\1\ua789", text)
    text = _FENCE.sub(r"\1\1", _TAG_OPENER.sub("\u2039", text))
    return _RULE_LINE.sub(r"\1\2\2", text)


def _alternative(tag: re.Match[str]) -> str:
    alt = _ALT.search(tag[0])
    return next(filter(None, alt.groups()), "") if alt else ""


def _links_to_text(text: str) -> str:
    """Inline links and images, and references to a label that the text defines, become their text."""
    if "](" not in text and "][" not in text:
        return text
    closing = _closing_parentheses(text)
    labels = {_label(match[2]) for match in _DEFINITION.finditer(text)}
    pieces: list[str] = []
    openers: list[int] = []
    position = 0
    for bracket in _BRACKET.finditer(text):
        if bracket.start() < position:
            continue  # inside the address of a link
        pieces.append(text[position : bracket.start()])
        position = bracket.end()
        if bracket[0] != "]":
            openers.append(len(pieces))
            pieces.append(bracket[0])
            continue
        opener = openers.pop() if openers else None
        end = None if opener is None else _address_end(text, position, closing, labels, pieces[opener])
        if opener is None or end is None:
            pieces.append("]")
        else:
            pieces[opener] = ""
            position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _address_end(
    text: str, position: int, closing: dict[int, int], labels: set[str], opener: str
) -> int | None:
    """Where the address after a link's `]` ends; None when there is none (as in `table[0](argument)`)."""
    if position in closing and (opener.startswith("!") or _ADDRESS.match(text, position + 1)):
        return closing[position] + 1
    reference = _REFERENCE.match(text, position) if labels else None
    if reference and (not reference[1] or _label(reference[1]) in labels):
        return reference.end()
    return None


def _closing_parentheses(text: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for parenthesis in re.finditer(r"[()]", text):
        if parenthesis[0] == "(":
            opened.append(parenthesis.start())
        elif opened:
            pairs[opened.pop()] = parenthesis.start()
    return pairs


def _label(written: str) -> str:
    return " ".join(written.casefold().split())
