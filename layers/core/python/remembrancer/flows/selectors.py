"""What an erasure, a legal hold or a subject's request names: ids, a data subject, an author, entities, an owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from remembrancer.domain.ids import Prefix, parse_id
from remembrancer.domain.names import fold
from remembrancer.domain.ports import MacKeys
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.subjects import subject_key
from remembrancer.store import attempts, selection
from remembrancer.store.database import Unit

MOST = 1_000
"""Rows that one transaction erases."""


@dataclass(frozen=True)
class Selector:
    """Ids, or exactly one of the others; subject and author are keys (domain/subjects.py)."""

    ids: tuple[UUID, ...] = ()
    proposals: tuple[UUID, ...] = ()
    subject: str | None = None
    author: str | None = None
    entities: tuple[UUID, ...] = ()
    owner: UUID | None = None

    @property
    def kind(self) -> str:
        if self.subject is not None:
            return "data_subject"
        if self.author is not None:
            return "author"
        if self.entities:
            return "entities"
        if self.owner is not None:
            return "owner"
        return "memory_ids" if self.ids or not self.proposals else "proposal_ids"

    @property
    def by_id(self) -> bool:
        return self.kind in ("memory_ids", "proposal_ids")


@dataclass(frozen=True)
class Selected:
    """Memories, proposals beside those of the memories, imports with staged text, further submissions."""

    memories: list[UUID] = field(default_factory=list)
    proposals: list[UUID] = field(default_factory=list)
    jobs: list[UUID] = field(default_factory=list)
    occurrences: list[UUID] = field(default_factory=list)
    attempts: list[UUID] = field(default_factory=list)
    """Of remember; with what they left."""

    def __len__(self) -> int:
        kinds = (self.memories, self.proposals, self.jobs, self.occurrences, self.attempts)
        return sum(map(len, kinds))


def selector(
    memory_ids: Sequence[str] | None,
    subject: str | None,
    owner: str | None = None,
    proposal_ids: Sequence[str] | None = None,
) -> Selector:
    """Raises Problem invalid_input for a text that is no id, with its pointer."""
    if subject is not None:
        return Selector(subject=subject_key(subject))
    if owner is not None:
        return Selector(owner=_id("prin", owner, "/owner"))
    return Selector(
        ids=_distinct("mem", memory_ids or (), "/memory_ids"),
        proposals=_distinct("prop", proposal_ids or (), "/proposal_ids"),
    )


def subject_selectors(
    subject: str | None, author: str | None, entities: Sequence[str] | None, owner: str | None
) -> list[Selector]:
    """One for each way in which a person is found. Raises Problem invalid_input."""
    found = []
    if subject is not None:
        found.append(Selector(subject=subject_key(subject)))
    if author is not None:
        found.append(Selector(author=subject_key(author)))
    if entities is not None:
        found.append(Selector(entities=_distinct("ent", entities, "/entities")))
    if owner is not None:
        found.append(Selector(owner=_id("prin", owner, "/owner")))
    return found


def select(unit: Unit, named: Selector, most: int | None = None) -> Selected:
    """In every space; at most `most` of each kind, if given."""
    if named.subject is not None:
        spellings = [s for s in selection.declared_subjects(unit) if subject_key(s) == named.subject]
        return Selected(
            selection.memories_of_subjects(unit, spellings, most),
            selection.proposals_of_subjects(unit, spellings, most),
            selection.jobs_of_subjects(unit, spellings),
            attempts=attempts.of_subjects(unit, spellings),
        )
    if named.author is not None:
        spellings = [s for s in selection.authors(unit) if subject_key(s) == named.author]
        return Selected(
            selection.memories_of_authors(unit, spellings, most),
            selection.proposals_of_authors(unit, spellings, most),
            selection.jobs_of_authors(unit, spellings),
        )
    if named.entities:
        entities = selection.with_merged(unit, named.entities)
        keys = selection.names_of_entities(unit, entities)
        spoken = [one for one in selection.untied_names(unit) if (one[0], fold(one[1])) in keys]
        untied = selection.naming(unit, spoken)
        return Selected(
            sorted({*selection.memories_of_entities(unit, entities, most), *untied["memory"]}),
            untied["proposal"],
            untied["job"],
        )
    if named.owner is not None:
        return Selected(
            selection.memories_of_owner(unit, named.owner, most),
            selection.proposals_of_submitter(unit, named.owner, most),
            selection.jobs_of_principal(unit, named.owner),
            selection.occurrences_of_submitter(unit, named.owner, most),
            attempts.of_principal(unit, named.owner),
        )
    return Selected(list(named.ids), list(named.proposals))


def everything(unit: Unit) -> Selected:
    """Whatever the tenant has."""
    return Selected(
        selection.every(unit, "memory"),
        selection.every(unit, "proposal"),
        selection.every(unit, "job_item"),
        [],
        selection.every(unit, "attempt"),
    )


def union(parts: Sequence[Selected]) -> Selected:
    return Selected(
        sorted({one for part in parts for one in part.memories}),
        sorted({one for part in parts for one in part.proposals}),
        sorted({one for part in parts for one in part.jobs}),
        sorted({one for part in parts for one in part.occurrences}),
        sorted({one for part in parts for one in part.attempts}),
    )


def witness(macs: MacKeys, tenant_id: UUID, subject: str) -> bytes:
    """What may be kept of a subject's key: a keyed digest."""
    return macs.mac("subject", tenant_id, subject.encode())


def unnamed(macs: MacKeys, subject: str | None) -> str | None:
    """For the hash of a request, which is kept for replay: a plain hash of a name would be guessed."""
    return None if subject is None else macs.mac("request", UUID(int=0), subject.encode()).hex()


def _id(prefix: Prefix, text: str, pointer: str) -> UUID:
    try:
        return parse_id(prefix, text)
    except ValueError:
        raise Problem("invalid_input", [FieldError(pointer, "id", f"is not a {prefix}_ id")]) from None


def _distinct(prefix: Prefix, texts: Sequence[str], pointer: str) -> tuple[UUID, ...]:
    """In a fixed order."""
    found: set[UUID] = set()
    errors: list[FieldError] = []
    for index, text in enumerate(texts):
        try:
            found.add(_id(prefix, text, f"{pointer}/{index}"))
        except Problem as problem:
            errors += problem.errors
    if errors:
        raise Problem("invalid_input", errors[:20])
    return tuple(sorted(found))
