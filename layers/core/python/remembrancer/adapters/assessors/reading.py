"""Reading a provider's response without believing its form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_COUNT = 10_000_000


def members(document: object, name: str) -> Mapping[str, Any]:
    """The object that `document` holds under `name`; an empty one when it holds none."""
    found = document.get(name) if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def count(value: object) -> int:
    """A provider's counter is shown, never acted on: what is no plausible number counts as none."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0
