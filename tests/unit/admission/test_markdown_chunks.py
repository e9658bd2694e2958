"""Markdown is cut where its structure allows, keeps its exact source, and survives what people write."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.markdown import MarkdownChunk, chunk_markdown, size


def texts(source: str, limit: int = 1_000) -> list[str]:
    return [chunk.text for chunk in chunk_markdown(source, limit)]


def check(source: str, chunks: list[MarkdownChunk], limit: int) -> None:
    """What holds for every chunk of every source."""
    encoded = source.encode("utf-8", "surrogatepass")
    end = 0
    for number, chunk in enumerate(chunks):
        exact = source[chunk.start : chunk.end]
        assert chunk.ordinal == number
        assert exact.strip() and exact in chunk.text
        assert encoded[chunk.start_byte : chunk.end_byte].decode("utf-8", "surrogatepass") == exact
        assert size(chunk.text) <= limit
        assert chunk.start >= end and not source[end : chunk.start].strip().strip("\ufeff")
        assert 1 <= chunk.first_line <= chunk.last_line
        end = chunk.end
    assert not source[end:].strip().strip("\ufeff")


def test_every_heading_begins_a_chunk_under_its_breadcrumb() -> None:
    chunks = chunk_markdown("intro\n\n# A\none\n\n## B ##\ntwo\n\nSetext\n======\nthree\n")
    assert [(chunk.headings, chunk.text) for chunk in chunks] == [
        ((), "intro"),
        (("A",), "# A\none"),
        (("A", "B"), "## B ##\ntwo"),
        (("Setext",), "Setext\n======\nthree"),
    ]
    assert [(chunk.first_line, chunk.last_line) for chunk in chunks] == [(1, 1), (3, 4), (6, 7), (9, 11)]


def test_a_heading_right_above_a_deeper_one_joins_it() -> None:
    chunks = chunk_markdown("# A\n\n## B\n\ntext\n\n## C\n")
    assert [(chunk.headings, chunk.text) for chunk in chunks] == [
        (("A", "B"), "# A\n\n## B\n\ntext"),
        (("A", "C"), "## C"),
    ]


def test_skipped_levels_and_returns_keep_the_path_right() -> None:
    chunks = chunk_markdown("# A\na\n### C\nc\n## B\nb\n# D\nd\n")
    assert [chunk.headings for chunk in chunks] == [("A",), ("A", "C"), ("A", "B"), ("D",)]


@pytest.mark.parametrize(
    "text", ["```\n# no\n```", "    # no", "> # quoted", "- # item", "\\# no", "#no", "| # |\n|---|\n"]
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert {chunk.headings for chunk in chunk_markdown(f"# A\n\n{text}\n")} == {("A",)}


def test_a_fence_that_fits_is_never_cut() -> None:
    fence = "```python\n" + "x = 1\n\n" * 100 + "```"
    source = "word " * 150 + "\n\n" + fence + "\n\n" + "word " * 150
    assert fence in texts(source)


@pytest.mark.parametrize(
    ("opening", "closing"), [("```python", "```"), ("~~~~", "~~~~"), ("`````md", "`````")]
)
def test_a_long_fence_is_cut_between_lines_and_re_opened(opening: str, closing: str) -> None:
    lines = [f"print({number})" for number in range(300)]
    source = "\n".join([opening, *lines, closing])
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.text.startswith(f"{opening}\n") and chunk.text.endswith(f"\n{closing}")
    inner = [line for chunk in chunks for line in chunk.text.split("\n")[1:-1]]
    assert inner == lines


def test_an_unclosed_fence_is_closed_in_every_part() -> None:
    source = "```\n" + "line of code\n" * 200
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert all(chunk.text.startswith("```\n") and chunk.text.endswith("\n```") for chunk in chunks)


def test_a_long_table_is_cut_between_rows_under_its_head() -> None:
    rows = [f"| row {number} | value |" for number in range(200)]
    source = "\n".join(["| a | b |", "|---|---|", *rows])
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert all(chunk.text.startswith("| a | b |\n|---|---|\n") for chunk in chunks)
    assert [row for chunk in chunks for row in chunk.text.split("\n")[2:]] == rows


def test_a_long_list_is_cut_between_items() -> None:
    items = [f"- item {number}\n  - below\n\n  more of it" for number in range(60)]
    source = "\n".join(items)
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert all(chunk.text.startswith("- item") for chunk in chunks)


NESTED = {
    "item": ("1. ", "   "),
    "item of an item": ("- - ", "    "),
    "quotation": ("> ", "> "),
    "quotation in an item": ("- > ", "  > "),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("lines", [20, 200])
def test_a_fence_in_a_list_or_a_quotation_is_no_more_torn_than_any(name: str, lines: int) -> None:
    first, lead = NESTED[name]
    code = [f"{lead}step_{number}()" for number in range(lines)]
    source = "\n".join([f"{first}{'word ' * 190}", lead.rstrip(), f"{lead}```sh", *code, f"{lead}```"]) + "\n"
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    parts = [chunk.text.split("\n") for chunk in chunks if "step_" in chunk.text]
    assert (len(parts) == 1) == (lines == 20)
    for part in parts:
        assert (part[0].strip("> "), part[-1].strip("> ")) == ("```sh", "```")
    assert [line for part in parts for line in part[1:-1]] == code


def test_a_fence_behind_a_marker_is_whole_too() -> None:
    source = "- ```sh\n" + "  run\n" * 150 + "  ```\n- " + "word " * 150 + "\n"
    assert "- ```sh\n" + "  run\n" * 150 + "  ```" in texts(source)


@pytest.mark.parametrize("extra", [0, 120, 200, 240])
def test_the_words_behind_a_fence_marker_count(extra: int) -> None:
    source = f"```{'x' * extra}\n" + "line of code\n" * 300 + "`" * (3 + extra) + "\n"
    check(source, chunk_markdown(source), 1_000)


def test_words_are_not_torn_in_a_long_paragraph() -> None:
    source = "wörter " * 1_000
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert {word for chunk in chunks for word in chunk.text.split()} == {"wörter"}


def test_front_matter_is_kept_apart_and_is_no_heading() -> None:
    chunks = chunk_markdown("---\ntitle: x\ndate: 2024-01-01\n---\n# A\ntext\n")
    assert [(chunk.headings, chunk.first_line) for chunk in chunks] == [((), 1), (("A",), 5)]


def test_carriage_returns_and_a_byte_order_mark() -> None:
    source = "\ufeff# A\r\n\r\nöne\r\n\r\n```\r\ncode\r\n```\r\n# B\rtwo"
    chunks = chunk_markdown(source)
    check(source, chunks, 1_000)
    assert [(chunk.headings, chunk.first_line, chunk.last_line) for chunk in chunks] == [
        (("A",), 1, 7),
        (("B",), 8, 9),
    ]


@pytest.mark.parametrize("source", ["", "\n\n", " \t\n", "\ufeff", "\r"])
def test_nothing_yields_nothing(source: str) -> None:
    assert chunk_markdown(source) == [] or not source.strip("\ufeff").strip()


def test_headings_alone() -> None:
    assert [chunk.headings for chunk in chunk_markdown("# A\n# B\n## C\n")] == [("A",), ("B", "C")]


@pytest.mark.parametrize("limit", [0, 199])
def test_a_limit_too_small_for_a_fence_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        chunk_markdown("text", limit)


HOSTILE = {
    "one line": "a" * 1_000_000,
    "words": "word " * 200_000,
    "quotes": ">" * 1_000_000,
    "bullets on a line": "- " * 500_000,
    "empty lines": "\n" * 1_000_000,
    "stars": "*a" * 500_000,
    "brackets": "[" * 1_000_000,
    "fences": "```\n" * 250_000,
    "broken fence": "```\n" + "x\n" * 100_000 + "~~~\n",
    "wide table": "|" + "a|" * 1_000 + "\n|" + "-|" * 1_000 + "\n" + ("|" + "b|" * 1_000 + "\n") * 50,
    "nested list": "".join("  " * depth + "- x\n" for depth in range(50)) * 20,
    "definitions": "[a]: b\n" * 20_000,
    "emoji": "\U0001f600" * 50_000,
    "surrogates": "\ud800\udfff" * 1_000,
    "null": "\x00# a\n\x00" * 1_000,
    "separators": "a\u2028b\x0bc\x0cd\x85e" * 1_000,
    "long info string": "```" + "x" * 5_000 + "\n" + "y\n" * 2_000 + "```",
    "long fence marker": "`" * 3_000 + "\n" + "y\n" * 2_000 + "`" * 3_000,
    "huge table head": "|" + "h" * 600 + "|\n|-|\n" + "| row |\n" * 300,
    "quotes of quotes": ("> " * 30 + "text\n" + "> " * 29 + "\n") * 2_000,
    "items in quotes": ("> - a\n>   > b\n") * 20_000,
    "front matter only": "---\n" + "key: value\n" * 150 + "---\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markdown_is_cut_in_bounded_time(name: str) -> None:
    started = time.process_time()
    chunks = chunk_markdown(HOSTILE[name])
    assert time.process_time() - started < 15
    check(HOSTILE[name], chunks, 1_000)


PIECES = [
    *(
        "# h\n",
        "## h\n",
        "text ",
        "\n",
        "\r\n",
        "- item\n",
        "1. item\n",
        "  ",
        "```\n",
        "~~~\n",
        "| a | b |\n",
    ),
    *(
        "|---|---|\n",
        "> q\n",
        "> ",
        "- ```\n",
        "   ",
        "---\n",
        "===\n",
        "<div>\n",
        "é" * 80,
        "\U0001f600" * 30,
        "\x00",
        "\t",
        "\ufeff",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.sampled_from([200, 300, 1_000]))
def test_any_arrangement_of_markdown_is_covered_exactly(source: str, limit: int) -> None:
    check(source, chunk_markdown(source, limit), limit)


@given(st.text(max_size=400))
def test_any_text_is_covered_exactly(source: str) -> None:
    check(source, chunk_markdown(source, 200), 200)
