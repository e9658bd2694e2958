"""The strict reader of request bodies: from the bytes of an event to one JSON object, or a problem.

It runs before validation, because validators let duplicate keys pass, die on deep nesting and repeat what
they were sent. Every step is linear in the size of the body.
"""

from __future__ import annotations

import base64
import json
import math
import re
from array import array
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import Any

from remembrancer.domain.problems import FieldError, Problem

MAX_BYTES = 5 * 1024 * 1024
MAX_DEPTH = 32
MAX_VALUES = 200_000
"""Members and items of all objects and lists: small values cost fifty times their text in memory."""
MAX_ERRORS = 10
MAX_INTEGER = 2**63 - 1
MAX_NUMBER_CHARS = 64

_SURROGATE = re.compile("[\ud800-\udfff]")
# Possessive: no backtracking, and no memory for each repetition. An unclosed string runs to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class _Unusable:
    """Stands for a number that JSON text can spell and we do not accept, until its place is known."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail


class _Repeated(dict[str, Any]):
    """An object in which a name came twice, until its place is known."""


_NOT_FINITE = _Unusable("number_not_finite", "NaN and infinities are not JSON.")
_TOO_LARGE = _Unusable("number_too_large", "Integers have at most 64 bits, numbers at most 64 characters.")


def check_media_type(content_type: str | None, content_encoding: str | None = None) -> None:
    """Raises Problem unsupported_media_type unless it is plain `application/json` in UTF-8."""
    media_type, *parameters = [part.strip().lower() for part in (content_type or "").split(";")]
    plain = (content_encoding or "identity").strip().lower() == "identity"
    if (
        media_type != "application/json"
        or not plain
        or set(parameters) - {"charset=utf-8", 'charset="utf-8"'}
    ):
        raise Problem("unsupported_media_type")


def parse_body(raw: str | bytes, *, is_base64: bool, names: Collection[str] = frozenset()) -> dict[str, Any]:
    """The object that a request body holds: strings, int, float, bool, None, lists and dicts.

    `names` are the field names of the contract: pointers show only these and indexes, so a fault below
    an unknown name is charged to the nearest known parent. Raises Problem input_budget_exceeded above
    MAX_BYTES or MAX_VALUES, else malformed_request with one FieldError a fault, at most MAX_ERRORS.
    """
    body = _bytes_of(raw, is_base64)
    if len(body) > MAX_BYTES:
        raise Problem("input_budget_exceeded")
    text = _decode(body)
    skeleton = _STRING.sub(b"", body)
    if _depth(skeleton) > MAX_DEPTH:
        raise _malformed("too_deep", f"Objects and lists nest at most {MAX_DEPTH} levels.")
    if sum(map(skeleton.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise Problem("input_budget_exceeded")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=lambda _: _NOT_FINITE,
            parse_int=_integer,
            parse_float=_float,
        )
    except ValueError:
        # Not chained: the decoder's error holds the whole body.
        raise _malformed("not_json", "The body is not JSON.") from None
    if not isinstance(value, dict):
        raise _malformed("not_an_object", "The body must be a JSON object.")
    errors = _first_faults(value, names)
    if errors:
        raise Problem("malformed_request", errors)
    return value


def _malformed(code: str, detail: str) -> Problem:
    return Problem("malformed_request", [FieldError("", code, detail)])


def _bytes_of(raw: str | bytes, is_base64: bool) -> bytes:
    if is_base64:
        if len(raw) > MAX_BYTES // 3 * 4 + 8:
            raise Problem("input_budget_exceeded")
        try:
            return base64.b64decode(raw, validate=True)
        except ValueError:
            raise _malformed("not_base64", "The body is not base64.") from None
    if isinstance(raw, bytes):
        return raw
    try:
        return raw.encode("utf-8")
    except UnicodeEncodeError:
        raise _malformed("not_utf8", "The body is not UTF-8.") from None


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("not_utf8", "The body is not UTF-8.") from None


def _depth(skeleton: bytes) -> int:
    """The deepest nesting of brackets in a text without its strings; exact for JSON."""
    brackets = skeleton.translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(array("b", brackets)), default=0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else _Repeated(members)


def _integer(digits: str) -> int | _Unusable:
    if len(digits) > MAX_NUMBER_CHARS:
        return _TOO_LARGE
    number = int(digits)
    return number if abs(number) <= MAX_INTEGER else _TOO_LARGE


def _float(digits: str) -> float | _Unusable:
    if len(digits) > MAX_NUMBER_CHARS:
        return _TOO_LARGE
    number = float(digits)
    return number if math.isfinite(number) else _TOO_LARGE


def _first_faults(value: dict[str, Any], names: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for error in _faults(value, "", True, names):
        if error not in errors:
            errors.append(error)
        if len(errors) == MAX_ERRORS:
            break
    return errors


def _faults(value: Any, pointer: str, known: bool, names: Collection[str]) -> Iterator[FieldError]:
    """The faults at and below `value`; `known` turns false below an unknown name and stops the pointer."""
    if isinstance(value, str):
        yield from _text_faults(value, pointer)
    elif isinstance(value, _Unusable):
        yield FieldError(pointer, value.code, value.detail)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (str, list, dict, _Unusable)):
                yield from _faults(item, f"{pointer}/{index}" if known else pointer, known, names)
    elif isinstance(value, dict):
        if isinstance(value, _Repeated):
            yield FieldError(pointer, "duplicate_name", "A name occurs twice in this object.")
        for name, item in value.items():
            yield from _text_faults(name, pointer)
            if isinstance(item, (str, list, dict, _Unusable)):
                below = known and name in names
                yield from _faults(item, f"{pointer}/{name}" if below else pointer, below, names)


def _text_faults(text: str, pointer: str) -> Iterator[FieldError]:
    if "\0" in text:
        yield FieldError(pointer, "nul_character", "Text may not contain the character U+0000.")
    if not text.isascii() and _SURROGATE.search(text):
        yield FieldError(pointer, "lone_surrogate", "Text may not contain half of a surrogate pair.")
