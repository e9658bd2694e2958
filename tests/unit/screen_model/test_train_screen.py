"""Training is deterministic: it gives the committed weights again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from bench import train_screen
from bench.screen_corpus import CORPUS
from layers.model.build import ensure
from remembrancer.adapters.embedding import OnnxEmbedder
from remembrancer.adapters.screen_model import WEIGHTS
from remembrancer.domain.classifier import Head, features, lexical, unpack

DATA = Path(os.environ.get("REMEMBRANCER_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
VECTORS = train_screen.ROOT / ".cache" / "screen"
TOLERANCE = 0.05
"""Of the length of the scores. From the same sentence vectors on the same machine the bytes are equal; another
processor's kernels round otherwise, and a network may then settle on other weights of nearly the same scores."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
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


def _alike(one: str, other: str) -> None:
    """Heads are compared by what they say of sentences of no corpus."""
    texts = [json.loads(line)["text"] for line in (CORPUS / "screen_held_out.jsonl").read_text().splitlines()]
    vectors = OnnxEmbedder(ensure(), threads=1).embed(texts)
    rows = np.concatenate([features(vectors[i : i + 1], lexical(text)[None]) for i, text in enumerate(texts)])
    first, second = (1 / (1 + np.exp(-Head("m", "c", *unpack(text)).logits(rows))) for text in (one, other))
    assert np.linalg.norm(first - second) <= TOLERANCE * np.linalg.norm(second)
