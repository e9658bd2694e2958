"""The committed weights are what the fit writes, for the features that there are."""

from __future__ import annotations

from bench.fit_recall import WEIGHTS, written
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
