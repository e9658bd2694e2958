"""What new statements make of the facts that stand: one more support, a succession, a correction, a conflict.

Pure: facts go in as they are stored, the ledger says what is closed, added and contradicted (model.md, Time).
The current windows of one owner's facts of one subject under one single-valued predicate never overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from remembrancer.domain.remember_plan import Span
from remembrancer.domain.time_rules import Window, place

ConflictReason = Literal["opposite_polarity", "other_object"]


@dataclass(frozen=True)
class Value:
    """Canonical forms; `unit` is None for a value without one."""

    type: str
    canonical: str
    unit: str | None


@dataclass(frozen=True)
class Statement:
    """What is said, whoever says it and whenever it holds. Exactly one of the objects is set."""

    subject_id: UUID
    predicate: str
    object_id: UUID | None
    value: Value | None
    polarity: str

    @property
    def place(self) -> tuple[UUID, str]:
        return self.subject_id, self.predicate

    @property
    def object(self) -> UUID | Value | None:
        return self.object_id if self.value is None else self.value


@dataclass
class Fact:
    """One relationship in the ledger: as it is stored, and what it is to be.

    `version` is 0 for a new one. `window` is what it holds for now, None when it is retired; `kept` is its window
    when it is retired in the batch that brought it.
    """

    relationship_id: UUID
    owner_id: UUID
    version: int
    statement: Statement
    window: Window | None
    original: str | None = None
    """Of a value, as it was written."""
    stored: tuple[Statement, Window] | None = None
    kept: Window | None = None
    replaced_by: UUID | None = None
    restated: bool = False
    """The statement itself was corrected: what supported the old one does not support the new one."""
    supports: list[Span] = field(default_factory=list)

    @classmethod
    def of_store(
        cls, relationship_id: UUID, owner_id: UUID, version: int, statement: Statement, window: Window
    ) -> Fact:
        return cls(relationship_id, owner_id, version, statement, window, stored=(statement, window))

    @property
    def changed(self) -> bool:
        """Whether the stored version is closed."""
        return self.stored is not None and self.stored != (self.statement, self.window)

    @property
    def final_version(self) -> int:
        """The version that is current afterwards; of a retired fact the one that was."""
        if self.stored is None:
            return 1
        return self.version + (1 if self.changed and self.window is not None else 0)


@dataclass(frozen=True)
class Correction:
    relationship_id: UUID


@dataclass(frozen=True)
class Said:
    """One accepted relationship on its way into the ledger."""

    statement: Statement
    valid_from: datetime | None
    valid_to: datetime | None
    supports: tuple[Span, ...]
    original: str | None = None
    correction: Correction | None = None


@dataclass(frozen=True)
class Contradiction:
    fact: Fact
    other: Fact
    reason: ConflictReason


class Ledger:
    """The current facts of every place that the batch speaks of, and what becomes of them.

    `predicates` gives (kind, cardinality) of each key; `now` is the instant of the decision.
    """

    def __init__(
        self,
        owner_id: UUID,
        facts: Iterable[Fact],
        predicates: Mapping[str, tuple[str, str]],
        now: datetime,
        new_id: Callable[[], UUID],
    ) -> None:
        self._owner_id = owner_id
        self._by_id: dict[UUID, Fact] = {}
        self._by_place: dict[tuple[UUID, str], list[Fact]] = {}
        self._by_object: dict[tuple[UUID, str, UUID | Value | None], list[Fact]] = {}
        for fact in facts:
            self._enter(fact)
        self._predicates = predicates
        self._now = now
        self._new_id = new_id

    @property
    def facts(self) -> Sequence[Fact]:
        return list(self._by_id.values())

    def _enter(self, fact: Fact) -> None:
        """Also again, when it was corrected; under what it said before it is compared as what it says now."""
        self._by_id[fact.relationship_id] = fact
        if fact.stored is None or not fact.restated or fact.stored[0].place != fact.statement.place:
            self._by_place.setdefault(fact.statement.place, []).append(fact)
        self._by_object.setdefault((*fact.statement.place, fact.statement.object), []).append(fact)

    def say(self, said: Said) -> Fact:
        """The fact that this is, or becomes. Raises LookupError for a correction of what is not in the ledger."""
        if said.correction is not None:
            fact = self._correct(said, said.correction)
        else:
            fact = self._same(said) or self._add(said)
        for span in said.supports:
            if span not in fact.supports:
                fact.supports.append(span)
        return fact

    def end(self, fact: Fact) -> None:
        """What rested on text that holds until now holds until now, unless it was said again."""
        if fact.supports:
            return
        if fact.window is not None and (fact.window.end is None or fact.window.end > self._now):
            fact.window = fact.window.before(self._now)

    def contradictions(self) -> Iterator[Contradiction]:
        """Of facts that the batch said: each pair once. Nothing is overwritten by it."""
        seen: set[frozenset[UUID]] = set()
        for fact in self._by_id.values():
            if not fact.supports or fact.window is None:
                continue
            for other in self._beside(fact.statement):
                pair = frozenset((fact.relationship_id, other.relationship_id))
                if other is fact or other.window is None or pair in seen:
                    continue
                reason = self._contradict(fact, other)
                if reason is not None and fact.window.overlaps(other.window):
                    seen.add(pair)
                    yield Contradiction(fact, other, reason)

    def _beside(self, statement: Statement) -> list[Fact]:
        """The facts that could contradict it: of the same object, where one holds at a time of the same place."""
        if self._predicates[statement.predicate][1] == "one":
            return self._by_place.get(statement.place, [])
        return self._by_object.get((*statement.place, statement.object), [])

    def _contradict(self, fact: Fact, other: Fact) -> ConflictReason | None:
        one, two = fact.statement, other.statement
        if one.place != two.place:
            return None
        if one.polarity != two.polarity:
            return "opposite_polarity" if one.object == two.object else None
        kind, cardinality = self._predicates[one.predicate]
        if cardinality == "many" or one.polarity == "-" or one.object == two.object:
            return None
        # The same owner's state of another time was succeeded; an event has no successor.
        return "other_object" if kind == "event" or fact.owner_id != other.owner_id else None

    def _own(self, statement: Statement, owner_id: UUID) -> list[Fact]:
        return [
            fact
            for fact in self._by_object.get((*statement.place, statement.object), ())
            if fact.owner_id == owner_id and fact.window is not None and fact.statement == statement
        ]

    def _same(self, said: Said) -> Fact | None:
        """The fact that is already there: of the same start when one is stated, else the one that holds then.

        A stated end that differs ends it there, which is another version of the same fact.
        """
        for fact in self._own(said.statement, self._owner_id):
            assert fact.window is not None
            if _is_same(fact.window, said, self._now):
                if said.valid_to is not None and said.valid_to != fact.window.end:
                    self._settle(fact, Window(fact.window.start, said.valid_to))
                return fact
        return None

    def _add(self, said: Said) -> Fact:
        fact = Fact(self._new_id(), self._owner_id, 0, said.statement, Window(), original=said.original)
        start = said.valid_from
        if start is None and self._dated_now(said):
            start = self._now
        self._settle(fact, Window(start, said.valid_to))
        self._enter(fact)
        return fact

    def _dated_now(self, said: Said) -> bool:
        """An undated fact beside others of its place is dated by the decision; alone its start stays open."""
        if said.valid_to is not None and said.valid_to <= self._now:
            return False
        return bool(
            self._rivals(said.statement, self._owner_id, None)
            if self._single(said.statement)
            else self._own(said.statement, self._owner_id)
        )

    def _correct(self, said: Said, correction: Correction) -> Fact:
        """We were wrong: what is stated takes the place of the old version; the window stays unless it is stated."""
        fact = self._by_id.get(correction.relationship_id)
        if fact is None or fact.window is None:
            raise LookupError("nothing to correct")
        window = fact.window
        if said.valid_from is not None or said.valid_to is not None:
            window = Window(said.valid_from, said.valid_to)
        same = [
            other
            for other in self._own(said.statement, fact.owner_id)
            if other is not fact and other.window is not None and other.window.start == window.start
        ]
        if same:  # it is known already, under another id
            fact.window, fact.replaced_by = None, same[0].relationship_id
            return same[0]
        if fact.statement != said.statement:
            fact.statement, fact.original, fact.restated = said.statement, said.original, True
            fact.supports.clear()
            self._enter(fact)
        self._settle(fact, window)
        return fact

    def _single(self, statement: Statement) -> bool:
        return statement.polarity == "+" and self._predicates[statement.predicate] == ("state", "one")

    def _rivals(self, statement: Statement, owner_id: UUID, fact: Fact | None) -> list[Fact]:
        """The same owner's other facts of a place that holds one at a time."""
        return [
            other
            for other in self._by_place.get(statement.place, ())
            if other is not fact
            and other.owner_id == owner_id
            and other.window is not None
            and other.statement.place == statement.place
            and other.statement.polarity == "+"
        ]

    def _settle(self, fact: Fact, window: Window) -> None:
        """Give the fact its window; where one holds at a time, among its rivals."""
        if self._single(fact.statement):
            rivals = self._rivals(fact.statement, fact.owner_id, fact)
            windows = [rival.window for rival in rivals if rival.window is not None]
            window, succeeded = _placed(window, windows)
            for index in succeeded:
                rival = rivals[index]
                rival.kept = windows[index]
                rival.window = _without(windows[index], window)
                rival.replaced_by = fact.relationship_id
        fact.window = window


