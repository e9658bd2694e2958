"""Correction, succession and placement keep the past readable on both axes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.time_rules import Version, Window, correction, place, succession, visible_at


def year(number):
    return datetime(number, 1, 1, tzinfo=UTC)


TICK = timedelta(microseconds=1)
YEARS = list(range(2000, 2031))
BOUNDS = st.none() | st.sampled_from(YEARS).map(year)


@st.composite
def windows(draw, start=BOUNDS):
    first, last = draw(start), draw(BOUNDS)
    if first is not None and last is not None and first >= last:
        last = None
    return Window(first, last)


def covers(window):
    """The years and half years that a window contains, as a set: the slow truth."""
    instants = [year(n) for n in range(1999, 2032)] + [
        year(n) - timedelta(days=180) for n in range(1999, 2032)
    ]
    return {instant for instant in instants if window.contains(instant)}


def test_acme_and_globex():
    learned, decided = year(2020), year(2024) + timedelta(days=40)
    acme = Version(Window(year(2019)), learned)
    change = succession(acme, Window(year(2024)), decided)
    history = {"Acme": [change.retired, change.past], "Globex": [change.successor]}

    def answer(at, known_at=None):
        return [name for name, rows in history.items() if any(visible_at(row, at, known_at) for row in rows)]

    assert answer(at=year(2020)) == ["Acme"]
    assert answer(at=year(2025)) == ["Globex"]
    assert answer(at=year(2020), known_at=decided - TICK) == ["Acme"]
    assert answer(at=year(2025), known_at=decided - TICK) == ["Acme"]
    assert answer(at=year(2025), known_at=decided) == ["Globex"]
    assert answer(at=year(2024)) == ["Globex"]
    assert answer(at=year(2024) - TICK) == ["Acme"]
    assert answer(at=year(2018)) == []
    assert answer(at=year(2020), known_at=learned - TICK) == []


def test_an_undated_successor_starts_at_the_decision():
    change = succession(Version(Window(), year(2020)), Window(), year(2024))
    assert change.successor.window == Window(year(2024))
    assert change.past is not None
    assert change.past.window == Window(None, year(2024))


def test_a_fact_without_a_past_leaves_none():
    change = succession(Version(Window(year(2024)), year(2024)), Window(year(2024)), year(2025))
    assert change.past is None
    assert change.retired.superseded_at == year(2025)


def test_a_past_that_was_over_before_the_change_stays_as_it_was():
    change = succession(Version(Window(year(2010), year(2015)), year(2011)), Window(year(2024)), year(2025))
    assert change.past is not None
    assert change.past.window == Window(year(2010), year(2015))


def test_a_correction_keeps_the_error_in_the_past():
    wrong = Version(Window(year(2019)), year(2020))
    retired, right = correction(wrong, Window(year(2018)), year(2021))
    assert not visible_at(retired, year(2019))
    assert visible_at(retired, year(2019), known_at=year(2021) - TICK)
    assert visible_at(right, year(2018))
    assert not visible_at(right, year(2018), known_at=year(2021) - TICK)
    assert retired.window == wrong.window


def test_what_is_no_current_belief_cannot_be_superseded():
    gone = Version(Window(), year(2020), superseded_at=year(2021))
    with pytest.raises(ValueError, match="current belief"):
        succession(gone, Window(), year(2022))
    with pytest.raises(ValueError, match="current belief"):
        correction(gone, Window(), year(2022))


def test_windows_are_never_empty():
    with pytest.raises(ValueError, match="empty"):
        Window(year(2020), year(2020))
    with pytest.raises(ValueError, match="empty"):
        succession(Version(Window(), year(2020)), Window(None, year(2021)), year(2022))


@given(windows(), windows())
def test_overlap_is_a_common_instant(left, right):
    assert left.overlaps(right) == right.overlaps(left) == bool(covers(left) & covers(right))


@given(windows(), st.sampled_from(YEARS).map(year))
def test_the_part_before_an_instant(window, instant):
    part = window.before(instant)
    expected = {moment for moment in covers(window) if moment < instant}
    assert (set() if part is None else covers(part)) == expected


@given(windows(), windows(), st.sampled_from(YEARS).map(year), st.sampled_from(YEARS).map(year))
def test_a_succession_never_changes_what_was_known_before(old_window, new, decided, at):
    old = Version(old_window, decided - timedelta(days=1))
    if new.end is not None and new.start is None and new.end <= decided:
        return
    change = succession(old, new, decided)
    before = decided - TICK
    believed = [row for row in (change.retired, change.past, change.successor) if row]
    assert [row for row in believed if visible_at(row, at, before)] == (
        [change.retired] if old_window.contains(at) else []
    )
    # And now at most one of the two facts holds at any instant.
    assert sum(visible_at(row, at) for row in believed) <= 1


def arrive(current, name, window):
    """`current` (name -> window) after one more fact, by the rules under test."""
    placed = place(window, list(current.values()))
    succeeded = [list(current)[index] for index in placed.succeeds]
    result = {}
    for other, held in current.items():
        if other not in succeeded:
            result[other] = held
        elif (past := held.before(placed.window.start)) is not None:
            result[other] = past
    return result | {name: placed.window}


STARTS = st.lists(st.sampled_from(YEARS), min_size=1, max_size=8)


@given(STARTS)
def test_arrivals_in_any_order_give_the_latest_start_not_after_the_instant(starts):
    current = {}
    for name, start in enumerate(starts):
        current = arrive(current, name, Window(year(start)))
    for instant in covers(Window()):
        begun = [(start, name) for name, start in enumerate(starts) if year(start) <= instant]
        # Of two facts with one start the later arrival holds.
        expected = [max(begun)[1]] if begun else []
        assert [name for name, window in current.items() if window.contains(instant)] == expected


@given(st.lists(windows(start=st.sampled_from(YEARS).map(year)), min_size=1, max_size=8))
def test_facts_of_cardinality_one_never_overlap(arrivals):
    current = {}
    for name, window in enumerate(arrivals):
        current = arrive(current, name, window)
        held = list(current.values())
        assert not any(a.overlaps(b) for i, a in enumerate(held) for b in held[:i])


def test_a_late_arrival_is_closed_and_retires_nothing():
    placed = place(Window(year(2019)), [Window(year(2024))])
    assert placed.window == Window(year(2019), year(2024))
    assert placed.succeeds == ()


def test_disjoint_windows_coexist():
    placed = place(Window(year(2010), year(2012)), [Window(year(2005), year(2010)), Window(year(2012))])
    assert placed.window == Window(year(2010), year(2012))
    assert placed.succeeds == ()


def test_an_undated_fact_cannot_be_placed():
    with pytest.raises(ValueError, match="start"):
        place(Window(None, year(2020)), [])
