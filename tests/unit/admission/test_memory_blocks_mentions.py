"""Tags of reasoning that a text only speaks of, and brackets within a header."""

from __future__ import annotations

import time

import pytest

from remembrancer.domain.memory_blocks import parse_memory_blocks, strip_reasoning


@pytest.mark.parametrize(
    "body",
    [
        "Use:\n```xml\n<think>\n```\nThen.",
        "Use:\n~~~~\n```\n<think>\n~~~~\nThen.",
        "The tag `use <think> here` opens one.",
        "The tag `` <think> `` opens one.",
        "Closed by `the </think> tag`.",
        "```\n</thinking>\n```",
    ],
)
def test_a_tag_in_code_drops_nothing(body: str) -> None:
    parsed = parse_memory_blocks(f"## [zero]\nFirst.\n## [one]\n{body}\n## [two]\nLast.")
    assert [entry.text for entry in parsed.entries] == ["First.", body, "Last."]
    assert parsed.dropped["reasoning"] == 0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "a\n<think>\n```\nx\n</think>\nb\n```\n<think>\nc",
            "a\n\nb\n```\n",
        ),  # a fence begun in reasoning is none
        ("a\n```\nb\n<think>c", "a\n```\nb\n"),  # nor is one that is never closed
        ("a `b\n<think>c</think>` d", "a `b\n` d"),  # a code span ends with its line
        ("a ``b <think>c</think>` d", "a ``b ` d"),
        ("`a` <think>b</think> `c`", "`a`  `c`"),
    ],
)
def test_reasoning_beside_code_goes(text: str, kept: str) -> None:
    assert strip_reasoning(text)[0] == kept


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("[a [b] c]", "a [b] c"),
        ("[a [b] c] tail [d]", "a [b] c tail [d]"),
        ("[a [b] tail", "a [b tail"),
        ("[[a]]", "[a]"),
        ("[" + "t" * 600 + "]", "t" * 600),
    ],
)
def test_brackets_of_a_header_are_balanced(header: str, title: str) -> None:
    parsed = parse_memory_blocks(f"## [first]\nOne.\n## {header}\nTwo.")
    assert [(entry.title, entry.text) for entry in parsed.entries] == [("first", "One."), (title, "Two.")]


@pytest.mark.parametrize(
    "text",
    [
        "<think></think>` " * 50_000,
        "".join("`" * n + " " for n in range(1, 1_300)),
        "".join("`" * n + "\n" for n in range(1_000, 3, -1)) + "```x\n" * 100_000,
        "```\n<think>\n" * 80_000,
        "## [" + "[" * 900_000,
    ],
)
def test_hostile_code_takes_linear_time(text: str) -> None:
    began = time.process_time()
    parse_memory_blocks(text)
    assert time.process_time() - began < 5
