"""The documentation names tests as proof: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_test_named_as_proof_exists(document: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", document.read_text(encoding="utf-8")))
    defined: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined |= {
            path.stem,
            *re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE),
        }
    assert named <= defined, sorted(named - defined)
