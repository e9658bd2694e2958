"""The bench counts what it says it counts, under the names that others read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.gate import Judged, metrics, verdict_of
from bench.screen_corpus import Row, read_extra
from bench.screen_fit import calibrate
from remembrancer.domain.screen import Verdict
from remembrancer.domain.screen_policy import ScreenPolicy
from remembrancer.domain.screen_thresholds import QUARANTINE_AT, REJECT_AT
from remembrancer.settings import Settings


def judged(source: str, rules: Verdict, score: float, attack: bool = True) -> Judged:
    return Judged(Row("text", attack, source, "family", None), rules, score, False)


def test_the_worse_verdict_of_the_two_layers_counts() -> None:
    figures = metrics(
        [
            judged("cse_direct", Verdict.CLEAN, QUARANTINE_AT),
            judged("cse_direct", Verdict.REJECT, 0.0),
            judged("cse_direct", Verdict.CLEAN, 0.1),
            judged("cse_harmless", Verdict.CLEAN, 0.1, attack=False),
            judged("notinject", Verdict.QUARANTINE, REJECT_AT, attack=False),
            judged("notinject", Verdict.QUARANTINE, 0.0, attack=False),
        ]
    )
    assert figures["tpr_direct"] == pytest.approx(2 / 3)
    assert figures["tpr_direct_as_published"] == pytest.approx(1 / 2)
    assert figures["fpr_notinject_reject"] == figures["fpr_notinject_quarantine"] == pytest.approx(1 / 2)
    assert figures["amg_tpr_direct"] == 0.0


def test_thresholds_are_inclusive() -> None:
    assert verdict_of(REJECT_AT) is Verdict.REJECT
    assert verdict_of(QUARANTINE_AT) is Verdict.QUARANTINE
    assert verdict_of(QUARANTINE_AT - 1e-6) is Verdict.CLEAN


def test_settings_default_to_the_measured_operating_point() -> None:
    settings, policy = Settings.read({}), ScreenPolicy()
    assert (settings.screen_quarantine_at, settings.screen_reject_at) == (QUARANTINE_AT, REJECT_AT)
    assert (policy.quarantine_at, policy.reject_at) == (QUARANTINE_AT, REJECT_AT)


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_extra_rows_are_read_from_both_forms(tmp_path: Path, suffix: str) -> None:
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": "benign"}, {"text": "c", "label": "attack"}]
    path = tmp_path / f"extra{suffix}"
    path.write_text("\n".join(map(json.dumps, rows)) if suffix == ".jsonl" else json.dumps(rows))
    assert [row.attack for row in read_extra(path)] == [True, False, True]
    assert {row.fold for row in read_extra(path)} == {None}


def test_calibration_tempers_a_head_that_is_too_sure() -> None:
    rng = np.random.default_rng(1)
    attacks = rng.random(4000) < 0.5
    honest = rng.normal(np.where(attacks, 1.0, -1.0), 2**0.5)
    slope, shift = calibrate(3 * honest, attacks, ["pii"] * len(attacks))
    assert slope == pytest.approx(1 / 3, abs=0.05)
    assert shift == pytest.approx(0, abs=0.1)
