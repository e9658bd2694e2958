"""Layer 2 of the screen on the embedding model: the committed head over the vectors of a text's windows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from importlib import resources

import numpy as np

from remembrancer.domain.classifier import LEXICAL, Head, choose, lexical, limit
from remembrancer.domain.passages import MAX_TOKENS, cut, surely_fits
from remembrancer.domain.ports import ClassifierUnavailable, Embedder, EmbeddingUnavailable

WEIGHTS = "screen_weights.json"


class LearnedScreen:
    """Satisfies `domain.ports.ScreenModel`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def model_id(self) -> str:
        """Name of the weights. Raises ClassifierUnavailable when they cannot be read."""
        return self._head.model_id

    def score(self, text: str) -> float:
        """Probability 0..1 that the text is an attack: the maximum over its windows; 0 for a blank text.

        Raises ClassifierUnavailable.
        """
        return self.scores([text])[0]

    def scores(self, texts: Sequence[str]) -> list[float]:
        """`score` of every text of one request, in one batch and within one budget of windows."""
        return self.scores_each([texts])[0]

    def scores_each(self, requests: Sequence[Sequence[str]]) -> list[list[float]]:
        """`scores` of several requests, each within a budget of its own, in one batch."""
        head = self._head
        try:
            chosen = [self._chosen(texts) for texts in requests]
            vectors = self._embedder.embed(
                [window for own in chosen for windows in own for window in windows]
            )
        except EmbeddingUnavailable as error:
            raise ClassifierUnavailable("the embedding model cannot answer") from error
        found: list[list[float]] = []
        start = 0
        for own in chosen:
            scores = []
            for windows in own:
                end = start + len(windows)
                scores.append(head.score(vectors[start:end], _counts(windows)))
                start = end
            found.append(scores)
        return found

    def _chosen(self, texts: Sequence[str]) -> list[list[str]]:
        return limit(
            [
                [part for window in windows for part in fitting(self._embedder, window)]
                for windows in choose(texts)
            ]
        )

    @cached_property
    def _head(self) -> Head:
        source = resources.files("remembrancer.domain") / WEIGHTS
        try:
            head = Head.from_dict(json.loads(source.read_text("utf-8")))
            contract = self._embedder.contract
        except (OSError, ValueError, KeyError, TypeError, EmbeddingUnavailable) as error:
            raise ClassifierUnavailable("the weights cannot be read") from error
        if head.contract != contract:
            raise ClassifierUnavailable(f"the weights belong to the vector space {head.contract}")
        return head


def fitting(embedder: Embedder, window: str) -> list[str]:
    """The window, or its parts when it is too long for the model."""
    if surely_fits(window) or embedder.count_tokens(window) <= MAX_TOKENS:
        return [window]
    room = len(window.encode("utf-8", "surrogatepass"))
    return [part.text for part in cut(window, embedder.count_tokens, max_bytes=room)]


def _counts(windows: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([lexical(window) for window in windows], np.float32).reshape(len(windows), len(LEXICAL))
