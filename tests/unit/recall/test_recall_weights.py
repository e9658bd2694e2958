"""The committed weights are what the fit writes, for the features that there are; how the threshold is set."""

from __future__ import annotations

import random

from bench.fit_recall import ALLOWED, WEIGHTS, Fold, loss, operating_point, written
from remembrancer.domain import abstention, ranking, recall_weights

NAMES = ("RANKING", "ANSWER", "HIT", "TYPICAL", "THRESHOLD")


def test_the_file_is_exactly_what_the_fit_writes() -> None:
    fitted = {name: getattr(recall_weights, name) for name in NAMES}
    assert WEIGHTS.read_text(encoding="utf-8") == written(fitted)


def test_every_weight_is_of_a_feature() -> None:
    assert set(recall_weights.RANKING) | set(ranking.UNFITTED) == set(ranking.FEATURES)
    assert set(recall_weights.ANSWER) <= {"bias", *abstention.ANSWER_FEATURES}
    assert set(recall_weights.HIT) == {"bias", *abstention.HIT_FEATURES}
    assert 0 < recall_weights.THRESHOLD < 1


def _folds(seed: int, *, alike: bool) -> list[Fold]:
    """Five conversations of forty questions; when not alike, each is surer of itself than the one before."""
    rng = random.Random(seed)
    return [
        Fold(
            [rng.choice([0.0, 0.5, 1.0]) for _ in range(40)],
            [rng.random() * (1 if alike else (number + 1) / 5) for _ in range(40)],
        )
        for number in range(5)
    ]


def test_the_threshold_leaves_a_standard_error_of_room_and_no_more() -> None:
    folds = _folds(1, alike=False)
    threshold = operating_point(folds)
    assert sum(loss(folds, threshold)) <= ALLOWED
    higher = min(p for fold in folds for p in fold.probabilities if p > threshold)
    assert sum(loss(folds, higher)) > ALLOWED


def test_conversations_that_differ_leave_more_room() -> None:
    same = [Fold([1.0] * 100, [n / 100 for n in range(100)])] * 5
    # Five in a hundred are lost, everywhere the same: nothing to be unsure of.
    assert loss(same, 0.05) == (0.05, 0.0)
    assert operating_point(same) == 0.05
    one_sided = [Fold([1.0] * 100, [0.001] * 20 + [0.9] * 80), *[Fold([1.0] * 100, [0.9] * 100)] * 4]
    lost, error = loss(one_sided, 0.5)
    # The jackknife of equal parts is the standard error of their mean: spread 0.0894 over the root of five.
    assert (round(lost, 4), round(error, 4)) == (0.04, 0.04)
    assert operating_point(one_sided) == 0.001
