"""Entries that must not be swallowed by what only looks like a fence or like reasoning."""

from __future__ import annotations

import pytest

from remembrancer.domain.memory_blocks import parse_memory_blocks


@pytest.mark.parametrize(
    "line", ["```x```", "``` a `b` ```", "<think/>", "<reasoning />", "a <think-tank> here"]
)
def test_the_entry_behind_it_is_kept(line: str) -> None:
    found = parse_memory_blocks(f"## [A]\n{line}\none\n## [B]\ntwo")
    assert [(entry.title, entry.text.splitlines()[-1]) for entry in found.entries] == [
        ("A", "one"),
        ("B", "two"),
    ]
