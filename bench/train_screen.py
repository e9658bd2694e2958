"""Train layer 2 of the screen: `python bench/train_screen.py --data DIR` writes the committed weights.

The head that is shipped is trained on every row; five more, each without one fold, give the figures that
bench/gate.py prints (`screen_folds.json`). Deterministic: seeded, folds by hash. Sentence vectors
are cached in .cache/screen, since computing them is nearly all of the work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # sums in one order, so that the bytes are the same

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench.screen_corpus import FOLDS, Row, load  # noqa: E402
from bench.screen_fit import Example, calibrate, train  # noqa: E402
from layers.model.build import ensure  # noqa: E402
from remembrancer.adapters.embedding import OnnxEmbedder  # noqa: E402
from remembrancer.adapters.screen_model import WEIGHTS, fitting  # noqa: E402
from remembrancer.domain.classifier import Head, features, lexical, pack, windows  # noqa: E402
from remembrancer.domain.screen_thresholds import QUARANTINE_AT, REJECT_AT  # noqa: E402

DOMAIN = ROOT / "layers" / "core" / "python" / "remembrancer" / "domain"
FOLD_HEADS = Path(__file__).with_name("screen_folds.json")
TRAINING_WINDOWS = 12
"""Windows of one text that train: long jailbreaks repeat themselves."""
CHUNK = 512
OPERATING_POINTS = ((0.3, QUARANTINE_AT), (3.3, REJECT_AT))
"""Calibrated log-odds, out of fold, and the score that the settings' thresholds expect there: read off the
curve of bench/gate.py so that ordinary conversation and preferences stay under the line."""


class VectorCache:
    """Sentence vectors by text, kept in one file a vector space."""

    def __init__(self, embedder: OnnxEmbedder, folder: Path) -> None:
        self._embedder = embedder
        self._path = folder / f"{embedder.contract}.npz"
        self._known: dict[bytes, NDArray[np.float32]] = {}
        if self._path.is_file():
            with np.load(self._path) as stored:
                self._known = dict(zip(map(bytes, stored["keys"]), stored["vectors"], strict=True))

    def add(self, texts: Sequence[str]) -> None:
        """Compute what is missing, saving now and then."""
        missing = [text for text in dict.fromkeys(texts) if _key(text) not in self._known]
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            self._known |= zip(map(_key, chunk), self._embedder.embed(chunk), strict=True)
            print(f"embedded {start + len(chunk)} of {len(missing)}", file=sys.stderr, flush=True)
            if start % (8 * CHUNK) == 0 or start + CHUNK >= len(missing):
                self._save()

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._known[_key(text)] for text in texts], np.float32).reshape(len(texts), -1)

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.array([np.frombuffer(key, np.uint8) for key in self._known])
        np.savez(self._path, keys=keys, vectors=np.array(list(self._known.values())))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def examples(rows: Sequence[Row], cache: VectorCache, embedder: OnnxEmbedder) -> list[Example]:
    """Every row as the head sees it. Windows too long for the model (a hostile wall of characters) are left
    out of training; at use they are scored in parts."""
    chosen = []
    for row in rows:
        spans = [span for span in windows(row.text) if len(fitting(embedder, row.text[slice(*span)])) == 1]
        chosen.append(spans if row.span is not None else spans[:TRAINING_WINDOWS])
    cache.add([row.text[a:b] for row, spans in zip(rows, chosen, strict=True) for a, b in spans])
    made = []
    for row, spans in zip(rows, chosen, strict=True):
        texts = [row.text[a:b] for a, b in spans]
        x = features(cache.vectors(texts), np.array([lexical(text) for text in texts]))
        made.append(Example(x, spans, row.attack, row.source, row.span))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Train layer 2 of the screen.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--out", type=Path, default=DOMAIN / WEIGHTS)
    parser.add_argument("--folds-out", type=Path, default=FOLD_HEADS)
    arguments = parser.parse_args()
    embedder = OnnxEmbedder(ensure(), threads=2)
    cache = VectorCache(embedder, ROOT / ".cache" / "screen")
    rows = [row for row in load(arguments.data) if row.fold is not None]
    made = examples(rows, cache, embedder)
    heads = []
    logits = np.zeros(len(rows))
    for fold in range(FOLDS):
        head = train([example for row, example in zip(rows, made, strict=True) if row.fold != fold])
        heads.append(head)
        own = Head("fold", embedder.contract, head.inner, head.outer)
        for index, (row, example) in enumerate(zip(rows, made, strict=True)):
            if row.fold == fold:
                logits[index] = own.logits(example.features).max(initial=-20.0)
        print(f"trained without fold {fold}", file=sys.stderr, flush=True)
    attacks = np.array([row.attack for row in rows])
    slope, shift = calibrate(logits, attacks, [row.source for row in rows])
    print(f"calibrated: slope {slope:.3f}, shift {shift:.3f}", file=sys.stderr)
    (low, low_score), (high, high_score) = OPERATING_POINTS
    stretch = (_log_odds(high_score) - _log_odds(low_score)) / (high - low)
    slope, shift = slope * stretch, _log_odds(low_score) + (shift - low) * stretch
    scaled = [head.scaled(slope, shift) for head in (*heads, train(made))]
    *folds, weights = [pack(head.inner, head.outer) for head in scaled]
    arguments.folds_out.write_text(json.dumps(folds, indent=0) + "\n")
    digest = hashlib.sha256(weights.encode()).hexdigest()[:8]
    described = {"model_id": f"screen-2-{digest}", "contract": embedder.contract, "weights": weights}
    arguments.out.write_text(json.dumps(described) + "\n")
    print(f"{described['model_id']}: {len(rows)} texts, {sum(row.attack for row in rows)} attacks")


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))


if __name__ == "__main__":
    main()
