"""Cutting a text into passages, the units that are embedded and searched.

The rendered form (author and date in front of the text) is part of the search contract: what is embedded,
indexed and matched is `render(passage.text, author, date)`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date as Date

MAX_BYTES = 1000
MAX_TOKENS = 250
MAX_AUTHOR = 40
"""Code points of the author that are rendered: a longer name would leave no room for the text."""

_FENCE = re.compile(r"^ {0,3}(`{3,8}|~{3,8})([^\n]{0,32})$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]|\n")
_LINE = re.compile(r"\n")
_SPACE = re.compile(r"\s+")
_JOINERS = "\u200d\u200c"
_GRAPHEME_REACH = 64
"""How far a cut moves back to spare a combining sequence; a longer one is a hostile text."""


@dataclass(frozen=True)
class Passage:
    """`start` and `end` are code points of the source. `text` is exactly that span, save that a passage
    inside a code fence opens and closes the fence itself."""

    ordinal: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class _Fence:
    """A fenced code block: where its opening line, its code, its closing line begin, and where it ends."""

    start: int
    inner_start: int
    inner_end: int
    end: int
    opener: str
    closer: str


def prefix(author: str | None, date: Date | None) -> str:
    """What `render` puts in front of a text."""
    name = " ".join((author or "").split())[:MAX_AUTHOR].strip()
    parts = [part for part in (name, f"({date.isoformat()})" if date else "") if part]
    return f"{' '.join(parts)}: " if parts else ""


def render(text: str, author: str | None = None, date: Date | None = None) -> str:
    """`{author} ({YYYY-MM-DD}): {text}`, each part left out when unknown."""
    return prefix(author, date) + text


def cut(
    text: str,
    count_tokens: Callable[[str], int],
    *,
    lead: str = "",
    max_bytes: int = MAX_BYTES,
    max_tokens: int = MAX_TOKENS,
) -> tuple[Passage, ...]:
    """Passages that cover `text` in order without gap or overlap, each within both limits when rendered.

    `lead` is the prefix the passages will be rendered with. Cuts fall, best first, before a code fence that
    fits whole, between paragraphs, sentences, words, and never inside a combining sequence that can be
    spared. Lone surrogates count three bytes. Raises ValueError when the lead leaves no room for text.
    """
    fences = tuple(_fences(text))
    passages: list[Passage] = []
    start = 0
    while start < len(text):
        end, rendered = _next(text, start, fences, count_tokens, lead, max_bytes, max_tokens)
        passages.append(Passage(len(passages), start, end, rendered))
        start = end
    return tuple(passages)


def surely_fits(text: str, max_tokens: int = MAX_TOKENS) -> bool:
    """Without a look at the tokens, of which ASCII text has at most one a character."""
    return len(text) <= max_tokens and text.isascii()


def _next(
    text: str,
    start: int,
    fences: Sequence[_Fence],
    count_tokens: Callable[[str], int],
    lead: str,
    max_bytes: int,
    max_tokens: int,
) -> tuple[int, str]:
    """End and text of the passage that begins at `start`. The window shrinks by the share that fits, so the
    tokenizer sees a few windows a passage, whatever the text."""
    widest = min(len(text), start + max(max_bytes, 0))
    while widest > start:
        end = _best_cut(text, start, widest, fences)
        passage = _wrapped(text, start, end, fences)
        size = len((lead + passage).encode("utf-8", "surrogatepass"))
        if size <= max_bytes and surely_fits(lead + passage, max_tokens):
            return end, passage
        tokens = count_tokens(lead + passage) if size <= max_bytes else 0
        if size <= max_bytes and tokens <= max_tokens:
            return end, passage
        share = (
            (end - start) * max_bytes // size if size > max_bytes else (end - start) * max_tokens // tokens
        )
        widest = min(end - 1, max(start + 1, start + share))
    raise ValueError("the limits leave no room for text")


def _best_cut(text: str, start: int, widest: int, fences: Sequence[_Fence]) -> int:
    if widest >= len(text):
        return len(text)
    place = _boundary(text, start, widest, (_PARAGRAPH, _SENTENCE, _SPACE))
    fence = _fence_around(fences, place)
    if fence is None:
        return place
    if fence.end <= widest:
        return fence.end
    if fence.start > start:
        return fence.start
    # Before the line break in front of the closing line, which else would stand alone in the next passage.
    return _boundary(text, start, max(start + 1, min(widest, fence.inner_end - 1)), (_LINE, _SPACE))


def _boundary(text: str, start: int, widest: int, kinds: Sequence[re.Pattern[str]]) -> int:
    """The best place to cut in the second half of the window, so that passages stay worth their vector."""
    middle = start + (widest - start + 1) // 2
    for kind in kinds:
        ends = [found.end() for found in kind.finditer(text, middle, widest)]
        if ends:
            return ends[-1]
    for place in range(widest, max(start, widest - _GRAPHEME_REACH), -1):
        if not _continues(text, place):
            return place
    return widest


def _continues(text: str, place: int) -> bool:
    """Whether a cut before `text[place]` would split what a reader sees as one character."""
    after, before = text[place], text[place - 1]
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or after in _JOINERS or before in _JOINERS:
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    flags = "\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"
    pair = "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
    return flags or pair or (before == "\r" and after == "\n")


def _fences(text: str) -> Iterator[_Fence]:
    """Fenced code blocks as CommonMark reads them; an open one runs to the end of the text."""
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            if "`" not in line[2]:
                opened = line
        elif line[1].startswith(opened[1]) and not line[2].strip():
            yield _fence(opened, line.start(), min(line.end() + 1, len(text)))
            opened = None
    if opened is not None:
        yield _fence(opened, len(text), len(text))


def _fence(opened: re.Match[str], inner_end: int, end: int) -> _Fence:
    opener, closer = f"{opened[0].strip()}\n", f"\n{opened[1]}"
    return _Fence(opened.start(), opened.end() + 1, inner_end, end, opener, closer)


def _fence_around(fences: Sequence[_Fence], place: int) -> _Fence | None:
    """The fence that a cut at `place` would split."""
    index = bisect_left(fences, place, key=lambda fence: fence.start) - 1
    return fences[index] if index >= 0 and place < fences[index].end else None


def _wrapped(text: str, start: int, end: int, fences: Sequence[_Fence]) -> str:
    """The span, with the fence it begins in opened again and the fence it ends in closed."""
    span = text[start:end]
    first, last = _fence_around(fences, start), _fence_around(fences, end)
    if first is not None and first.inner_start <= start < first.inner_end:
        span = first.opener + span
    if last is not None and last.inner_start <= end < last.inner_end:
        span = span.removesuffix("\n") + last.closer
    return span
