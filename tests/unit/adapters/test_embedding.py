"""The quantized model is the published one, and a vector depends on its own text only."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.adapters.embedding import RECENT, OnnxEmbedder
from remembrancer.domain.passages import MAX_TOKENS, cut, prefix, render
from remembrancer.domain.ports import EmbeddingUnavailable

KNOWN = json.loads(Path(__file__).with_name("known_vectors.json").read_text("utf-8"))
TEXTS = KNOWN["texts"]


def test_vectors_match_the_float32_reference(embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    reference = np.array(KNOWN["vectors"])
    assert np.abs(vectors[:, : reference.shape[1]] - reference).max() < 0.04
    assert np.abs(vectors @ vectors.T - np.array(KNOWN["cosines"])).max() < 0.03


def test_a_vector_does_not_depend_on_its_batch(embedder: OnnxEmbedder) -> None:
    texts = [*TEXTS, "short", "a much longer text " * 12, "", "👩\u200d👩\u200d👧 🇳🇴", "x" * 900] * 3
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.99999


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "👍", "İ", "\u202e", "a" * 100_000])
def test_hostile_texts_have_unit_vectors(embedder: OnnxEmbedder, text: str) -> None:
    vector = embedder.embed([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_rows(embedder: OnnxEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_a_text_is_never_truncated(embedder: OnnxEmbedder) -> None:
    assert embedder.embed(["word " * 254]).shape == (1, 384)
    with pytest.raises(ValueError, match="257 tokens"):
        embedder.embed(["fits", "word " * 255])


def test_every_passage_fits_the_model(embedder: OnnxEmbedder) -> None:
    author = "각" * 60
    text = "漢字仮名 한국어 word, ```py\nx[1] = {2: 3}\n" * 60 + "Ünïcödé " * 300 + "🎉" * 400
    for passage in cut(text, embedder.count_tokens, lead=prefix(author, None)):
        assert embedder.count_tokens(render(passage.text, author)) <= MAX_TOKENS


def test_count_tokens_leaves_special_tokens_out(embedder: OnnxEmbedder) -> None:
    assert embedder.count_tokens("") == 0
    assert embedder.count_tokens("The cat sat.") == 4


def test_the_contract_is_named(embedder: OnnxEmbedder) -> None:
    assert embedder.contract == KNOWN["contract"]


@pytest.mark.parametrize("lost", ["contract.json", "tokenizer.json", "model.onnx"])
@pytest.mark.parametrize("damage", ["absent", "garbage"])
def test_a_damaged_model_is_unavailable(
    embedder: OnnxEmbedder, tmp_path: Path, lost: str, damage: str
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(embedder.model_dir, copy)
    (copy / lost).unlink()
    if damage == "garbage":
        (copy / lost).write_bytes(b"{\xff")
    with pytest.raises(EmbeddingUnavailable):
        OnnxEmbedder(copy, threads=1).embed(["text"])


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_ascii_text_has_at_most_one_token_a_character(embedder: OnnxEmbedder, text: str) -> None:
    assert embedder.count_tokens(text) <= len(text)


def test_the_newest_vectors_are_remembered_and_no_more(embedder: OnnxEmbedder) -> None:
    own = OnnxEmbedder(embedder.model_dir, threads=1)
    own._recent = {bytes([n]): embedder.embed(["a"])[0] for n in range(RECENT)}
    first = own.embed(["The cat sat."])
    assert len(own._recent) == RECENT
    assert bytes([0]) not in own._recent
    assert bytes([1]) in own._recent
    own._embed = lambda texts: pytest.fail("embedded again") if texts else first[:0]  # type: ignore[method-assign]
    assert (own.embed(["The cat sat."]) == first).all()
