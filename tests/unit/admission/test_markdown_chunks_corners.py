"""The limit of a chunk counts what its first line is indented by."""

from __future__ import annotations

import pytest

from remembrancer.domain.markdown import chunk_markdown, size


@pytest.mark.parametrize("lead", [" " * 100, "\x0c" * 100, "\t" * 100])
def test_no_chunk_is_longer_than_the_limit(lead: str) -> None:
    assert max(size(chunk.text) for chunk in chunk_markdown(lead + "é" * 500 + "\n")) <= 1_000
