"""Precision, recall and F1 of the PII detector on labelled sentences.

Reads the JSON of presidio-research (`full_text`, `spans` with entity_type, start_position, end_position). A
finding counts when it overlaps a labelled span of its kind by at least half of either; `exact` counts equal
spans. Kinds that the file does not label cannot be measured on it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from remembrancer.domain.pii import find_pii

LABELS = {
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "US_SSN": "ssn",
    "IP_ADDRESS": "ip",
}
FILE = "pii/synth_dataset_v2.json"


def measure(path: Path | str) -> dict[str, Any]:
    """{"kinds": {kind: {precision, recall, f1, exact, support}}, "micro": {...}} of a labelled file."""
    found: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    support: Counter[str] = Counter()
    for row in json.loads(Path(path).read_text(encoding="utf-8")):
        gold = [
            (LABELS[span["entity_type"]], span["start_position"], span["end_position"])
            for span in row["spans"]
            if span["entity_type"] in LABELS
        ]
        support.update(kind for kind, _, _ in gold)
        for finding in find_pii(row["full_text"]):
            found[finding.kind] += 1
            if tuple(finding) in gold:
                exact[finding.kind] += 1
            partner = next((span for span in gold if _overlaps(finding, span)), None)
            if partner:
                gold.remove(partner)
                matched[finding.kind] += 1
    kinds = {
        kind: _scores(matched[kind], found[kind], support[kind], exact[kind]) for kind in LABELS.values()
    }
    micro = _scores(matched.total(), found.total(), support.total(), exact.total())
    return {"kinds": kinds, "micro": micro}


def _overlaps(finding: tuple[str, int, int], span: tuple[str, int, int]) -> bool:
    shared = min(finding[2], span[2]) - max(finding[1], span[1])
    return finding[0] == span[0] and 2 * shared >= max(finding[2] - finding[1], span[2] - span[1])


def _scores(matched: int, found: int, support: int, exact: int) -> dict[str, float]:
    precision = matched / found if found else 1.0
    recall = matched / support if support else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(f1, 4),
        "exact": round(exact / support, 4) if support else 1.0,
        "support": support,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora, or a labelled file")
    data: Path = parser.parse_args().data
    scores = measure(data if data.is_file() else data / FILE)
    print(f"{'kind':8}{'precision':>10}{'recall':>9}{'F1':>9}{'exact':>9}{'support':>9}")
    for kind, row in (*scores["kinds"].items(), ("micro", scores["micro"])):
        figures = "".join(f"{row[name]:9.3f}" for name in ("recall", "f1", "exact"))
        print(f"{kind:8}{row['precision']:10.3f}{figures}{row['support']:9}")


if __name__ == "__main__":
    main()
