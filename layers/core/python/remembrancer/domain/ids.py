"""Public identifiers: a type prefix over a UUIDv7, `mem_0192f0c1…` (32 hexadecimal digits)."""

from __future__ import annotations

import re
from typing import Literal
from uuid import UUID

Prefix = Literal[
    "mem", "prop", "att", "ent", "rel", "con", "job", "dsr", "hold", "occ", "prin", "tomb", "evt", "rep"
]

_HEX = re.compile(r"[0-9a-f]{32}")


def format_id(prefix: Prefix, value: UUID) -> str:
    return f"{prefix}_{value.hex}"


def parse_id(prefix: Prefix, text: str) -> UUID:
    """The UUID behind a public id. Raises ValueError, never with the text in it."""
    head, _, digits = text.partition("_")
    if head != prefix or not _HEX.fullmatch(digits):
        raise ValueError(f"not a {prefix}_ identifier")
    return UUID(hex=digits)
