"""The floor of semantic duplicates on the model it was chosen for (bench/corpus/conflicts.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from remembrancer.domain.remember_limits import DUPLICATE_FLOOR

CORPUS = Path(__file__).parents[3] / "bench/corpus/conflicts.jsonl"


def test_paraphrases_are_offered_and_unrelated_texts_are_not(embedder: Any) -> None:
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines() if line.strip()]
    stored = embedder.embed([row["memory"]["text"] for row in rows])
    sent = embedder.embed([row["candidate"]["text"] for row in rows])
    near = (stored * sent).sum(axis=1) >= DUPLICATE_FLOOR
    paraphrased = np.array([row["kind"] == "paraphrase" for row in rows])
    assert paraphrased.sum() >= 50 and near[paraphrased].mean() >= 0.95
    shuffled = np.random.default_rng(0).permutation(len(rows))
    unrelated = (stored * sent[shuffled]).sum(axis=1) >= DUPLICATE_FLOOR
    assert unrelated.mean() <= 0.01
