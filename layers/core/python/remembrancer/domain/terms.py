"""Words to terms: what the lexical leg indexes and asks for, in one place for both sides.

A term is a stemmed, accent-free word in the language of its text, or a pair of neighbouring characters of a
script written without spaces. In the index a term is a number that depends on its space, so that the posting
lists of one space never hold another's rows (nor grow, nor slow, with them).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import Stemmer

from remembrancer.domain.stopwords import STOPWORDS

DEFAULT_LANGUAGE = "english"
MAX_WORD = 64
"""Code points of a word that are read: what is longer is a key or a blob, found by its beginning."""
MAX_TERMS = 2_000
"""Terms of one text; a passage of 1,000 bytes has far fewer."""

MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f87\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
)
"""What is written on or around a letter and is none by itself (accents, points, vowel signs; of the Indic blocks all
that is no stop), as the inside of a character class."""
LETTERS = rf"[^\W_]++(?:[{MARKS}]++[^\W_]*+)*+"
"""A run of letters and digits with their marks. As a pattern; linear."""
WORD = re.compile(rf"{LETTERS}(?:['’]{LETTERS})*")
"""An apostrophe holds a word together."""
# A digit group keeps its number whole.
_NUMBER = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# From the beginning of a word and without going back: linear, however long a word is.
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[._/:@#-][^\W_]++)+")
_POSSESSIVE = re.compile(r"['’]s?$")
# fooBar, HTTPServer, sha256Sum: a boundary before a capital that begins a word.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Han, kana, Hangul, Thai, Lao, Khmer, Myanmar: no spaces between words, or words with endings glued on.
UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f"
    "\u1780-\u17ff\U00020000-\U0003ffff"
)
"""The same as the inside of a character class."""
_UNSPACED = re.compile(f"[{UNSPACED}]+")
# The author and date that passages are rendered with.
_LEAD = re.compile(r"\A[^\n]{0,41}\(\d{4}-\d\d-\d\d\): ")
_TIME = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week|weekend|month|year|since|(?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Terms:
    """`words` in the order of the text (stop words left out); `extras` are further handles on it: an identifier
    in one piece, the single characters of an unspaced script."""

    language: str
    words: tuple[str, ...]
    extras: tuple[str, ...]


def text_terms(text: str) -> Terms:
    """The terms of a stored text, in the one language that its function words show."""
    tokens = list(_tokens(text))
    language = detect_language(text) or DEFAULT_LANGUAGE
    stop = STOPWORDS[language]
    words: list[str] = []
    extras: dict[str, None] = {}
    for token in tokens:
        if token.extra:
            extras[token.text] = None
        elif token.unspaced:
            words.append(token.text)
        elif token.text not in stop:
            words.append(_stem(language, token.text))
    return Terms(language, tuple(words[:MAX_TERMS]), tuple(list(extras)[:MAX_TERMS]))


@dataclass(frozen=True)
class Asked:
    """One word of a query: the forms it may have in texts of the languages considered, the likeliest first."""

    word: str
    forms: tuple[str, ...]


def query_terms(text: str) -> list[Asked]:
    """The words of a query, each once, in order. A query of unknown language asks in all languages."""
    detected = detect_language(text)
    languages = tuple(STOPWORDS) if detected is None else tuple(dict.fromkeys((detected, DEFAULT_LANGUAGE)))
    stop = STOPWORDS[detected or DEFAULT_LANGUAGE]
    asked: dict[str, Asked] = {}
    tokens = list(_tokens(text))
    alone = len([token for token in tokens if token.unspaced]) == 0
    for token in tokens:
        if token.edge:
            continue
        if token.unspaced:
            asked.setdefault(token.text, Asked(token.text, (token.text,)))
        elif token.extra:
            # Single characters are asked for only when nothing longer is.
            if alone or not _UNSPACED.fullmatch(token.text):
                asked.setdefault(token.text, Asked(token.text, (token.text,)))
        elif token.text not in stop:
            forms = dict.fromkeys(_stem(language, token.text) for language in languages)
            asked.setdefault(token.text, Asked(token.text, tuple(forms)))
    return list(asked.values())[:MAX_TERMS]


def excluding_terms(word: str) -> list[str]:
    """The terms of which a text that holds this word has one; none when the word is several, and so a phrase. An
    identifier or a compound has a term as a whole, and is not left out for its parts."""
    tokens = list(_tokens(word))
    if _UNSPACED.search(word):
        return []
    if sum(not token.extra for token in tokens) < 2:
        return [form for asked in query_terms(word) for form in asked.forms]
    whole = unicodedata.normalize("NFKC", word).casefold()[:MAX_WORD]
    return [token.text for token in tokens if token.extra and token.text == whole]


def is_unspaced(text: str) -> bool:
    """Whether all of it is of a script written without spaces."""
    return _UNSPACED.fullmatch(text) is not None


class Phrase(NamedTuple):
    """A phrase as a text of one of these languages has it: its terms, one after the other."""

    terms: tuple[str, ...]
    languages: tuple[str, ...]


def phrase_terms(text: str) -> list[Phrase]:
    """The phrase as the texts of each language have it, since one of any language may quote it; none for stop words
    alone.

    A phrase matches through stop words and inflection: both sides are reduced to the same terms. What is a stop word
    in one language only is left out of its texts alone: `die hard` is not any `hard`.
    """
    tokens = [token for token in _tokens(text) if not token.extra]
    found: dict[tuple[str, ...], list[str]] = {}
    for language, stop in STOPWORDS.items():
        sequence = tuple(
            token.text if token.unspaced else _stem(language, token.text)
            for token in tokens
            if token.unspaced or token.text not in stop
        )
        found.setdefault(sequence, []).append(language)
    if (detect_language(text) or DEFAULT_LANGUAGE) in found.get((), ()):
        return []
    return [Phrase(sequence, tuple(languages)) for sequence, languages in found.items() if sequence]


def detect_language(text: str) -> str | None:
    """The language whose function words the text uses most, or None when it shows none.

    Another than English needs two of them: `in`, `an` and `com` are words of half of Europe.
    """
    words = [match[0].casefold() for match in WORD.finditer(text[:4_000])]
    counts = {language: sum(word in stop for word in words) for language, stop in STOPWORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    if counts[best] >= 2 and counts[best] > counts[DEFAULT_LANGUAGE]:
        return best
    return DEFAULT_LANGUAGE if counts[DEFAULT_LANGUAGE] else None


def index_row(space_id: UUID, rendered: str) -> dict[str, Any]:
    """What the store keeps of a rendered passage beside its vector: {language, terms, words, asks, dated}.

    `terms` are the words and then the extras as numbers of the space, `words` counts the former; `asks` says
    that the text ends in a question, `dated` that it names a time (the rendered date left aside).
    """
    terms = text_terms(rendered)
    said = _LEAD.sub("", rendered, count=1)
    return {
        "language": terms.language,
        "terms": scoped(space_id, (*terms.words, *terms.extras)),
        "words": len(terms.words),
        "asks": said.rstrip().endswith(("?", "？", "؟")),
        "dated": _TIME.search(said) is not None,
    }


def scoped(space_id: UUID, terms: Iterable[str]) -> list[int]:
    """The terms as this space's signed 64-bit numbers."""
    key = space_id.bytes
    return [
        int.from_bytes(
            hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest(),
            "big",
            signed=True,
        )
        for term in terms
    ]


