"""The three deterministic scores of a capture. They rank, they never promote.

Each comes back with its parts, so that a person can see why. Formulas: gate.md, section 2.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain.ids import format_id

SHORT_CHARACTERS = 24
LONG_CHARACTERS = 3000
ENTITIES_COUNTED = 8
LONG_TEXT_CAP = 0.3

_CONNECTOR = re.compile(r"connector:\S+")


@dataclass(frozen=True)
class Novelty:
    """1 minus the cosine to the nearest live memory, within 0..1."""

    value: float
    nearest_memory_id: UUID | None
    nearest_cosine: float | None
    exact_duplicate: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the id in its public form, `mem_…`."""
        nearest = None if self.nearest_memory_id is None else format_id("mem", self.nearest_memory_id)
        return asdict(self) | {"nearest_memory_id": nearest}


@dataclass(frozen=True)
class Salience:
    """0..1 from the length of the trimmed text in code points and the number of entities."""

    value: float
    band: Literal["short", "normal", "long"]
    characters: int
    entity_count: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Factor:
    """One multiplier of a confidence and why it applies."""

    name: Literal["connector_source", "conflict_present", "inferred_assertion"]
    multiplier: float
    reason: str


@dataclass(frozen=True)
class Confidence:
    """The product of the factors, starting at 1.0; no factor applies to a plain stated fact."""

    value: float
    factors: tuple[Factor, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "factors": [asdict(factor) for factor in self.factors]}


def novelty(nearest: tuple[UUID, float] | None, exact_duplicate: UUID | None) -> Novelty:
    """How unlike every live memory a candidate is.

    `nearest` is the memory of the highest cosine among those the space could recall (superseded,
    held and erased ones left out by the caller); `exact_duplicate` is a live memory of the same text.
    A cosine below zero counts as zero: text that points away is no newer than text beside nothing.
    Raises ValueError for a cosine that is not a finite number.
    """
    if exact_duplicate is not None:
        return Novelty(0.0, exact_duplicate, 1.0, True)
    if nearest is None:
        return Novelty(1.0, None, None, False)
    memory_id, cosine = nearest
    if not math.isfinite(cosine):
        raise ValueError("cosine is not a finite number")
    return Novelty(min(1.0, max(0.0, 1.0 - cosine)), memory_id, cosine, False)


def salience(text: str, entity_count: int) -> Salience:
    """A length band with a bump for entities; filler and verbatim logs score low.

    Raises ValueError for a negative count.
    """
    if entity_count < 0:
        raise ValueError("entity_count is negative")
    length = len(text.strip())
    if length < SHORT_CHARACTERS:
        return Salience(0.1, "short", length, entity_count)
    by_length = 0.5 * (length - SHORT_CHARACTERS) / (LONG_CHARACTERS - SHORT_CHARACTERS)
    by_entities = 0.4 * min(entity_count, ENTITIES_COUNTED) / ENTITIES_COUNTED
    value = min(1.0, 0.1 + by_length + by_entities)
    if length > LONG_CHARACTERS:
        return Salience(min(value, LONG_TEXT_CAP), "long", length, entity_count)
    return Salience(value, "normal", length, entity_count)


def confidence(source: str, conflict: bool, assertion_kind: str) -> Confidence:
    """How far the record is to be believed before anyone has looked.

    `source` is one of the closed list of model.md; only `connector:<name>` is a connector (a word
    that merely contains it is not). `assertion_kind` is `stated` or `inferred`.
    Raises ValueError for another assertion kind.
    """
    if assertion_kind not in ("stated", "inferred"):
        raise ValueError("assertion_kind is neither stated nor inferred")
    factors: list[Factor] = []
    if _CONNECTOR.fullmatch(source):
        factors.append(Factor("connector_source", 0.9, "It came through a connector, not from a person."))
    if conflict:
        factors.append(Factor("conflict_present", 0.8, "It contradicts a live memory."))
    if assertion_kind == "inferred":
        factors.append(Factor("inferred_assertion", 0.9, "It was inferred, not stated."))
    # Rounded, so that 0.9 * 0.8 * 0.9 reads 0.648 and compares equal in SQL and in Python.
    return Confidence(round(math.prod(factor.multiplier for factor in factors), 6), tuple(factors))
