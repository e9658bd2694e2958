"""The two time axes: when a fact held (validity) and when we believed it (transaction time).

All windows are half-open, [start, end); None is an open, infinite bound. Instants are timezone-aware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Window:
    """The validity of a fact. Raises ValueError when it would be empty."""

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("a window must not be empty")

    def contains(self, instant: datetime) -> bool:
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)

    def overlaps(self, other: Window) -> bool:
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )

    def before(self, instant: datetime) -> Window | None:
        """The part before `instant`, None when there is none."""
        if self.start is not None and self.start >= instant:
            return None
        return Window(self.start, instant if self.end is None else min(self.end, instant))


@dataclass(frozen=True, slots=True)
class Version:
    """One belief about a fact, from `created_at` until `superseded_at`; never changed but for the latter."""

    window: Window
    created_at: datetime
    superseded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Succession:
    """What a succession writes: the old belief retired, its past (None without one) and the new fact."""

    retired: Version
    past: Version | None
    successor: Version


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a new fact of cardinality one lies, and the indexes of the current facts that it succeeds."""

    window: Window
    succeeds: tuple[int, ...]


def visible_at(version: Version, at: datetime, known_at: datetime | None = None) -> bool:
    """Whether the version is believed (now, or as of `known_at`) and valid at `at`."""
    if known_at is None:
        believed = version.superseded_at is None
    else:
        believed = version.created_at <= known_at and (
            version.superseded_at is None or known_at < version.superseded_at
        )
    return believed and version.window.contains(at)


def succession(old: Version, new: Window, now: datetime) -> Succession:
    """The world changed: the new fact takes over at its start, or at `now`, the instant of the decision.

    Raises ValueError when `old` is no current belief, or the new window ends before the change.
    """
    successor = Window(now if new.start is None else new.start, new.end)
    assert successor.start is not None
    past = old.window.before(successor.start)
    return Succession(
        retired=_retire(old, now),
        past=None if past is None else Version(past, now),
        successor=Version(successor, now),
    )


def correction(old: Version, corrected: Window, now: datetime) -> tuple[Version, Version]:
    """We were wrong: the old belief retired, and the corrected one. Raises ValueError as `succession`."""
    return _retire(old, now), Version(corrected, now)


def place(new: Window, current: Sequence[Window]) -> Placement:
    """A new fact among the same owner's current facts of one subject and one single-valued predicate.

    It succeeds the overlapping facts that start before it or with it, leaves disjoint ones alone, and is
    itself closed where a later fact starts: a late arrival about an older time retires nothing after it.
    Raises ValueError for an open start: an undated fact is dated by its decision instant first.
    """
    if new.start is None:
        raise ValueError("a fact is placed by its start")
    later = [other.start for other in current if other.start is not None and new.start < other.start]
    window = new.before(min(later)) if later else new
    assert window is not None
    return Placement(
        window,
        tuple(index for index, other in enumerate(current) if window.overlaps(other)),
    )


def _retire(old: Version, now: datetime) -> Version:
    if old.superseded_at is not None:
        raise ValueError("only a current belief can be superseded")
    return replace(old, superseded_at=now)
