"""Decoded views of a text: escapes, base64, hex and rot13, each with a map back to the original characters."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MAX_LAYERS = 3
MAX_CANDIDATES = 8
MAX_CANDIDATE_CHARS = 4096
REQUEST_BUDGET_CHARS = 64 * 1024
REQUEST_BUDGET_LETTERS = 256 * 1024

CONTEXT_CHARS = 256
_MIN_ENCODED = 16
_MIN_READABLE = 8
_ESCAPE = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<bytes>(?:\\{1,2}x[0-9A-Fa-f]{2})+)"
    r"|(?P<unicode>(?:\\{1,2}u[0-9A-Fa-f]{4}|\\{1,2}U[0-9A-Fa-f]{8}|\\{1,2}u\{[0-9A-Fa-f]{1,6}\})+)"
    r"|(?P<octal>(?:\\[0-3][0-7]{2})+)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,24});?)"
)
_UNICODE_DIGITS = re.compile(r"[0-9A-Fa-f]+")
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/_-]{16,}|[A-Za-z0-9+/_-]{4,}(?=[ \t]*\r?\n))(?:[ \t]*\r?\n[ \t>]*[A-Za-z0-9+/_-]+)*={0,2}"
)
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ \t\r\n,:;-]{0,3}){8,}")
_HEX_DIGITS = re.compile(r"[0-9A-Fa-f]{2}")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/_-]+")
_PRINTABLE_RUN = re.compile(rb"[\t\n\r\x20-\x7e]{12,}")
_WORDY = re.compile(r"[^\W\d_]{2,}[\s\W]{1,3}[^\W\d_]{2,}")

ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm",
)

Locate = Callable[[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class View:
    """One reading of a field. `locate(start, end)` gives the span in the original field.

    `decoded(start, end)` tells whether that part of `text` differs from the view it was made from.
    """

    text: str
    chain: tuple[str, ...]
    locate: Locate
    decoded: Callable[[int, int], bool]


@dataclass(slots=True)
class Budget:
    """What one request may still decode, and how many letters it may still put together to words."""

    chars: int = REQUEST_BUDGET_CHARS
    letters: int = REQUEST_BUDGET_LETTERS
    overflows: list[tuple[int, int]] = field(default_factory=list)


def original(text: str) -> View:
    """The identity view."""
    return View(text, (), lambda start, end: (start, end), lambda start, end: True)


def rot13(view: View) -> View:
    """A view with every ASCII letter moved by thirteen; spans stay the same."""
    return View(view.text.translate(ROT13), (*view.chain, "rot13"), view.locate, lambda start, end: True)


def decoded_views(root: View, budget: Budget) -> Iterator[View]:
    """All decoded views of a field, outermost first. Spans that exceed the budget go to `budget.overflows`."""
    queue = [root]
    candidates = 0
    for view in queue:
        children = [] if (escaped := _unescaped(view)) is None else [escaped]
        for child in _blobs(view):
            wordy = _WORDY.search(child.text) is not None
            candidates += wordy
            size = len(child.text)
            fits = candidates <= MAX_CANDIDATES and size <= min(MAX_CANDIDATE_CHARS, budget.chars)
            if fits:
                budget.chars -= size
                children.append(child)
            elif wordy:
                budget.overflows.append(child.locate(0, size))
                if candidates > MAX_CANDIDATES or budget.chars <= 0:
                    break
                budget.chars -= min(MAX_CANDIDATE_CHARS, budget.chars)
                children.append(_cut(child))
        for child in children:
            if len(child.chain) > MAX_LAYERS:
                budget.overflows.append(child.locate(0, len(child.text)))
            else:
                queue.append(child)
                yield child


def _cut(view: View) -> View:
    return View(view.text[:MAX_CANDIDATE_CHARS], view.chain, view.locate, view.decoded)


def _unescaped(view: View) -> View | None:
    """A text and its surroundings with every percent, backslash and entity escape replaced; None without any."""
    text = view.text
    if "%" not in text and "\\" not in text and "&" not in text:
        return None
    parts: list[str] = []
    out_starts: list[int] = []
    pieces: list[tuple[int, int, bool]] = []  # start and end in `text`, decoded?
    kinds: dict[str, None] = {}
    done = size = 0

    def add(part: str, start: int, end: int, decoded: bool) -> None:
        nonlocal size
        if part:
            parts.append(part)
            out_starts.append(size)
            pieces.append((start, end, decoded))
            size += len(part)

    def add_written(start: int, end: int) -> None:
        if end - start <= 2 * CONTEXT_CHARS:
            add(text[start:end], start, end, False)
        else:  # what is far from any escape is read in the view it came from
            add(text[start : start + CONTEXT_CHARS], start, start + CONTEXT_CHARS, False)
            add("\n\n", start + CONTEXT_CHARS, start + CONTEXT_CHARS + 2, False)
            add(text[end - CONTEXT_CHARS : end], end - CONTEXT_CHARS, end, False)

    for found in _ESCAPE.finditer(text):
        kind = str(found.lastgroup)
        plain = _unescape(kind, found.group())
        if plain is None:
            continue
        add_written(done, found.start())
        add(plain, found.start(), found.end(), True)
        done = found.end()
        kinds[kind] = None
    if not kinds:
        return None
    add_written(done, len(text))

    def locate(start: int, end: int) -> tuple[int, int]:
        first = bisect_right(out_starts, start) - 1
        last = bisect_right(out_starts, end - 1) - 1
        source_start, _, decoded = pieces[first]
        begin = source_start if decoded else source_start + start - out_starts[first]
        source_start, source_end, decoded = pieces[last]
        finish = source_end if decoded else source_start + end - out_starts[last]
        return view.locate(begin, finish)

    def decoded(start: int, end: int) -> bool:
        first = bisect_right(out_starts, start) - 1
        last = bisect_right(out_starts, end - 1) - 1
        return any(pieces[index][2] for index in range(first, last + 1))

    return View("".join(parts), (*view.chain, "-".join(kinds)), locate, decoded)


def _unescape(kind: str, escape: str) -> str | None:
    if kind == "percent":
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")
    if kind == "bytes":
        return bytes.fromhex("".join(_HEX_DIGITS.findall(escape.replace("\\", "").replace("x", " ")))).decode(
            "utf-8", "replace"
        )
    if kind == "octal":
        return bytes(int(digits, 8) for digits in escape.split("\\")[1:]).decode("utf-8", "replace")
    if kind == "unicode":
        codes = [int(digits, 16) for digits in _UNICODE_DIGITS.findall(escape)]
        joined = "".join([chr(code) for code in codes if code < 0x110000])
        return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    from html import unescape  # its tables are only needed here

    plain = unescape(escape)
    return None if plain == escape else plain


def _blobs(view: View) -> Iterator[View]:
    """Views of the base64 and hex runs of a text that decode to something readable."""
    for found in _HEX.finditer(view.text):
        if not view.decoded(*found.span()):
            continue
        data = bytes.fromhex(
            "".join(_HEX_DIGITS.findall(found.group().replace("0x", " ").replace("\\x", " ")))
        )
        plain = _readable(data)
        if plain:
            yield _blob(view, found.span(), plain, "hex")
    for found in _BASE64.finditer(view.text):
        run = found.group()
        if len(run) < _MIN_ENCODED or not view.decoded(*found.span()):
            continue
        run = _NOT_BASE64.sub("", run)
        plain = _from_base64(run)
        if plain:
            yield _blob(view, found.span(), plain, "base64")
            continue
        plain = _from_base64(run.translate(ROT13))
        if plain:
            yield _blob(view, found.span(), plain, "rot13-base64")


def _blob(view: View, span: tuple[int, int], plain: str, kind: str) -> View:
    whole = view.locate(*span)
    return View(plain, (*view.chain, kind), lambda start, end: whole, lambda start, end: True)


def _from_base64(run: str) -> str:
    """The readable text in a run of base64 characters, whatever its alignment; "" when there is none."""
    standard = run.replace("-", "+").replace("_", "/")
    for offset in range(4):
        body = standard[offset:]
        body = body[: len(body) - (len(body) % 4 == 1)]
        if len(body) < _MIN_ENCODED - 4:
            return ""
        try:
            data = base64.b64decode(body + "=" * (-len(body) % 4))
        except binascii.Error:
            continue
        plain = _readable(data)
        if plain:
            return plain
    return ""


def _readable(data: bytes) -> str:
    """`data` as text when it is UTF-8 or UTF-16 text, else its printable stretches; "" when there is none."""
    if len(data) < _MIN_READABLE:
        return ""
    for encoding, high in (("utf-16-le", data[1::2]), ("utf-16-be", data[::2])):
        if high.count(0) > 0.4 * len(high):
            return data.decode(encoding, "replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and sum(map(str.isprintable, text)) + text.count("\n") >= 0.9 * len(text):
        return text
    return "\n".join(run.decode("ascii") for run in _PRINTABLE_RUN.findall(data))