def is_repeated(fact: Fact, said: Said, owner_id: UUID, now: datetime) -> bool:
    """Whether `said`, by this owner, is that fact once more, and no correction of another."""
    return (
        said.correction is None
        and (fact.owner_id, fact.statement) == (owner_id, said.statement)
        and fact.window is not None
        and _is_same(fact.window, said, now)
    )


def _is_same(window: Window, said: Said, now: datetime) -> bool:
    if said.valid_from is not None:
        return window.start == said.valid_from
    if said.valid_to is None:
        return window.contains(now)
    return (window.start is None or window.start < said.valid_to) and (
        window.end is None or said.valid_to <= window.end
    )


def _placed(window: Window, current: Sequence[Window]) -> tuple[Window, tuple[int, ...]]:
    """`time_rules.place`, also for a fact without a start: it is older than whatever has one."""
    if window.start is not None:
        placement = place(window, current)
        return placement.window, placement.succeeds
    ends = [other.start for other in current if other.start is not None]
    if window.end is not None:
        ends.append(window.end)
    older = Window(None, min(ends, default=None))
    return older, tuple(index for index, other in enumerate(current) if older.overlaps(other))


def _without(old: Window, new: Window) -> Window | None:
    """What is left of a fact that another takes the place of: its past; of one whose start nobody knew, what comes
    after an older fact."""
    if new.start is not None:
        return old.before(new.start)
    if new.end is None or (old.end is not None and old.end <= new.end):
        return None
    return Window(new.end, old.end)
