"""Canonical bytes of a record, so that equal records and only equal records share a digest.

A value is `tag (1 byte) || length (4 bytes, big-endian) || body`. The tag keeps types apart (1, True and
"1" differ), the length keeps neighbours apart ("ab", "c" and "a", "bc" differ). A list's body is its
encoded items, a dict's its encoded keys and values in the order of the encoded keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

Value = None | bool | int | str | bytes | datetime | Sequence["Value"] | Mapping[str, "Value"]
Fields = Mapping[str, Value] | Iterable[tuple[str, Value]]

MAX_DEPTH = 64
"""Nesting of lists and dicts; deeper values raise ValueError instead of exhausting the stack."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode(fields: Fields) -> bytes:
    """The canonical bytes of a record: the order of its fields does not matter, every other change does.

    Raises ValueError for a repeated name, a naive datetime, a lone surrogate or nesting beyond MAX_DEPTH,
    TypeError for a type outside `Value` (floats have no canonical form; give their text).
    """
    pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a field name is repeated")
    return _encode_value(record, MAX_DEPTH)


def digest(fields: Fields) -> bytes:
    """SHA-256 over `encode(fields)`, 32 bytes."""
    return hashlib.sha256(encode(fields)).digest()


def canonical_json(value: object) -> str:
    """JSON text with sorted keys, no spaces, no escapes beyond the necessary; for values parsed from JSON.

    Raises ValueError for NaN and infinities.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def microseconds(instant: datetime) -> int:
    """Whole microseconds since 1970-01-01T00:00Z, exact. Raises ValueError for a naive datetime."""
    if instant.utcoffset() is None:
        raise ValueError("a naive datetime has no canonical form")
    return (instant - _EPOCH) // _MICROSECOND


def _frame(tag: bytes, body: bytes) -> bytes:
    return tag + len(body).to_bytes(4, "big") + body


def _encode_value(value: object, depth: int) -> bytes:
    match value:
        case None:
            return _frame(b"n", b"")
        case bool():
            return _frame(b"b", b"\x01" if value else b"\x00")
        case int():
            return _frame(b"i", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
        case str():
            return _frame(b"s", value.encode("utf-8"))
        case bytes():
            return _frame(b"y", value)
        case datetime():
            return _frame(b"t", microseconds(value).to_bytes(8, "big", signed=True))
    if depth == 0:
        raise ValueError("nested too deeply")
    match value:
        case list() | tuple():
            return _frame(b"l", b"".join(_encode_value(item, depth - 1) for item in value))
        case Mapping():
            return _frame(b"d", _encode_members(value, depth))
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _encode_members(members: Mapping[object, object], depth: int) -> bytes:
    encoded: list[tuple[bytes, bytes]] = []
    for name, value in members.items():
        if not isinstance(name, str):
            raise TypeError("names are strings")
        encoded.append((_encode_value(name, depth - 1), _encode_value(value, depth - 1)))
    return b"".join(name + value for name, value in sorted(encoded))
