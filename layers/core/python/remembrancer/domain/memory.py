"""What is written for one memory, ready for the store: decided, screened, cut and embedded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from remembrancer.domain.requests import EntityIn, RelationIn

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors


@dataclass(frozen=True)
class PassageText:
    """One search unit: where it lies in the content (code points) and the form that is indexed."""

    start: int
    end: int
    rendered: str


@dataclass(frozen=True)
class Passages:
    texts: tuple[PassageText, ...]
    vectors: Vectors
    contract: str


@dataclass(frozen=True)
class Place:
    """Where in a document a part lies. Lines count from 1, both ends included; None where there are none."""

    parent_id: UUID
    ordinal: int
    heading_path: str | None
    line_start: int | None
    line_end: int | None


@dataclass(frozen=True)
class NewMemory:
    memory_id: UUID
    space_id: UUID
    owner_id: UUID
    domain: str
    kind: str
    title: str | None
    content: str
    author: str | None
    origin: Literal["human", "model", "imported"]
    source: str
    assertion_kind: str
    admitted_by: Literal["proposal", "ingest", "remember", "session"]
    approved_by: UUID | None
    proposal_id: UUID | None
    data_subjects: tuple[str, ...]
    observed_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    source_uri: str | None
    revision: str | None
    pii: bool
    screen: Mapping[str, Any]
    screen_overridden: bool
    confidence: float
    confidence_parts: Mapping[str, Any]
    dedup_key: bytes
    passages: Passages
    held: bool
    """An open hold-out of reason `screen`: stored, invisible, without edges."""
    entities: tuple[EntityIn, ...] = field(default=())
    relations: tuple[RelationIn, ...] = field(default=())
    place: Place | None = None
    claimed: Mapping[str, Any] | None = None
    """What a caller said of it that decides nothing here: a confidence, an id of another system."""


def origin_of(source: str) -> Literal["human", "model", "imported"]:
    """manual is human, memory is model, everything else imported."""
    match source:
        case "manual":
            return "human"
        case "memory":
            return "model"
        case _:
            return "imported"
