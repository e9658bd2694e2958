"""The legacy memory format: text with `## [ … ]` headed blocks, as agents write it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_HEADER = re.compile(r"##[ \t]+\[([^\]\r\n]{0,500})\][ \t]*([^\r\n]{0,500})")
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

    Blocks may nest; a tag in backticks is a mention, not a block; a closing tag without an opening one ends
    reasoning that began before the text, so everything above it goes.
    """
    kept: list[str] = []
    depth = count = position = 0
    for match in _TAG.finditer(text):
        if text[max(0, match.start() - 1) : match.start()] == "`":
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
        if header is not None:
            yield title, text[start : match.start()]
            title = " ".join(f"{header[1].strip()} {header[2].strip()}".split())
            start = match.end()
    yield title, text[start:]
