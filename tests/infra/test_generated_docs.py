"""The generated blocks of the documents are what the manifest and the reports give."""

from __future__ import annotations

import pytest
from templates import Synthesized

from functions import manifest
from infra import docs


def test_the_diagram_is_the_manifests() -> None:
    """After a change of the manifest: python -m infra.docs."""
    assert docs.block(docs.ARCHITECTURE.read_text(), "diagram") == docs.fenced(docs.mermaid())


def test_the_diagram_shows_every_function_and_machine() -> None:
    picture = docs.mermaid()
    for entry in manifest.FUNCTIONS:
        assert f'{entry.name}["{entry.name}' in picture
    for machine in manifest.MACHINES:
        assert f"{machine.name}_asl" in picture


def test_the_findings_are_the_reports(both: dict[str, Synthesized]) -> None:
    """After a change: python -m infra.docs with the validation-report.json of a dev and a prod synth."""
    table = docs.nag_table(stack.report for stack in both.values())
    assert docs.block(docs.OPERATE.read_text(), "nag") == table


def test_only_the_block_changes() -> None:
    text = "a - b\n<!-- x: generated -->\n-\n<!-- end x -->\nc - d\n"
    assert docs.with_block(text, "x", "new") == text.replace("\n-\n", "\nnew\n")


def test_a_document_without_the_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="no block 'nag'"):
        docs.with_block("nothing here", "nag", "")