@dataclass(frozen=True)
class _Token:
    text: str
    unspaced: bool = False
    extra: bool = False
    edge: bool = False
    """The character of an unspaced run that touches another script: a phrase may begin or end with it alone."""


def _tokens(text: str) -> Iterator[_Token]:
    """Words in order, then the further handles."""
    plain = _NUMBER.sub(lambda match: match[0].replace(",", ""), unicodedata.normalize("NFKC", text))
    extras: dict[str, None] = {}
    for match in WORD.finditer(plain):
        runs = list(_runs(match[0]))
        for place, (run, unspaced) in enumerate(runs):
            if unspaced:
                long = len(run) > 1
                if long and place > 0:
                    yield _Token(run[0], unspaced=True, edge=True)
                yield from _pairs(run)
                if long and place < len(runs) - 1:
                    yield _Token(run[-1], unspaced=True, edge=True)
                if long:
                    extras.update(dict.fromkeys(run))
                continue
            parts = _CAMEL.split(run)
            for part in parts:
                word = _plain_word(part)
                if word:
                    yield _Token(word)
            if len(parts) > 1:
                extras[_plain_word(run)] = None
    for match in _COMPOUND.finditer(plain):
        if not _UNSPACED.search(match[0]):
            extras[match[0].casefold()[:MAX_WORD]] = None
    for extra in extras:
        yield _Token(extra, extra=True)


def _runs(word: str) -> Iterator[tuple[str, bool]]:
    """The stretches of a word, and whether each is of an unspaced script."""
    end = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > end:
            yield word[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(word):
        yield word[end:], False


def _pairs(run: str) -> Iterator[_Token]:
    if len(run) == 1:
        yield _Token(run, unspaced=True)
    for first, second in pairwise(run):
        yield _Token(first + second, unspaced=True)


def _plain_word(word: str) -> str:
    return _POSSESSIVE.sub("", word.casefold().replace("’", "'"))[:MAX_WORD]


@lru_cache(maxsize=1)
def _stemmers() -> dict[str, Stemmer.Stemmer]:
    return {language: Stemmer.Stemmer(language) for language in STOPWORDS}


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    stem: str = _stemmers()[language].stemWord(word)
    return "".join(c for c in unicodedata.normalize("NFD", stem) if not unicodedata.combining(c))
