"""Passages cover the text, keep both limits when rendered, and cut where a reader would."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.passages import MAX_BYTES, MAX_TOKENS, cut, prefix, render


def words(text: str) -> int:
    """A stand-in for a tokenizer: one token a word and one a character beyond ASCII."""
    return len(text.split()) + sum(character > "\x7f" for character in text)


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


PROSE = ["word ", "A sentence. ", "\n\n", "\n", "\r\n", "x = 1\n", "漢字", "é", "e\u0301"]
FENCES = ["```python\n", "```\n", "~~~\n", "`" * 40]
HOSTILE = ["\ud800", "\x00", "\u200d", "a" * 300, "\u0301" * 90, "👩\u200d👩", "🇳🇴🇸🇪"]
pieces = st.sampled_from([*PROSE, *FENCES, *HOSTILE])


@given(st.lists(pieces, max_size=120).map("".join), st.text(max_size=60))
def test_passages_cover_the_text_within_both_limits(text: str, author: str) -> None:
    lead = prefix(author, date(2024, 5, 1))
    passages = cut(text, words, lead=lead)
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    assert "".join(text[passage.start : passage.end] for passage in passages) == text
    assert all(passage.start < passage.end for passage in passages)
    for passage in passages:
        rendered = render(passage.text, author, date(2024, 5, 1))
        assert size(rendered) <= MAX_BYTES
        assert words(rendered) <= MAX_TOKENS
        assert text[passage.start : passage.end].strip() in passage.text


def test_a_short_text_is_one_passage() -> None:
    (passage,) = cut("I like aisle seats.", words)
    assert (passage.start, passage.end, passage.text) == (0, 19, "I like aisle seats.")
    assert cut("", words) == ()


@pytest.mark.parametrize("ending", ["\n\n", ". ", " "])
def test_cuts_fall_at_the_best_boundary(ending: str) -> None:
    first = ("word " * 130).strip() + ending
    passages = cut(first + "tail " * 130, words)
    assert passages[0].text == first if ending != " " else passages[0].text.endswith(" ")


def test_a_fence_that_fits_is_not_split() -> None:
    code = "```python\n" + "value = compute(1)\n" * 30 + "```\n"
    text = "Some words about it. " * 30 + "\n" + code + "After."
    assert any(code in passage.text for passage in cut(text, words))


def test_a_long_fence_is_split_with_its_fence_opened_again() -> None:
    lines = [f"value_{index} = compute({index})" for index in range(120)]
    text = "Intro.\n```python\n" + "\n".join(lines) + "\n```\nAfter."
    passages = cut(text, words)
    assert len(passages) > 3
    for passage in passages:
        fences = [line for line in passage.text.split("\n") if line.startswith("```")]
        assert fences in (["```python", "```"], [])
    seen = [line for passage in passages for line in passage.text.split("\n") if line.startswith("value")]
    assert seen == lines


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "a🇳🇴", "\ud83d\udc4d"])
def test_what_a_reader_sees_as_one_character_stays_whole(cluster: str) -> None:
    text = cluster * 700
    for passage in cut(text, words):
        assert passage.start % len(cluster) == 0
        assert passage.end % len(cluster) == 0


@pytest.mark.parametrize("unit", ["a", "漢", "`", "\u0301", "```\n", "a\n\n", "~~~ x\n"])
def test_a_megabyte_is_cut_in_linear_time(unit: str) -> None:
    def seconds(times: int) -> float:
        text = unit * times
        begun = time.process_time()
        cut(text, words)
        return time.process_time() - begun

    small = seconds(100_000 // size(unit))
    assert seconds(1_000_000 // size(unit)) < 30 * small + 0.5


def test_no_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="no room"):
        cut("text", words, lead="x" * MAX_BYTES)


def test_the_rendered_form_names_what_is_known() -> None:
    day = date(2024, 5, 1)
    assert render("I moved.", "Ann", day) == "Ann (2024-05-01): I moved."
    assert render("I moved.", "Ann") == "Ann: I moved."
    assert render("I moved.", None, day) == "(2024-05-01): I moved."
    assert render("I moved.", " \n") == "I moved."
    assert render("x", "A\nB" + "c" * 99) == "A B" + "c" * 37 + ": x"
