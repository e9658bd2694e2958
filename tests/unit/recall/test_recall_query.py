"""What a query asks for, read from its words alone."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.periods import EventBound, Period, event_bound, find_periods
from remembrancer.domain.query import mentions, name_candidates, understand

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def test_phrases_must_match_and_words_are_left_out() -> None:
    asked = understand('budget "quarterly report" -draft', NOW)
    assert asked.text == "budget quarterly report"
    assert ("quarter", "report") in [form.terms for form in asked.phrases[0]]
    assert "draft" in asked.excluded
    assert [w.word for w in asked.words] == ["budget", "quarterly", "report"]


@pytest.mark.parametrize("query", ["well-known facts", "minus -5 degrees", "a - b", "dash - item"])
def test_a_hyphen_is_no_exclusion(query: str) -> None:
    assert understand(query, NOW).excluded == ()


@pytest.mark.parametrize(
    "query", ["-draft", '""', "- \" ' : * ( ) \\ % _ & | ! <->", "🦑", "the of", "\u202eabc", '"a', "-"]
)
def test_marks_alone_are_a_query_like_any_other(query: str) -> None:
    asked = understand(query, NOW)
    assert asked.text
    assert asked.phrases == ()


def test_an_exclusion_with_nothing_beside_it_is_searched_for() -> None:
    asked = understand("-draft", NOW)
    assert asked.excluded == () and [w.word for w in asked.words] == ["draft"]


@pytest.mark.parametrize("query", ['vases -"blue tulip"', "vases -“blue tulip”"])
def test_a_phrase_is_left_out_as_a_whole(query: str) -> None:
    asked = understand(query, NOW)
    assert (asked.excluded, asked.phrases) == ((), ())
    assert asked.excluded_phrases[0].terms == ("blue", "tulip")
    assert understand('-"blue tulip"', NOW).excluded_phrases == ()


def test_a_run_without_spaces_is_left_out_as_a_whole() -> None:
    asked = understand("vases -東京都", NOW)
    assert (asked.excluded, [form.terms for form in asked.excluded_phrases]) == ((), [("東京", "京都")])


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("fooBar", ("foobar",)),
        ("foo_bar", ("foo_bar",)),
        ("well-known", ("well-known",)),
        ("cache.py", ("cache.py",)),
        ("HTTPServer.close", ("httpserver.close",)),
    ],
)
def test_an_identifier_is_left_out_as_a_whole(word: str, terms: tuple[str, ...]) -> None:
    asked = understand(f"parser -{word}", NOW)
    assert asked.excluded == terms
    assert [w.word for w in asked.words] == ["parser"]


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("foo__bar", ("foo", "bar")),
        ("std::vector", ("std", "vector")),
        ("https://example.com/a?b=c", ("https", "exampl", "com", "a", "b", "c")),
        ("乌龙", ("乌龙",)),
    ],
)
def test_what_is_several_words_is_left_out_as_a_phrase(word: str, terms: tuple[str, ...]) -> None:
    asked = understand(f"parser -{word}", NOW)
    assert asked.excluded == () and terms in [form.terms for form in asked.excluded_phrases]
    assert [w.word for w in asked.words] == ["parser"]


def test_a_hyphen_inside_a_phrase_leaves_nothing_out() -> None:
    asked = understand('"gcc -Wall" -draft', NOW)
    assert asked.excluded and "wall" not in asked.excluded
    assert ("gcc", "wall") in [form.terms for form in asked.phrases[0]]


def test_composed_and_decomposed_letters_ask_the_same() -> None:
    query = 'José said "naïve idea" -Müll'
    assert understand(unicodedata.normalize("NFD", query), NOW) == understand(query, NOW)


@pytest.mark.parametrize(
    "query",
    [
        '记得"蓝色花瓶"吗',
        "记得“蓝色花瓶”吗",
        "「蓝色花瓶」はどこ",
        "『蓝色花瓶』",
        "记得＂蓝色花瓶＂吗",
        '"蓝色花瓶"',
    ],
)
def test_a_phrase_needs_no_spaces_around_it_where_none_are_written(query: str) -> None:
    [[form]] = understand(query, NOW).phrases
    assert form.terms == ("蓝色", "色花", "花瓶")


@pytest.mark.parametrize("query", ['a 5" pipe and a 6" pipe', 'x"y z"w'])
def test_marks_inside_words_quote_nothing(query: str) -> None:
    assert understand(query, NOW).phrases == ()


def test_a_name_inside_an_unspaced_run_is_named() -> None:
    asked = understand("王芳昨天喝了什么", NOW).name_words
    assert mentions(asked, "王芳") and not mentions(asked, "李明")
    assert not mentions(understand("What did Caroline eat?", NOW).name_words, "Carol")


def test_names_are_capitalised_words_unless_nothing_is() -> None:
    assert mentions(understand("What did Caroline's dog eat?", NOW).name_words, "Caroline Smith")
    assert mentions(understand("what did caroline eat", NOW).name_words, "Caroline")
    assert not mentions(understand("Who will go there?", NOW).name_words, "Will")
    assert not mentions(understand("What did Mel eat?", NOW).name_words, None)


def test_runs_of_words_may_be_entities() -> None:
    assert {"globex", "globex corp", "ana"} <= set(name_candidates("Does Ana's team at Globex Corp know?"))


def test_when_questions() -> None:
    assert understand("When did it start?", NOW).asks_when
    assert not understand("Tell me when it starts", NOW).asks_when


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What happened last May?", Period(day(2026, 5, 1), day(2026, 6, 1))),
        ("What happened last July?", Period(day(2025, 7, 1), day(2025, 8, 1))),
        ("the plan of last December", Period(day(2025, 12, 1), day(2026, 1, 1))),
        ("What did we do yesterday?", Period(day(2026, 6, 9), day(2026, 6, 10))),
        ("meetings last week", Period(day(2026, 6, 1), day(2026, 6, 8))),
        ("in 2023", Period(day(2023, 1, 1), day(2024, 1, 1))),
        ("before 7 May 2023", Period(None, day(2023, 5, 7))),
        ("since May 2023", Period(day(2023, 5, 1), None)),
        ("last summer", Period(day(2025, 6, 1), day(2025, 9, 1))),
        ("three days ago", Period(day(2026, 6, 7), day(2026, 6, 8))),
    ],
)
def test_periods(query: str, expected: Period) -> None:
    assert find_periods(query, NOW) == [expected]


def test_what_names_no_time_has_no_period() -> None:
    assert find_periods("may I ask about room 2023", NOW) == []


def test_an_event_bounds_the_time() -> None:
    bound = event_bound("Where did she live before the move to Lisbon?")
    assert bound is not None and bound.before and bound.event == "the move to Lisbon"
    assert event_bound("before 2020") is None
    assert event_bound("since starting at Globex") == EventBound(False, "starting at Globex")
    assert event_bound("prior to the launch, who led?") == EventBound(True, "the launch")
    assert event_bound("What happened after Maria's wedding?") == EventBound(False, "Maria's wedding")
    assert event_bound("before noon") is None


@given(st.text(max_size=400))
def test_no_query_is_an_error(query: str) -> None:
    asked = understand(query, NOW)
    assert len(asked.words) <= 48
    assert asked.text or not query


def test_a_period_long_ago_does_not_overflow() -> None:
    assert find_periods("999 years ago", datetime(500, 1, 1, tzinfo=UTC)) == []
