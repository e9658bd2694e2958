"""Ranking, abstention, packing and PageRank: what they must do whatever the weights."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import abstention, packing, ranking
from remembrancer.domain.pagerank import pagerank
from remembrancer.domain.query import understand
from remembrancer.domain.ranking import FEATURES, Candidate
from remembrancer.store import search

NOW = datetime(2026, 6, 10, tzinfo=UTC)
PLAIN = Candidate(
    passage_id=UUID(int=1),
    memory_id=UUID(int=1),
    ordinal=0,
    source_key=None,
    sequence=None,
    cosine=0.5,
    bm25=2.0,
    held=[1],
    words=10,
    asks=False,
    dated=False,
    author="Ana",
    happened=NOW,
)
QUESTION = understand("What did Ana plant?", NOW)


def turn(number: int, **changes: object) -> Candidate:
    named = {
        "passage_id": UUID(int=number),
        "memory_id": UUID(int=number),
        "sequence": number,
        "source_key": 7,
    }
    return replace(PLAIN, **{**named, **changes})


def test_neighbours_are_those_of_the_same_source_in_order() -> None:
    turns = [turn(3), turn(1), turn(2), turn(9, source_key=8), turn(5, source_key=None)]
    assert sorted(ranking.chains(turns)) == [[1, 2, 0], [3]]


def test_the_search_brings_all_neighbours_that_are_scored() -> None:
    assert search.REACH == ranking.REACH


def test_a_turn_beside_a_strong_one_scores_more() -> None:
    alone = ranking.scores(
        ranking.features(QUESTION, [turn(1, cosine=0.9), turn(50, source_key=9, cosine=0.2, bm25=0.0)])
    )
    beside = ranking.scores(ranking.features(QUESTION, [turn(1, cosine=0.9), turn(2, cosine=0.2, bm25=0.0)]))
    assert beside[1] > alone[1]


def test_the_named_author_scores_more() -> None:
    rows = ranking.features(QUESTION, [turn(1), turn(2, source_key=9, author="Ben")])
    scores = ranking.scores(rows)
    assert rows[0][FEATURES.index("author_named")] == 1.0
    assert scores[0] > scores[1]
    assert ranking.contributions(rows[0])["author_named"] > 0


def test_equals_are_ordered_by_recency_then_id() -> None:
    turns = [turn(3), turn(2), turn(1, happened=NOW + timedelta(days=1)), turn(4)]
    assert ranking.order(turns, [1.0, 1.0, 1.0, 2.0]) == [3, 2, 1, 0]


def test_no_score_is_nothing_to_divide_by() -> None:
    rows = ranking.features(QUESTION, [turn(1, cosine=-0.2, bm25=0.0, held=None)])
    assert all(value == value for value in rows[0])


def test_coverage_counts_what_is_rare_and_not_the_author() -> None:
    asked = understand("Did Ana plant tomatoes?", NOW)
    weights = abstention.word_weights(asked, [3, 1, 0], 100, ["Ana"])
    assert weights[0] == 0.0 and weights[2] > weights[1] > 0
    both = abstention.coverage(
        asked, [turn(1, held=[1, 1, 0]), turn(2, held=None, author=None)], [3, 1, 0], 100
    ).shares
    assert 0 < both[0] < 1 and both[1] == 0.0


def test_features_know_who_said_what() -> None:
    asked = understand("What did Ana plant?", NOW)
    own = [turn(1, held=[1, 1]), turn(2, author="Ben", held=[0, 0], cosine=0.1)]
    swapped = [turn(1, held=[0, 0], cosine=0.1), turn(2, author="Ben", held=[1, 1])]
    margins = []
    for turns in (own, swapped):
        covering = abstention.coverage(asked, turns, [2, 2], 50)
        found = abstention.answer_features(asked, turns, [1.0, 0.5], [2, 2], covering)
        margins.append(found["named_coverage_margin"])
    assert margins[0] > 0 > margins[1]


@given(st.floats(0, 1), st.floats(-50, 50), st.integers(1, 100), st.floats(-1, 1), st.floats(0, 1))
def test_relevance_is_a_probability(
    answer: float, behind: float, rank: int, cosine: float, coverage: float
) -> None:
    value = abstention.hit_probability(abstention.hit_features(answer, behind, rank, cosine, coverage))
    assert 0 <= value <= 1


def test_near_duplicates_go_but_never_another_number_or_author() -> None:
    texts = [
        "The project budget is 40000 dollars this year.",
        "The project budget is  40000 dollars this year!",
        "The project budget is 55000 dollars this year.",
        "The project budget is 40000 dollars this year.",
    ]
    assert packing.distinct(texts, ["A", "A", "A", "B"], 9) == [0, 2, 3]
    assert packing.distinct(texts, ["A", "A", "A", "B"], 2) == [0, 2]


LONG = "der große Umzug der ganzen Abteilung in das neue Haus am alten Hafen von {} mit allen Kisten und Schränken"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The deploy is allowed on Fridays.", "The deploy is not allowed on Fridays."),
        ("The deploy can start.", "The deploy can't start."),
        ("Der Zug ist pünktlich.", "Der Zug ist nicht pünktlich."),
        ("Le train est à l'heure.", "Le train n'est jamais à l'heure."),
        ("El tren llega tarde.", "El tren nunca llega tarde."),
        ("Поезд приходит вовремя.", "Поезд не приходит вовремя."),
        (LONG.format("Hamburg"), LONG.format("Bremen")),
        (LONG.format("Hamburg"), LONG.format("einer Stadt")),
    ],
)
def test_what_says_something_else_is_no_near_duplicate(one: str, other: str) -> None:
    assert packing.distinct([one, other], [None, None], 9) == [0, 1]
    assert packing.distinct([other, one], [None, None], 9) == [0, 1]


def test_the_same_in_another_order_or_form_is_a_near_duplicate() -> None:
    texts = [
        "Yesterday we planted tomatoes.",
        "We planted tomatoes yesterday!",
        "we  PLANTED tomatoes, yesterday",
    ]
    assert packing.distinct(texts[:2], [None, None], 9) == [0]
    assert packing.distinct(["It isn't safe.", "It is not safe."], [None, None], 9) == [0]


@given(st.lists(st.integers(0, 500), max_size=30), st.integers(0, 1_000))
def test_packing_keeps_order_and_budget(sizes: list[int], budget: int) -> None:
    chosen, used = packing.pack(sizes, budget)
    assert chosen == sorted(chosen) and used == sum(sizes[i] for i in chosen) <= budget
    assert packing.pack(sizes, None)[0] == list(range(len(sizes)))


def test_pagerank_sums_to_one_and_damps_hubs() -> None:
    spokes = [("hub", f"spoke{n}") for n in range(50)]
    ranks = pagerank([("seed", "hub"), ("seed", "friend"), *spokes], ["seed"])
    assert abs(sum(ranks.values()) - 1) < 1e-9
    assert ranks["friend"] > max(ranks[f"spoke{n}"] for n in range(50))
    through_hub = ranks["spoke1"]
    assert through_hub < ranks["friend"] / 20
    assert pagerank([], ["alone"]) == {"alone": 1.0}
