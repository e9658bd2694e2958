"""What an erasure or a legal hold names: memories by id, a data subject, or an owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from remembrancer.domain.ids import parse_id
from remembrancer.domain.ports import MacKeys
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.subjects import subject_key
from remembrancer.store import selection
from remembrancer.store.database import Unit

MOST = 1_000
"""Memories and proposals of one call."""


@dataclass(frozen=True)
class Selector:
    """Exactly one member is set; the subject is its key (domain/subjects.py)."""

    ids: tuple[UUID, ...] = ()
    subject: str | None = None
    owner: UUID | None = None

    @property
    def kind(self) -> str:
        if self.subject is not None:
            return "data_subject"
        return "memory_ids" if self.owner is None else "owner"


@dataclass(frozen=True)
class Selected:
    """Memories, proposals beside those of the memories, and imports with staged text."""

    memories: list[UUID]
    proposals: list[UUID]
    jobs: list[UUID]


def selector(memory_ids: Sequence[str] | None, subject: str | None, owner: str | None = None) -> Selector:
    """Raises Problem invalid_input for a text that is no id, with its pointer."""
    if subject is not None:
        return Selector(subject=subject_key(subject))
    if owner is not None:
        return Selector(owner=_owner(owner))
    return Selector(ids=_distinct(memory_ids or ()))


def select(unit: Unit, named: Selector) -> Selected:
    """In every space. Raises Problem input_budget_exceeded for more than MOST rows: name smaller parts by id."""
    if named.subject is not None:
        spellings = [s for s in selection.declared_subjects(unit) if subject_key(s) == named.subject]
        found = Selected(
            selection.memories_of_subjects(unit, spellings, MOST + 1),
            selection.proposals_of_subjects(unit, spellings, MOST + 1),
            selection.jobs_of_subjects(unit, spellings),
        )
    elif named.owner is not None:
        found = Selected(
            selection.memories_of_owner(unit, named.owner, MOST + 1),
            selection.proposals_of_submitter(unit, named.owner, MOST + 1),
            selection.jobs_of_principal(unit, named.owner),
        )
    else:
        found = Selected(list(named.ids), [], [])
    if len(found.memories) + len(found.proposals) > MOST:
        message = f"names more than {MOST:,} rows; name them in smaller parts, by memory_ids, for now"
        raise Problem("input_budget_exceeded", [FieldError(f"/{named.kind}", "too_many", message)])
    return found


def witness(macs: MacKeys, tenant_id: UUID, subject: str) -> bytes:
    """What may be kept of a subject's key: a keyed digest."""
    return macs.mac("subject", tenant_id, subject.encode())


def unnamed(macs: MacKeys, subject: str | None) -> str | None:
    """For the hash of a request, which is kept for replay: a plain hash of a name would be guessed."""
    return None if subject is None else macs.mac("request", UUID(int=0), subject.encode()).hex()


def _owner(text: str) -> UUID:
    try:
        return parse_id("prin", text)
    except ValueError:
        raise Problem("invalid_input", [FieldError("/owner", "id", "is not a principal id")]) from None


def _distinct(texts: Sequence[str]) -> tuple[UUID, ...]:
    """In a fixed order."""
    found: set[UUID] = set()
    errors = []
    for index, text in enumerate(texts):
        try:
            found.add(parse_id("mem", text))
        except ValueError:
            errors.append(FieldError(f"/memory_ids/{index}", "id", "is not a memory id"))
    if errors:
        raise Problem("invalid_input", errors[:20])
    return tuple(sorted(found))
