"""Markdown cut into chunks that a search can return on their own: exact source, place, breadcrumb.

Cuts fall at headings, then between blocks, and inside a block only when it is longer than the limit: a code
fence between lines (each part with the fence re-opened), a table between rows (each part under its header), a
list between items, an item or a quotation between the blocks in it, a paragraph between words. CommonMark by
markdown-it-py, block structure only: inline markup is not parsed, which keeps a megabyte on one line linear.
Structure is read in the first 50,000 lines; what follows is cut between lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_BYTES = 1_000
MAX_HEADING_CHARACTERS = 200
MAX_LINES = 50_000
MAX_COLUMNS = 200

BlockKind = Literal["front_matter", "heading", "fence", "table", "nest", "text"]
_NESTS = frozenset({"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"})


@dataclass(frozen=True)
class MarkdownChunk:
    """`text` is the source from `start` to `end` (code points), with its fence or table head repeated when
    it continues one. `start_byte` and `end_byte` are the same range in UTF-8. Lines count from 1, both ends
    included. `headings` is the path of headings above and including the chunk's own.
    """

    ordinal: int
    text: str
    headings: tuple[str, ...]
    start: int
    end: int
    start_byte: int
    end_byte: int
    first_line: int
    last_line: int


@dataclass(frozen=True)
class _Piece:
    """A range of lines (half-open, from 0), or of code points inside one line, that is not cut further."""

    start: int
    end: int
    before: str = ""
    after: str = ""


@dataclass
class _Section:
    headings: tuple[str, ...]
    blocks: list[_Block] = field(default_factory=list)


@dataclass(frozen=True)
class _Block:
    kind: BlockKind
    first: int
    last: int
    """Lines, half-open, from 0."""
    rows: tuple[int, ...] = ()
    """First lines of a table's rows."""
    inner: Sequence[Token] = ()
    """What stands in a list, in an item of one or in a quotation."""
    skipped: int = 0
    """Lines in front of those that the tokens count."""
    fence: tuple[str, str] = ("", "")
    """Opening and closing line."""


class _Source:
    """The text with the offsets of its lines, as CommonMark counts them (\\n, \\r\\n, \\r)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
        if self.lines[-1] != len(text):
            self.lines.append(len(text))
        if len(self.lines) == 1:
            self.lines.append(0)

    def at(self, line: int) -> int:
        return self.lines[min(line, len(self.lines) - 1)]

    def line_of(self, offset: int) -> int:
        low, high = 0, len(self.lines) - 1
        while low < high - 1:
            middle = (low + high) // 2
            if self.lines[middle] <= offset:
                low = middle
            else:
                high = middle
        return low


def size(text: str) -> int:
    """UTF-8 bytes; a lone surrogate counts as the three bytes it would take."""
    return len(text.encode("utf-8", "surrogatepass"))


def chunk_markdown(text: str, max_bytes: int = MAX_BYTES) -> list[MarkdownChunk]:
    """The chunks of `text` in order; together they cover every line that is not blank.

    No chunk is longer than `max_bytes` (at least 200; ValueError), with what is repeated counted in.
    """
    if max_bytes < 200:
        raise ValueError("max_bytes is less than 200")
    source = _Source(text)
    chunks: list[MarkdownChunk] = []
    counted_to = counted_bytes = 0
    for section in _sections(source):
        for piece in _pieces(source, section.blocks, max_bytes):
            start, end = _trim(text, piece.start, piece.end)
            if start == end:
                continue
            counted_bytes += size(text[counted_to:start])
            length = size(text[start:end])
            chunks.append(
                MarkdownChunk(
                    ordinal=len(chunks),
                    text=f"{piece.before}{text[start:end]}{piece.after}",
                    headings=section.headings,
                    start=start,
                    end=end,
                    start_byte=counted_bytes,
                    end_byte=counted_bytes + length,
                    first_line=source.line_of(start) + 1,
                    last_line=source.line_of(end - 1) + 1,
                )
            )
            counted_to, counted_bytes = end, counted_bytes + length
    return chunks


def _parser(*, tables: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    if tables:
        parser.enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    # Definitions of links are text to us, and collecting them is not linear.
    parser.disable("reference")
    return parser


_WITH_TABLES = _parser(tables=True)
_WITHOUT_TABLES = _parser(tables=False)

_FRONT = re.compile(r"\ufeff?---[ \t]*(?:\r\n?|\n)")
_FRONT_END = re.compile(r"(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)")
_MAX_FRONT_LINES = 200


def _sections(source: _Source) -> list[_Section]:
    """Blocks under their headings. A heading directly above a deeper one joins that one's section."""
    sections = [_Section(())]
    front = _front_matter(source)
    if front:
        sections[0].blocks.append(_Block("front_matter", 0, front))
        sections.append(_Section(()))
    path: list[tuple[int, str]] = []
    for block, level, title in _blocks(source, front):
        if block.kind != "heading":
            sections[-1].blocks.append(block)
            continue
        only_headings = all(b.kind == "heading" for b in sections[-1].blocks)
        deeper = bool(path) and level > path[-1][0]
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        headings = tuple(name for _, name in path)
        if only_headings and (deeper or not sections[-1].blocks):
            sections[-1].headings = headings
        else:
            sections.append(_Section(headings))
        sections[-1].blocks.append(block)
    return sections


