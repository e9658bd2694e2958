"""The legacy memory format: text with `## [ … ]` headed blocks, as agents write it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_HEADER = re.compile(r"##[ \t]+\[([^\r\n]*)")
_BRACKET = re.compile(r"[\[\]]")
_BACKTICKS = re.compile(r"`+")
_FILLED_LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n|\Z)")
# Backticks with another behind them on the line are a code span.
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_TAG = re.compile(
    r"<(?P<slash>/?)[ \t]*(?P<name>think|thinking|thought|thoughts|reasoning|reflection|scratchpad"
    r"|inner_monologue|chain_of_thought)(?=[\s/>])[^<>]{0,200}>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class MemoryBlock:
    """One entry: what stands in its header, and the text under it, trimmed."""

    title: str
    text: str


@dataclass(frozen=True)
class MemoryBlocks:
    """The entries in order, and how many things were left out, by reason.

    `reasoning`: reasoning blocks removed; `skip_prefix`: entries that begin with a skipped prefix; `empty`:
    entries without text; `outside_block`: 1 when there was text above the first header.
    """

    entries: tuple[MemoryBlock, ...]
    dropped: dict[str, int] = field(default_factory=dict)


def parse_memory_blocks(text: str, skip_prefixes: Sequence[str] = ()) -> MemoryBlocks:
    """Reads the entries of `text`. A header inside a code fence is code, and begins no entry.

    An unclosed reasoning block reaches to the end. Prefixes are compared with the start of the trimmed text.
    """
    dropped = {"reasoning": 0, "skip_prefix": 0, "empty": 0, "outside_block": 0}
    kept, dropped["reasoning"] = strip_reasoning(text)
    entries: list[MemoryBlock] = []
    prefixes = tuple(prefix for prefix in skip_prefixes if prefix)
    for title, body in _split(kept):
        body = body.strip()
        if title is None:
            dropped["outside_block"] = int(bool(body))
        elif not body:
            dropped["empty"] += 1
        elif body.startswith(prefixes):
            dropped["skip_prefix"] += 1
        else:
            entries.append(MemoryBlock(title, body))
    return MemoryBlocks(tuple(entries), dropped)


def strip_reasoning(text: str) -> tuple[str, int]:
    """`text` without reasoning blocks and how many there were.

    Blocks may nest; a tag in a code span or a closed code fence is a mention, not a block; a closing tag without
    an opening one ends reasoning that began before the text, so everything above it goes.
    """
    kept: list[str] = []
    depth = count = position = 0
    code = _Code(text)
    for match in _TAG.finditer(text):
        if text[max(0, match.start() - 1) : match.start()] == "`":
            continue
        if depth == 0 and code.holds(match.start(), position):
            continue
        closing, empty = bool(match["slash"]), match[0].endswith("/>")
        if depth == 0:
            if closing:
                kept.clear()
            else:
                kept.append(text[position : match.start()])
            count += 1
            depth = 0 if closing or empty else 1
        elif not empty:
            depth += -1 if closing else 1
        position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept), count


class _Code:
    """Where the code of a text lies: closed fences, and code spans within a line."""

    def __init__(self, text: str) -> None:
        self._regions: list[tuple[int, int]] = []
        # Lines that may close a fence, the nearest last: (length, end); a shorter one behind a longer is not reached.
        closing: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
        for match in reversed(list(_FILLED_LINE.finditer(text))):
            line = match[0]
            if "`" not in line and "~" not in line:
                continue
            fence = _FENCE.match(line)
            if fence is None:
                self._regions += _spans(line, match.start())
                continue
            lines, length = closing[fence[1][0]], len(fence[1])
            end = next((end for long, end in reversed(lines) if long >= length), None)
            if end is not None:
                self._regions.append((match.start(), end))
            if not line.strip().strip(fence[1][0]):
                while lines and lines[-1][0] <= length:
                    lines.pop()
                lines.append((length, match.end()))
        self._regions.sort()
        self._next = 0

    def holds(self, at: int, outside: int) -> bool:
        """Whether `at` is code, given that `outside`, before it, is not; both rise from call to call."""
        while self._next < len(self._regions):
            start, end = self._regions[self._next]
            if at < start:
                return False
            if outside <= start:
                if at < end:
                    return True
                outside = end
            self._next += 1
        return False


def _spans(line: str, offset: int) -> Iterator[tuple[int, int]]:
    """From each run of backticks to the next as long as it."""
    nearest: dict[int, int] = {}
    for run in reversed(list(_BACKTICKS.finditer(line))):
        length = len(run[0])
        if length in nearest:
            yield offset + run.start(), offset + nearest[length]
        nearest[length] = run.end()


def _title(header: str) -> str:
    """What stands within the brackets, which may hold others, and behind them; `header` begins within them."""
    depth = 1
    for bracket in _BRACKET.finditer(header):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            end = bracket.start()
            break
    else:
        end = header.index("]")
    return " ".join(f"{header[:end]} {header[end + 1 :]}".split())


def _split(text: str) -> Iterator[tuple[str | None, str]]:
    """(title, body) of each block; the first has no title and holds what is above the first header."""
    text = text.removeprefix("\ufeff")
    title: str | None = None
    start = 0
    fence = ""
    for match in _LINE.finditer(text):
        line = match[0]
        marker = _FENCE.match(line)
        if marker and not fence:
            fence = marker[1]
        elif marker and marker[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        header = None if fence else _HEADER.match(line)
        if header is not None and "]" in header[1]:
            yield title, text[start : match.start()]
            title = _title(header[1])
            start = match.end()
    yield title, text[start:]
