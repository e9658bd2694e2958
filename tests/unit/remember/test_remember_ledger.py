"""The ledger of facts: whatever is said in whatever order, one holds at a time and no past is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.remember_facts import Correction, Fact, Ledger, Said, Statement, Value
from remembrancer.domain.remember_plan import Span
from remembrancer.domain.time_rules import Window

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ME, OTHER = UUID(int=1), UUID(int=2)
ADA = UUID(int=10)
KINDS = {"works_at": ("state", "one"), "likes": ("state", "many"), "born_in": ("event", "one")}


def day(number: int | None) -> datetime | None:
    """Days around NOW; None is open."""
    return None if number is None else NOW + timedelta(days=number)


def ids(first: int = 1000) -> Callable[[], UUID]:
    numbers: Iterator[int] = count(first)
    return lambda: UUID(int=next(numbers))


def said(
    target: int,
    start: int | None = None,
    end: int | None = None,
    *,
    predicate: str = "works_at",
    polarity: str = "+",
    item: int = 0,
    corrects: UUID | None = None,
) -> Said:
    return Said(
        Statement(ADA, predicate, UUID(int=target), None, polarity),
        day(start),
        day(end),
        (Span(item, 0, 5),),
        None,
        None if corrects is None else Correction(corrects),
    )


def stored(number: int, target: int, start: int | None, end: int | None, **more: Any) -> Fact:
    predicate = more.get("predicate", "works_at")
    return Fact.of_store(
        UUID(int=number),
        more.get("owner", ME),
        1,
        Statement(ADA, predicate, UUID(int=target), None, more.get("polarity", "+")),
        Window(day(start), day(end)),
    )


def ledger(*facts: Fact) -> Ledger:
    return Ledger(ME, facts, KINDS, NOW, ids())


bounds = st.one_of(st.none(), st.integers(-9, 9))
sayings = st.tuples(
    st.integers(0, 3), bounds, bounds, st.sampled_from(sorted(KINDS)), st.sampled_from("+-")
).filter(lambda s: s[1] is None or s[2] is None or s[1] < s[2])


@given(st.lists(sayings, max_size=12), st.lists(sayings, max_size=6))
def test_one_state_holds_at_a_time(first: list[Any], second: list[Any]) -> None:
    """Said in two batches: the facts of an owner, subject and single-valued predicate are disjoint, each thing that
    was said has a fact, and a stored version is closed exactly when it changed."""
    book = ledger()
    for target, start, end, predicate, polarity in first:
        book.say(said(target, start, end, predicate=predicate, polarity=polarity))
    kept = [
        Fact.of_store(f.relationship_id, f.owner_id, f.final_version, f.statement, f.window)
        for f in book.facts
        if f.window is not None
    ]
    book = Ledger(ME, kept, KINDS, NOW, ids(10**6))
    for target, start, end, predicate, polarity in second:
        fact = book.say(said(target, start, end, predicate=predicate, polarity=polarity))
        assert fact.statement == said(target, predicate=predicate, polarity=polarity).statement
        assert fact.window is not None and fact.supports
    held = [f for f in book.facts if f.statement.predicate == "works_at" and f.statement.polarity == "+"]
    current = [f.window for f in held if f.window is not None]
    assert all(not a.overlaps(b) for i, a in enumerate(current) for b in current[i + 1 :])
    for fact in book.facts:
        if fact.stored is not None and not fact.changed:
            assert (fact.final_version, fact.window) == (fact.version, fact.stored[1])
        if fact.window is None:
            assert fact.replaced_by is not None and fact.kept is not None


@given(sayings, st.integers(0, 3))
def test_said_twice_is_one_fact(saying: Any, target: int) -> None:
    _, start, end, predicate, polarity = saying
    book = ledger()
    one = book.say(said(target, start, end, predicate=predicate, polarity=polarity))
    two = book.say(said(target, start, end, predicate=predicate, polarity=polarity, item=1))
    if start is not None or end is None or end > 0:
        assert one is two and len(one.supports) == 2
    assert len([f for f in book.facts if f.window is not None]) == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=8))
def test_the_order_of_dated_starts_does_not_matter(starts: list[tuple[int, int]]) -> None:
    """Each day belongs to the one that started last before it, whichever was told first."""
    unique = list({start: (target, start) for target, start in starts}.values())

    def holders(order: list[tuple[int, int]]) -> list[int | None]:
        book = ledger()
        for target, start in order:
            book.say(said(target, start))
        found: list[int | None] = []
        for number in range(-10, 11):
            at = NOW + timedelta(days=number, hours=1)
            holding = [f for f in book.facts if f.window is not None and f.window.contains(at)]
            assert len(holding) <= 1
            found.append(holding[0].statement.object_id.int if holding else None)  # type: ignore[union-attr]
        return found

    assert holders(unique) == holders(unique[::-1]) == holders(sorted(unique, key=lambda one: one[1]))


def test_an_undated_fact_alone_keeps_an_open_start_and_beside_others_starts_now() -> None:
    book = ledger()
    assert book.say(said(1)).window == Window()
    assert book.say(said(2)).window == Window(NOW, None)
    assert book.facts[0].window == Window(None, NOW)
    past = book.say(said(3, None, -5))
    assert past.window == Window(None, day(-5)) and book.facts[0].window == Window(day(-5), NOW)


def test_a_stated_end_ends_the_fact_that_holds_then() -> None:
    fact = stored(1, 1, -9, None)
    book = ledger(fact)
    assert book.say(said(1, None, -2)) is fact
    assert fact.window == Window(day(-9), day(-2)) and fact.final_version == 2 and not fact.restated


def test_only_the_same_owners_facts_are_succeeded() -> None:
    theirs = stored(1, 1, -9, None, owner=OTHER)
    book = ledger(theirs)
    book.say(said(2, -3))
    assert not theirs.changed
    [found] = book.contradictions()
    assert (found.reason, found.other) == ("other_object", theirs)


@pytest.mark.parametrize(
    ("facts", "saying", "reasons"),
    [
        ([stored(1, 1, None, None, polarity="-")], said(1), ["opposite_polarity"]),
        (
            [stored(1, 1, None, None, predicate="likes", polarity="-")],
            said(1, predicate="likes"),
            ["opposite_polarity"],
        ),
        ([stored(1, 1, None, None, predicate="likes")], said(2, predicate="likes"), []),
        ([stored(1, 1, -9, -5, owner=OTHER)], said(2, -3), []),
        ([stored(1, 1, -9, -5, polarity="-")], said(1, -3), []),
        ([stored(1, 1, None, None, owner=OTHER)], said(1), []),
        ([stored(1, 1, None, None, polarity="-", owner=OTHER)], said(2, polarity="-"), []),
        ([stored(1, 1, None, None, predicate="born_in")], said(2, predicate="born_in"), ["other_object"]),
    ],
)
def test_what_contradicts(facts: list[Fact], saying: Said, reasons: list[str]) -> None:
    book = ledger(*facts)
    book.say(saying)
    assert [found.reason for found in book.contradictions()] == reasons
    assert not any(fact.changed for fact in facts)


def test_a_correction_to_what_is_known_already_is_that_fact() -> None:
    wrong, right = stored(1, 1, -9, None, predicate="likes"), stored(2, 2, -9, None, predicate="likes")
    book = ledger(wrong, right)
    assert book.say(said(2, predicate="likes", corrects=UUID(int=1))) is right
    assert wrong.window is None and wrong.replaced_by == UUID(int=2) and wrong.final_version == 1


def test_a_correction_of_nothing() -> None:
    with pytest.raises(LookupError):
        ledger().say(said(2, corrects=UUID(int=1)))


def test_values_differ_by_unit() -> None:
    book = ledger()
    km, mile = (
        Said(
            Statement(ADA, "likes", None, Value("number", "5", unit), "+"), None, None, (Span(0, 0, 1),), "5"
        )
        for unit in ("kilometer", "mile")
    )
    assert book.say(km) is not book.say(mile)


def test_what_rested_on_gone_text_is_ended_unless_said_again() -> None:
    over, again = (stored(n, n, -9, None, predicate="likes") for n in (2, 3))
    future = stored(4, 4, 5, None, predicate="likes")
    book = ledger(over, again, future)
    book.say(said(3, -9, predicate="likes"))
    for fact in (over, again, future):
        book.end(fact)
    assert over.window == Window(day(-9), NOW)
    assert not again.changed and future.window is None