def _front_matter(source: _Source) -> int:
    """How many lines the front matter takes; 0 without one."""
    if not _FRONT.match(source.text):
        return 0
    for line in range(1, min(_MAX_FRONT_LINES, len(source.lines) - 1)):
        if _FRONT_END.match(source.text, source.at(line)):
            return line + 1
    return 0


def _blocks(source: _Source, skip: int) -> Iterator[tuple[_Block, int, str]]:
    """Top-level blocks with the level and title of headings."""
    end_of_structure = min(skip + MAX_LINES, len(source.lines) - 1)
    body = source.text[source.at(skip) : source.at(end_of_structure)]
    if body.startswith("\ufeff"):
        body = " " + body[1:]  # a byte-order mark would hide a heading; a space does not
    # The head of a wider table would fill a chunk by itself, so such a table is text.
    wide = any(line.count("|") > MAX_COLUMNS for line in body.splitlines())
    tokens = (_WITHOUT_TABLES if wide else _WITH_TABLES).parse(body)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        end = _closing(tokens, index)
        if token.map is not None:
            first, last = token.map[0] + skip, token.map[1] + skip
            level = int(token.tag[1:]) if token.type == "heading_open" else 0
            title = " ".join(tokens[index + 1].content.split())[:MAX_HEADING_CHARACTERS] if level else ""
            yield _block(token, tokens[index : end + 1], first, last, skip), level, title
        index = end + 1
    if end_of_structure < len(source.lines) - 1:
        yield _Block("text", end_of_structure, len(source.lines) - 1), 0, ""


def _closing(tokens: Sequence[Token], index: int) -> int:
    depth = 0
    while index < len(tokens):
        depth += tokens[index].nesting
        if depth == 0:
            return index
        index += 1
    return len(tokens) - 1


def _block(token: Token, tokens: Sequence[Token], first: int, last: int, skip: int) -> _Block:
    if token.type == "heading_open":
        return _Block("heading", first, last)
    if token.type == "fence":
        fence = (f"{token.markup[:40]}{token.info[:40]}".rstrip(), token.markup[:40])
        return _Block("fence", first, last, fence=fence)
    if token.type in _NESTS:
        return _Block("nest", first, last, inner=tokens[1:-1], skipped=skip)
    if token.type == "table_open":
        rows = tuple(t.map[0] + skip for t in tokens if t.type == "tr_open" and t.map is not None)
        return _Block("table", first, last, rows=rows)
    return _Block("text", first, last)


def _pieces(source: _Source, blocks: Sequence[_Block], limit: int) -> Iterator[_Piece]:
    """Blocks packed together while they fit; longer ones cut by their kind."""
    spans = [(block.first, block.last) for block in blocks]
    return _packed(source, spans, limit, lambda number: _cut(source, blocks[number], limit))


def _packed(
    source: _Source,
    spans: Iterable[tuple[int, int]],
    limit: int,
    cut: Callable[[int], Iterator[_Piece]],
) -> Iterator[_Piece]:
    """Neighbouring line ranges together while they fit; `cut` takes the number of one that alone does not."""
    pending: tuple[int, int] | None = None
    for number, (first, last) in enumerate(spans):
        start, end = source.at(first), source.at(last)
        if pending is not None and _fits(source.text, pending[0], end, limit):
            pending = (pending[0], end)
            continue
        if pending is not None:
            yield _Piece(*pending)
            pending = None
        if _fits(source.text, start, end, limit):
            pending = (start, end)
        else:
            yield from cut(number)
    if pending is not None:
        yield _Piece(*pending)


def _fits(text: str, start: int, end: int, limit: int) -> bool:
    if end - start > limit:
        return False
    start, end = _trim(text, start, end)  # as it will be: what it is indented by counts
    return size(text[start:end]) <= limit


def _cut(source: _Source, block: _Block, limit: int) -> Iterator[_Piece]:
    if block.kind == "fence":
        yield from _cut_fence(source, block, limit)
    elif block.kind == "table" and len(block.rows) > 1:
        yield from _cut_table(source, block, limit)
    elif block.kind == "nest":
        yield from _cut_nest(source, block, limit)
    else:
        yield from _cut_lines(source, block.first, block.last, limit)


