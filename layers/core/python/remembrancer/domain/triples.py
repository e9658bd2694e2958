"""A relation between names, as a caller sends it or the linker reads it from text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from remembrancer.domain.names import fold

Span = tuple[int, int]
"""Half-open range of code points in the original text."""


@dataclass(frozen=True)
class Triple:
    """`subject predicate object`, true within [valid_from, valid_to) (None: open), or denied by `-`.

    `object` is an entity's name or the text of a value; `span` is where the text says it, if it does.
    """

    subject: str
    predicate: str
    object: str
    polarity: Literal["+", "-"] = "+"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    span: Span | None = None


_NOT_WORD = re.compile(r"[^a-z0-9]+")


def predicate_slug(text: str) -> str | None:
    """A predicate key (`works_at`) from free words (`Works at`), or None when nothing usable is left."""
    slug = _NOT_WORD.sub("_", fold(text)).strip("_")[:64].rstrip("_")
    return slug if slug[:1].isalpha() else None
