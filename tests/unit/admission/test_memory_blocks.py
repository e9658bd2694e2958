"""`## [ … ]` blocks become entries; what is left out is counted."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.memory_blocks import MemoryBlock, parse_memory_blocks, strip_reasoning

NOTHING = {"reasoning": 0, "skip_prefix": 0, "empty": 0, "outside_block": 0}


def test_headed_blocks_become_entries() -> None:
    parsed = parse_memory_blocks("## [ 2024-01-02 ] Deploys\nOn Mondays.\n\nAt nine.\n## [b]\nTwo\n")
    assert parsed.entries == (
        MemoryBlock("2024-01-02 Deploys", "On Mondays.\n\nAt nine."),
        MemoryBlock("b", "Two"),
    )
    assert parsed.dropped == NOTHING


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_any_line_ending_and_a_byte_order_mark(ending: str) -> None:
    parsed = parse_memory_blocks("\ufeff## [a]" + ending + "One" + ending + "## [b]" + ending + "Two")
    assert [entry.text for entry in parsed.entries] == ["One", "Two"]


@pytest.mark.parametrize(
    "line", ["# [a]", "### [a]", "##[a]", " ## [a]", "## a", "## [a", "text ## [a]", "- ## [a]"]
)
def test_other_headings_begin_no_entry(line: str) -> None:
    assert parse_memory_blocks(f"{line}\ntext").entries == ()


def test_a_header_inside_a_fence_is_code() -> None:
    text = "## [a]\n```md\n## [b]\n```\nafter\n~~~\n## [c]\n"
    assert parse_memory_blocks(text).entries == (MemoryBlock("a", text.split("\n", 1)[1].strip()),)


def test_what_is_left_out_is_counted() -> None:
    text = "preamble\n## [a]\n\n## [b]\nHEARTBEAT ok\n## [c]\n<think>x</think>\nkept\n## [d]\n<thinking>x</thinking>"
    parsed = parse_memory_blocks(text, ["HEARTBEAT", ""])
    assert parsed.entries == (MemoryBlock("c", "kept"),)
    assert parsed.dropped == {"reasoning": 2, "skip_prefix": 1, "empty": 2, "outside_block": 1}


@pytest.mark.parametrize(
    ("text", "kept", "count"),
    [
        ("a<think>b</think>c", "ac", 1),
        ("a<THINK>b</Think>c", "ac", 1),
        ("a<think id='1'>b</think>c", "ac", 1),
        ("a<think>b", "a", 1),
        ("a<think>b<think>c</think>d</think>e", "ae", 1),
        ("a<reasoning>b</reasoning>c<scratchpad>d", "ac", 2),
        ("hidden</think>answer", "answer", 1),
        ("the `<think>` tag", "the `<think>` tag", 0),
        ("i think <b>so</b> <thinker>", "i think <b>so</b> <thinker>", 0),
        ("", "", 0),
    ],
)
def test_reasoning_is_removed(text: str, kept: str, count: int) -> None:
    assert strip_reasoning(text) == (kept, count)


def test_an_unclosed_reasoning_block_swallows_the_headers_behind_it() -> None:
    parsed = parse_memory_blocks("## [a]\nOne\n<think>\n## [b]\nTwo")
    assert parsed.entries == (MemoryBlock("a", "One"),)


PIECES = ["## [a]\n", "text\n", "<think>", "</think>", "```\n", "\r\n", "`", "[", "]", "\x00", "\ud800"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_entry_is_empty_or_holds_reasoning(text: str) -> None:
    for entry in parse_memory_blocks(text).entries:
        assert entry.text.strip()
        assert strip_reasoning(entry.text)[1] == 0


@pytest.mark.parametrize("unit", ["<think>", "</think>", "## [", "## [a]\n", "```", "<think ", "a", "\r"])
def test_a_megabyte_is_parsed_in_linear_time(unit: str) -> None:
    started = time.process_time()
    parse_memory_blocks(unit * (1_000_000 // len(unit)))
    assert time.process_time() - started < 5
