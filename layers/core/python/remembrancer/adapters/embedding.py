"""Sentence vectors from the ONNX model that `layers/model/build.py` makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remembrancer.domain.ports import EmbeddingUnavailable

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from remembrancer.domain.ports import Vectors

BATCH_TEXTS = 32
BATCH_TOKENS = 2048
"""Padded tokens in one run: bounds the memory, and keeps a long text from padding many short ones."""
RECENT = 256
"""Vectors kept for the next call: the screen and the index of one request embed the same short texts."""


class OnnxEmbedder:
    """Satisfies `domain.ports.Embedder`. The model is loaded at the first use: most functions never embed."""

    def __init__(self, model_dir: Path, threads: int) -> None:
        self.model_dir = model_dir
        self._threads = threads
        self._recent: dict[bytes, Vectors] = {}
        """By digest: no text outlives its request here."""

    @property
    def contract(self) -> str:
        return str(self._description["contract"])

    @property
    def max_tokens(self) -> int:
        """The longest input, the two special tokens included."""
        return int(self._description["max_tokens"])

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, special tokens not counted."""
        return len(self._tokenizer.encode(_encodable(text), add_special_tokens=False))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, shape (n, 384), in order; independent of what else is in the batch.

        Raises ValueError when a text does not fit the model, EmbeddingUnavailable when the model fails.
        """
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._recent}
        known = {key: self._recent[key] for key in keys if key in self._recent}
        known |= zip(fresh, self._embed(list(fresh.values())), strict=True)
        vectors = np.empty((len(texts), int(self._description["dimensions"])), np.float32)
        for place, key in enumerate(keys):
            vectors[place] = known[key]
        self._remember(known)
        return vectors

    def _remember(self, known: Mapping[bytes, Vectors]) -> None:
        """The newest RECENT of them all."""
        for key, vector in known.items():
            self._recent.pop(key, None)
            self._recent[key] = vector
        for key in list(islice(self._recent, max(0, len(self._recent) - RECENT))):
            del self._recent[key]

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), int(self._description["dimensions"])), np.float32)
        encodings = self._tokenizer.encode_batch([_encodable(text) for text in texts])
        longest = max((len(encoding) for encoding in encodings), default=0)
        if longest > self.max_tokens:
            raise ValueError(f"a text of {longest} tokens does not fit the model's {self.max_tokens}")
        for batch in _batches([len(encoding) for encoding in encodings]):
            vectors[batch] = self._run([encodings[index] for index in batch])
        return vectors

    def _run(self, encodings: Sequence[Encoding]) -> Vectors:
        width = max(len(encoding) for encoding in encodings)
        ids = np.zeros((len(encodings), width), np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding.ids
            mask[row, : len(encoding)] = 1
        session, failures = self._session
        try:
            vectors: Vectors = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        except failures as error:
            raise EmbeddingUnavailable("the model failed to run") from error
        if not np.isfinite(vectors).all():
            raise EmbeddingUnavailable("the model returned numbers that are not finite")
        return vectors

    @cached_property
    def _description(self) -> dict[str, Any]:
        try:
            description: dict[str, Any] = json.loads((self.model_dir / "contract.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise EmbeddingUnavailable("the model's contract.json cannot be read") from error
        return description

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_str((self.model_dir / "tokenizer.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise EmbeddingUnavailable("the model's tokenizer.json cannot be read") from error
        # Whatever the file says: a truncation would lose text, a fixed padding would slow every short one.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> tuple[Any, tuple[type[Exception], ...]]:
        """The inference session and what its runs raise: classes without a base of their own."""
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        failures = (
            state.EPFail,
            state.Fail,
            state.InvalidArgument,
            state.InvalidGraph,
            state.InvalidProtobuf,
            state.NoModel,
            state.NoSuchFile,
            state.RuntimeException,
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(
                str(self.model_dir / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except failures as error:
            raise EmbeddingUnavailable("the model cannot be loaded") from error
        return session, failures


def _encodable(text: str) -> str:
    """The tokenizer takes no lone surrogates; they become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indexes of texts of similar length, at most BATCH_TEXTS texts and BATCH_TOKENS padded tokens each."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == BATCH_TEXTS or (len(batch) + 1) * lengths[index] > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
