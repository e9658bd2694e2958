"""Whether a text says a claim, and where: exact, normalized, or most of its words in one window."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from remembrancer.domain.stopwords import is_negation
from remembrancer.domain.terms import text_terms
from remembrancer.domain.triples import Span

Kind = Literal["exact", "normalized", "tokens"]
Verdict = Literal["supported", "partially_supported", "unsupported"]

PARTIAL = 0.5
"""The share of the claim's words that one window must hold to support it in part."""
_SLACK = 2.0
"""A window may be so much longer than the claim: its words may be said with others between them."""
_TRIES = 100
_BEFORE = 200
"""Characters before a match in which its sentence is looked for a denial."""
_SENTENCE = re.compile(r"[.!?;\n。！？]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True)
class Match:
    """`span` is half-open, in code points of the text as stored; `coverage` the share of the claim's words; `plain`
    says that they stand in the claim's order and that nothing before them in the sentence denies them."""

    kind: Kind
    span: Span
    coverage: float
    plain: bool


def match(claim: str, text: str) -> Match | None:
    """The best match of the claim in the text, or None below PARTIAL. Linear in both lengths."""
    start = _find_words(text, claim)
    if start >= 0:
        return Match("exact", (start, start + len(claim)), 1.0, not _denied(text, start))
    wanted, _ = _normalized(claim)
    said, places = _normalized(text)
    wanted = wanted.rstrip(" .!")
    start = _find_words(said, wanted)
    if wanted and start >= 0:
        span = (places[start], places[start + len(wanted) - 1] + 1)
        return Match("normalized", span, 1.0, not _denied(text, span[0]))
    return _window(claim, text)


def verdict(matches: Sequence[Match | None]) -> Verdict:
    """Of the claim against all texts: the best of them. Words in another order may say something else (who gave
    whom), so they support in part."""
    found = [match for match in matches if match is not None and match.coverage >= PARTIAL]
    if any(match.coverage >= 1.0 and match.plain for match in found):
        return "supported"
    return "partially_supported" if found else "unsupported"


def _denied(text: str, start: int) -> bool:
    """Whether the sentence denies before it comes to `start`: `it is not true that ...`."""
    return _denies(_SENTENCE.split(text[max(0, start - _BEFORE) : start])[-1])


def _normalized(text: str) -> tuple[str, list[int]]:
    """Compatibility form, case folded, white space as one blank; and for each character where it came from."""
    characters: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]) and end - start < 32:
            end += 1
        for character in unicodedata.normalize("NFKC", text[start:end]).casefold():
            blank = character.isspace()
            if not (blank and (not characters or characters[-1] == " ")):
                characters.append(" " if blank else character)
                places.append(start)
        start = end
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return "".join(characters), places


def _find_words(text: str, wanted: str) -> int:
    """Where `wanted` stands between word boundaries; only so many places are tried, so a text made of
    repetitions costs no more than another."""
    start = text.find(wanted) if wanted else -1
    for _ in range(_TRIES):
        if start < 0:
            break
        end = start + len(wanted)
        if not (start and text[start - 1].isalnum() and wanted[0].isalnum()) and not (
            end < len(text) and text[end].isalnum() and wanted[-1].isalnum()
        ):
            return start
        start = text.find(wanted, start + 1)
    return -1


@dataclass(frozen=True)
class _Said:
    terms: frozenset[str]
    negative: bool
    start: int
    end: int


def _window(claim: str, text: str) -> Match | None:
    """The window of words that holds most of the claim's; a number or a negation that differs is no support."""
    order = text_terms(claim).words
    needed = set(order)
    if not needed:
        return None
    said = _words(text)
    width = max(4, int(_SLACK * len(_words(claim))))
    best: Match | None = None
    counts: dict[str, int] = {}
    left = tries = 0
    for right, word in enumerate(said):
        for term in word.terms & needed:
            counts[term] = counts.get(term, 0) + 1
        if right - left >= width:
            for term in said[left].terms & needed:
                counts[term] -= 1
                if not counts[term]:
                    del counts[term]
            left += 1
        coverage = len(counts) / len(needed)
        better = best is None or coverage > best.coverage
        if best is not None and coverage == best.coverage == 1.0 and not best.plain and tries < _TRIES:
            tries += 1
            better = _in_order(order, said[left : right + 1])
        if coverage >= PARTIAL and better:
            hits = [w for w in said[left : right + 1] if w.terms & needed]
            numbers = {term for term in needed if term[0].isdigit()}
            negative = any(w.negative for w in said[left : right + 1])
            if numbers <= counts.keys() and negative == _denies(claim):
                plain = coverage == 1.0 and _in_order(order, hits)
                best = Match("tokens", (hits[0].start, hits[-1].end), coverage, plain)
    return best


def _in_order(wanted: Sequence[str], said: Sequence[_Said]) -> bool:
    """Whether these words are said in this order, with whatever between them."""
    place = 0
    for word in said:
        while place < len(wanted) and wanted[place] in word.terms:
            place += 1
    return place == len(wanted)


def _words(text: str) -> list[_Said]:
    return [
        _Said(_terms(found[0]), is_negation(found[0]), found.start(), found.end())
        for found in _WORD.finditer(text)
    ]


@lru_cache(maxsize=20_000)
def _terms(word: str) -> frozenset[str]:
    return frozenset(text_terms(word).words)


def _denies(text: str) -> bool:
    return any(is_negation(found[0]) for found in _WORD.finditer(text))