def _cut_fence(source: _Source, block: _Block, limit: int) -> Iterator[_Piece]:
    """Between lines; every part but the first re-opens the fence, every part but the last closes it."""
    opening, closing = block.fence
    first_line = source.text[source.at(block.first) : source.at(block.first + 1)]
    last_line = source.text[source.at(block.last - 1) : source.at(block.last)]
    fence = last_line.strip("> \t\r\n")
    closed = block.last - block.first > 1 and fence.startswith(closing) and not fence.strip(closing[0])
    # In a list or a quotation its lines are indented or marked, and so are those that are repeated.
    lead = re.sub(r"[^>\t]", " ", first_line.partition(closing)[0])
    opening, closing = f"{lead}{opening}", f"{lead}{closing}"
    # As they stand they may be longer than as they are repeated.
    around = max(size(opening), size(first_line)) + max(size(closing), size(last_line) if closed else 0)
    if around > limit // 2:
        yield from _cut_lines(source, block.first, block.last, limit)
        return
    body_end = block.last - 1 if closed else block.last
    room = limit - around - 4
    parts = list(_cut_lines(source, block.first + 1, body_end, room))
    for number, part in enumerate(parts):
        start = source.at(block.first) if number == 0 else part.start
        end = source.at(block.last) if number == len(parts) - 1 and closed else part.end
        close = "" if number == len(parts) - 1 and closed else f"\n{closing}"
        yield _Piece(start, end, "" if number == 0 else f"{opening}\n", close)
    if not parts:
        yield _Piece(source.at(block.first), source.at(block.last))


def _cut_table(source: _Source, block: _Block, limit: int) -> Iterator[_Piece]:
    """Between rows, the header row and its rule repeated above every part but the first."""
    rows = (*block.rows[1:], block.last)
    head = source.text[source.at(block.first) : source.at(block.first + 2)].strip("\r\n")
    if size(head) > limit // 2:
        yield from _cut_lines(source, block.first, block.last, limit)
        return
    room = limit - size(head) - 1
    parts = list(_cut_at(source, rows, room))
    for number, part in enumerate(parts):
        if number == 0:
            yield _Piece(source.at(block.first), part.end)
        else:
            yield _Piece(part.start, part.end, f"{head}\n")


def _cut_nest(source: _Source, block: _Block, limit: int) -> Iterator[_Piece]:
    """Between the items of a list and the blocks of an item; one that does not fit is cut by its own kind."""
    parts: list[_Block] = []
    index = 0
    while index < len(block.inner):
        token, end = block.inner[index], _closing(block.inner, index)
        first = block.first if token.map is None else token.map[0] + block.skipped
        if token.map is not None and (not parts or first > parts[-1].first):
            last = token.map[1] + block.skipped
            parts.append(_block(token, block.inner[index : end + 1], first, last, block.skipped))
        index = end + 1
    if not parts:
        yield from _cut_lines(source, block.first, block.last, limit)
        return
    spans = list(pairwise([block.first, *(part.first for part in parts[1:]), block.last]))

    def cut(number: int) -> Iterator[_Piece]:
        (first, last), part = spans[number], parts[number]
        yield from _cut_lines(source, first, part.first, limit)
        yield from _cut(source, part, limit)
        yield from _cut_lines(source, part.last, last, limit)  # a lone `>` between two blocks

    yield from _packed(source, spans, limit, cut)


def _cut_at(source: _Source, bounds: Sequence[int], limit: int) -> Iterator[_Piece]:
    """Line ranges between `bounds` packed while they fit; one that does not fit is cut between lines."""
    spans = list(pairwise(bounds))
    return _packed(source, spans, limit, lambda number: _cut_lines(source, *spans[number], limit))


def _cut_lines(source: _Source, first: int, last: int, limit: int) -> Iterator[_Piece]:
    """Between lines, and inside a line that alone is too long between words, at worst between characters."""

    def cut(number: int) -> Iterator[_Piece]:
        return _cut_line(source.text, source.at(first + number), source.at(first + number + 1), limit)

    return _packed(source, ((line, line + 1) for line in range(first, last)), limit, cut)


def _cut_line(text: str, start: int, end: int, limit: int) -> Iterator[_Piece]:
    while start < end:
        stop = min(end, start + limit)
        while size(text[start:stop]) > limit:
            stop -= max(1, (size(text[start:stop]) - limit) // 4)
        if stop < end:
            space = max(text.rfind(" ", start, stop), text.rfind("\t", start, stop))
            stop = space + 1 if space > start + (stop - start) // 2 else stop
        yield _Piece(start, stop)
        start = stop


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Without blank lines at either end; the indentation of the first line stays, it may carry meaning."""
    piece = text[start:end]
    end = start + len(piece.rstrip())
    lead = re.match(r"(?:[ \t]*(?:\r\n?|\n))*", text[start:end])
    return start + (lead.end() if lead else 0), end
