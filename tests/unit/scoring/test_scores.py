"""The scores are the formulas of the specification, and every part of them is reported."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.scoring import confidence, novelty, salience

A = UUID("018f0000-0000-7000-8000-00000000000a")
B = UUID("018f0000-0000-7000-8000-00000000000b")


def test_novelty_without_memories_is_one() -> None:
    assert novelty(None, None).to_dict() == {
        "value": 1.0,
        "nearest_memory_id": None,
        "nearest_cosine": None,
        "exact_duplicate": False,
    }


def test_novelty_names_the_nearest_memory() -> None:
    score = novelty((A, 0.75), None)
    assert (score.value, score.nearest_memory_id, score.nearest_cosine) == (0.25, A, 0.75)


def test_an_exact_duplicate_is_not_novel_whatever_is_nearest() -> None:
    score = novelty((A, 0.2), B)
    assert (score.value, score.nearest_memory_id, score.exact_duplicate) == (0.0, B, True)


@pytest.mark.parametrize("cosine", [float("nan"), float("inf"), float("-inf")])
def test_novelty_refuses_a_broken_cosine(cosine: float) -> None:
    with pytest.raises(ValueError, match="cosine"):
        novelty((A, cosine), None)


@given(st.floats(-1.5, 1.5))
def test_novelty_stays_within_its_range(cosine: float) -> None:
    assert 0.0 <= novelty((A, cosine), None).value <= 1.0


@pytest.mark.parametrize(
    ("length", "entities", "value", "band"),
    [
        (0, 0, 0.1, "short"),
        (23, 200, 0.1, "short"),
        (24, 0, 0.1, "normal"),
        (24, 1, 0.15, "normal"),
        (24, 8, 0.5, "normal"),
        (24, 200, 0.5, "normal"),
        (1512, 0, 0.35, "normal"),
        (3000, 0, 0.6, "normal"),
        (3000, 8, 1.0, "normal"),
        (3001, 0, 0.3, "long"),
        (1_000_000, 200, 0.3, "long"),
    ],
)
def test_salience_follows_the_bands(length: int, entities: int, value: float, band: str) -> None:
    score = salience("x" * length, entities)
    assert score.value == pytest.approx(value)
    assert (score.band, score.characters, score.entity_count) == (band, length, entities)


def test_salience_counts_trimmed_code_points() -> None:
    assert salience("  \n" + "é" * 23 + " " * 4000, 0).band == "short"
    assert salience("\U0001f600" * 24, 0).band == "normal"


def test_salience_refuses_a_negative_count() -> None:
    with pytest.raises(ValueError, match="negative"):
        salience("text", -1)


@given(st.integers(24, 2999), st.integers(0, 20))
def test_a_longer_fact_with_more_entities_never_scores_lower(length: int, entities: int) -> None:
    base = salience("x" * length, entities).value
    assert base >= salience("x" * 23, entities).value
    assert salience("x" * (length + 1), entities).value >= base
    assert salience("x" * length, entities + 1).value >= base


@pytest.mark.parametrize(
    ("source", "conflict", "kind", "value", "names"),
    [
        ("manual", False, "stated", 1.0, []),
        ("connector:slack", False, "stated", 0.9, ["connector_source"]),
        ("structured", True, "stated", 0.8, ["conflict_present"]),
        ("agent_end", False, "inferred", 0.9, ["inferred_assertion"]),
        (
            "connector:slack",
            True,
            "inferred",
            0.648,
            ["connector_source", "conflict_present", "inferred_assertion"],
        ),
        ("disconnector:x", False, "stated", 1.0, []),
        ("markdown-connector", False, "stated", 1.0, []),
        ("connector:", False, "stated", 1.0, []),
        ("connector", False, "stated", 1.0, []),
    ],
)
def test_confidence_lists_every_factor(
    source: str, conflict: bool, kind: str, value: float, names: list[str]
) -> None:
    score = confidence(source, conflict, kind)
    assert score.value == value
    assert [factor.name for factor in score.factors] == names
    assert all(factor.reason for factor in score.factors)


def test_confidence_refuses_an_unknown_assertion_kind() -> None:
    with pytest.raises(ValueError, match="assertion_kind"):
        confidence("manual", False, "guessed")


def test_every_score_is_json() -> None:
    parts = [novelty((A, 0.5), B), salience("x" * 30, 2), confidence("connector:a", True, "inferred")]
    assert (
        json.loads(json.dumps([part.to_dict() for part in parts]))[0]["nearest_memory_id"] == f"mem_{B.hex}"
    )
