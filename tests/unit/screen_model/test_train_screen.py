"""Training is deterministic: it gives the committed weights again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from bench import train_screen
from remembrancer.adapters.screen_model import WEIGHTS

DATA = Path(os.environ.get("REMEMBRANCER_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
VECTORS = train_screen.ROOT / ".cache" / "screen"
TOLERANCE = 0.02
"""Of the length of the weights. From the same sentence vectors the bytes are equal; another processor's integer
kernels give slightly other vectors, for which this leaves room."""


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="public corpora are not here (REMEMBRANCER_DATA)")
@pytest.mark.skipif(not VECTORS.is_dir(), reason="no cached sentence vectors: run bench/train_screen.py once")
def test_training_gives_the_committed_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, folds = tmp_path / "weights.json", tmp_path / "folds.json"
    arguments = ["train_screen", "--data", str(DATA), "--out", str(made), "--folds-out", str(folds)]
    monkeypatch.setattr("sys.argv", arguments)
    train_screen.main()
    committed = json.loads((train_screen.DOMAIN / WEIGHTS).read_text())
    again = json.loads(made.read_text())
    assert again["contract"] == committed["contract"]
    _alike(again["weights"], committed["weights"])
    for one, other in zip(
        json.loads(folds.read_text()), json.loads(train_screen.FOLD_HEADS.read_text()), strict=True
    ):
        _alike(one, other)


def _alike(one: list[float], other: list[float]) -> None:
    assert np.linalg.norm(np.subtract(one, other)) <= TOLERANCE * np.linalg.norm(other)
