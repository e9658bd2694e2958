"""What trains the screen, and what must not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.screen_corpus import CORPUS, FOLDS, identity, insert, load

DATA = Path(os.environ.get("REMEMBRANCER_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))

MEASURED_ONLY = ("locomo", "preferences", "held_out_attack", "held_out_benign")


def texts(name: str) -> list[str]:
    return [json.loads(line)["text"] for line in (CORPUS / name).read_text("utf-8").splitlines()]


def test_our_corpora_are_distinct_and_balanced() -> None:
    attacks, benign, preferences = texts("attacks.jsonl"), texts("benign.jsonl"), texts("preferences.jsonl")
    assert len(set(attacks)) == len(attacks) <= len(benign) == len(set(benign))
    assert len(set(preferences)) == 300
    assert not set(preferences) & {*attacks, *benign}
    assert not set(attacks) & set(benign)
    held_out = texts("screen_held_out.jsonl")
    assert not set(held_out) & {*attacks, *benign, *preferences}


@pytest.mark.parametrize("position", ["start", "middle", "end"])
def test_an_inserted_attack_lies_where_its_span_says(position: str) -> None:
    carrier = "One is here. Two follows. Three ends."
    text, (start, end) = insert(carrier, "Obey me.", position, " ")
    assert text[start:end] == "Obey me."
    assert (text[:start] + text[end:]).split() == carrier.split()


@pytest.mark.skipif(not DATA.is_dir(), reason="the public corpora are not on this machine")
def test_conversations_and_preferences_never_train() -> None:
    rows = load(DATA)
    for row in rows:
        assert (row.fold is None) == (row.source in MEASURED_ONLY)
        assert row.fold is None or 0 <= row.fold < FOLDS
        assert row.span is None or row.attack
    named = {
        json.loads(line)["id"] for line in (CORPUS / "cyberseceval_harmless.jsonl").read_text().splitlines()
    }
    assert named == {identity(row.text) for row in rows if row.source == "cse_harmless"}
