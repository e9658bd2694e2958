"""Documents prove their claims by naming tests: every name is one of a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SOURCES = [path for kind in ("*.py", "*.ts", "*.tsx", "*.mjs") for path in (ROOT / "tests").rglob(kind)]


@pytest.fixture(scope="module")
def defined() -> set[str]:
    found: set[str] = set()
    for path in SOURCES:
        found |= set(re.findall(r"^\s*(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))
        found.add(path.stem)
    assert len(found) > 500
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_exists(document: Path, defined: set[str]) -> None:
    named = set(re.findall(r"\btest_\w+", document.read_text()))
    assert named - defined == set()
    if document.name == "security.md":
        assert len(named) > 50
        rows = [
            line
            for line in document.read_text().split("## What the gate")[0].splitlines()
            if line[:2] == "| "
        ]
        bare = [row for row in rows[1:] if "test_" not in row and "tests" not in row.rsplit("|", 2)[1]]
        assert bare == [], "a threat without a proof"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_folder_of_tests_that_a_document_names_exists(document: Path) -> None:
    for folder in re.findall(r"\btests/[\w/]+", document.read_text()):
        assert (ROOT / folder).exists() or (ROOT / f"{folder}.py").exists(), folder
