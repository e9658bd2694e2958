"""Words to terms: one function for what is indexed and what is asked."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.terms import (
    detect_language,
    index_row,
    phrase_terms,
    query_terms,
    scoped,
    text_terms,
)

ONE, TWO = UUID(int=1), UUID(int=2)


def finds(query: str, text: str) -> bool:
    """Whether some word of the query, in some form, is a term of the text."""
    terms = text_terms(text)
    held = {*terms.words, *terms.extras}
    return any(form in held for asked in query_terms(query) for form in asked.forms)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("memories", "one memory"),
        ("parse", "call parseBody(request)"),
        ("parseBody", "call parseBody(request)"),
        ("server", "the HTTPServer class"),
        ("parse_body", "see parse_body here"),
        ("body", "see parse_body here"),
        ("app.main.run", "imports app.main.run first"),
        ("40000", "a budget of 40,000 dollars"),
        ("Caroline's", "Caroline came"),
        ("cafe", "le café du coin"),
        ("CAFÉ", "cafe\u0301"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("Häuser", "Das Haus ist groß und die Straße ist lang"),
        ("maisons", "La maison est dans la rue"),
        ("東京", "彼は東京都に住んでいます"),
        ("京", "彼は東京都に住んでいます"),
        ("서울", "저는 서울에 삽니다"),
        ("книги", "Это книга и она на столе"),
    ],
)
def test_a_query_finds_the_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("大阪", "彼は東京都に住んでいます"),
        ("the of and", "the end of it"),
        ("!?-_ 🦑", "a squid"),
        ("cat", "concatenate"),
        ("हिन्दी", "हानि दे"),
        ("ที่", "ท่า"),
    ],
)
def test_a_query_does_not_find_the_text(query: str, text: str) -> None:
    assert not finds(query, text)


def test_a_phrase_passes_over_stop_words_and_inflection() -> None:
    said = text_terms("She moves in the city of her dreams")
    [sequence] = [f.terms for f in phrase_terms("moved to the city") if said.language in f.languages]
    assert said.words[: len(sequence)] == sequence
    assert phrase_terms("to be or not to be") == []


def test_languages_are_told_by_their_function_words() -> None:
    assert detect_language("Wo ist das Haus und wer wohnt da") == "german"
    assert detect_language("in an x.com mail") == "english"
    assert detect_language("Häuser") is None


def test_terms_of_two_spaces_have_nothing_in_common() -> None:
    assert scoped(ONE, ["term"]) == scoped(ONE, ["term"])
    assert scoped(ONE, ["term"]) != scoped(TWO, ["term"])


def test_the_rendered_date_is_no_time_named_by_the_text() -> None:
    said = index_row(ONE, "Ana (2024-05-01): hello there")
    assert (said["asks"], said["dated"]) == (False, False)
    told = index_row(ONE, "Ana (2024-05-01): Did you move last week?")
    assert (told["asks"], told["dated"]) == (True, True)
    # The words come first and in order, so that phrases can be found among them.
    assert told["words"] <= len(told["terms"])


@given(st.text(st.characters(), max_size=300))
def test_no_text_is_an_error_and_every_text_finds_itself(text: str) -> None:
    terms = text_terms(text)
    row = index_row(ONE, text)
    assert all(-(2**63) <= number < 2**63 for number in row["terms"])
    if terms.words:
        assert finds(text, text)


def test_a_megabyte_of_one_word_is_cut_not_kept() -> None:
    terms = text_terms("a1" * 500_000 + " " + "x " * 100_000)
    assert max(map(len, terms.words)) <= 64
    assert len(terms.words) <= 2_000
