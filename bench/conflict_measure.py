"""How often a conflict is found, missed and invented (gate.md, section 2).

Two measurements: labelled pairs of our own (bench/corpus/conflicts.jsonl), and the LoCoMo conversations read
turn by turn as if each turn were a new memory, where nearly every conflict found is a false one.

The pairs were written in three rounds, each measured once before anyone looked at its failures: precision
0.98, 0.96, 1.00 and recall 0.87, 0.90, 0.89. Those are the figures for unseen pairs. After each round the rules
were made more general (after the third, which is `held_out`, only lists of verbs grew), so what is printed
here is better than what new pairs will show.
On LoCoMo one turn of 5,882 (0.017 %) is said to conflict, with the ONNX embedder's neighbours as with shared
words: "I used to love hiking" beside "I love hiking".
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from remembrancer.domain import conflict as domain
from remembrancer.domain.conflict import Conflict, Neighbour, Statement, find_conflict
from remembrancer.domain.ports import Embedder
from remembrancer.domain.triples import Triple

CORPUS = Path(__file__).parent / "corpus" / "conflicts.jsonl"
SINGLE_VALUED = frozenset({"lives_in", "works_at", "email", "reports_to"})
NEAREST = 10


def pairs() -> list[dict[str, Any]]:
    """The labelled pairs: id, split, kind, conflict, memory and candidate."""
    with CORPUS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge(pair: Mapping[str, Any]) -> Conflict | None:
    """What the rules say about one pair."""
    memory = Neighbour(UUID(int=1), 1, _statement(pair["memory"]), 0.9)
    return find_conflict(_statement(pair["candidate"]), [memory], SINGLE_VALUED)


def measure(data_dir: Path | None, embedder: Embedder | None = None) -> dict[str, float]:
    """conflict_precision and conflict_recall, each also on the held-out half, and recall per kind.

    With `data_dir` (the folder of locomo10.json) also false_conflict_rate_locomo: the share of turns for
    which a conflict with one of the ten nearest earlier turns of the same conversation is found. Nearness
    is the embedder's cosine, or shared words when there is none.
    """
    figures: dict[str, float] = {}
    everything = pairs()
    for suffix, chosen in (
        ("", everything),
        ("_held_out", [pair for pair in everything if pair["split"] == "held_out"]),
    ):
        figures |= _precision_and_recall(chosen, suffix)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for pair in everything:
        by_kind[pair["kind"]].append((judge(pair) is not None) == pair["conflict"])
    for kind, right in sorted(by_kind.items()):
        figures[f"conflict_right_{kind}"] = sum(right) / len(right)
    if data_dir is not None:
        turns = found = 0
        for conversation in conversations(data_dir / "locomo10.json"):
            turns += len(conversation)
            found += sum(1 for _ in false_conflicts(conversation, embedder))
        figures["locomo_turns"] = turns
        figures["false_conflict_rate_locomo"] = found / turns
    return figures


def conversations(path: Path) -> list[list[str]]:
    """The turns of each conversation in order, each as `Speaker: text`."""
    with path.open(encoding="utf-8") as file:
        samples = json.load(file)
    found = []
    for sample in samples:
        talk = sample["conversation"]
        sessions = sorted(
            (name for name in talk if name.startswith("session_") and isinstance(talk[name], list)),
            key=lambda name: int(name.removeprefix("session_")),
        )
        found.append([f"{turn['speaker']}: {turn['text']}" for name in sessions for turn in talk[name]])
    return found


def false_conflicts(turns: Sequence[str], embedder: Embedder | None) -> Iterator[tuple[str, str, Conflict]]:
    """(turn, earlier turn, conflict) for every turn that is said to contradict an earlier one.

    A turn is a neighbour of many, and reading it is nearly all of the work: it is read once.
    """
    with patch.object(domain, "_Reading", cache(domain._Reading)):
        yield from _false_conflicts(turns, embedder)


def _false_conflicts(turns: Sequence[str], embedder: Embedder | None) -> Iterator[tuple[str, str, Conflict]]:
    # The head of a turn: the few longer ones would not fit the model.
    vectors = _bags(turns) if embedder is None else embedder.embed([turn[:500] for turn in turns])
    for index in range(1, len(turns)):
        cosines = vectors[:index] @ vectors[index]
        nearest = np.argsort(-cosines)[:NEAREST]
        neighbours = [
            Neighbour(UUID(int=int(at) + 1), 1, Statement(turns[at]), float(cosines[at])) for at in nearest
        ]
        conflict = find_conflict(Statement(turns[index]), neighbours, SINGLE_VALUED)
        if conflict is not None:
            yield turns[index], turns[conflict.memory_id.int - 1], conflict


def _bags(turns: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of weighted words, hashed to 4,096 dimensions."""
    words = [turn.lower().split() for turn in turns]
    counts: dict[str, int] = defaultdict(int)
    for turn in words:
        for word in set(turn):
            counts[word] += 1
    vectors = np.zeros((len(turns), 4096), dtype=np.float32)
    slots = {word: index % 4096 for index, word in enumerate(sorted(counts))}
    for row, turn in enumerate(words):
        for word in turn:
            vectors[row, slots[word]] += np.log(1 + len(turns) / counts[word])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(norms, 1e-9)).astype(np.float32)


def _precision_and_recall(chosen: Sequence[Mapping[str, Any]], suffix: str) -> dict[str, float]:
    found = [(pair["conflict"], judge(pair) is not None) for pair in chosen]
    hits = sum(1 for label, said in found if label and said)
    said = sum(1 for _, said in found if said)
    true = sum(1 for label, _ in found if label)
    return {
        f"conflict_pairs{suffix}": len(found),
        f"conflict_precision{suffix}": hits / said if said else 0.0,
        f"conflict_recall{suffix}": hits / true if true else 0.0,
    }


def _statement(record: Mapping[str, Any]) -> Statement:
    return Statement(
        record["text"],
        tuple(Triple(**relation) for relation in record.get("relations", ())),
        _instant(record.get("valid_from")),
        _instant(record.get("valid_to")),
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of locomo10.json")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.data)
    for name, value in figures.items():
        print(f"{name:40} {value:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
