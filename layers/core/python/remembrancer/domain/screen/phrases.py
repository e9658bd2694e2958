r"""Phrase rules: patterns over words instead of letters, so that they stay short, readable and linear.

A phrase is a row of elements between spaces:
  `word`, `a|b|c`, `@class`, `set+aside` (words in a row), any of them joined by `|`; `?` after an element makes
  it optional; `_3` is up to three tokens of the same sentence, `~3` the same but not ending in a narrator (class
  `self`).
Capitals name tokens that are not words: URL, AT, DOMAIN, COLON, QUOTE, LINE, BREAK, NUMBER; START is the beginning of a
sentence, line or quotation. Between two adjacent elements up to two marks of punctuation are allowed.
A word may end in `*` (any ending, after at least four letters); a class entry may hold several words.

Every word becomes one code character that stands for the set of classes it is in, a text becomes a short string
of codes, and a rule becomes one RE2 expression over codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import re2

from remembrancer.domain.screen import tokens
from remembrancer.domain.screen.fold import latinize, soften

_FIRST_CODE = 0x800  # every code from here on is CODE_BYTES long in UTF-8
CODE_BYTES = 3
_CACHED_WORDS = 50_000
_STEM_KEY = 4
_NAMED = {
    "URL": tokens.URL,
    "AT": "<at>",
    "DOMAIN": "<domain>",
    "COLON": "<colon>",
    "QUOTE": "<quote>",
    "LINE": "<line>",
    "BREAK": tokens.BREAK,
    "BRACKET": "<bracket>",
    "NUMBER": "<number>",
}
_MARKS = ("COLON", "QUOTE", "LINE", "BREAK", "BRACKET")
Owner = TypeVar("Owner")
_OPTIONS = re2.Options()
_OPTIONS.max_mem = 32 << 20


class Lexicon:
    """Which classes a word is in, as code characters.

    `classes` maps a class name to entries; `literals` are words that phrases name directly. With `latin` all are
    folded as `fold.latinize` folds text.
    """

    def __init__(self, classes: Mapping[str, Sequence[str]], literals: Iterable[str], *, latin: bool) -> None:
        members: dict[str, set[str]] = {}
        stems: dict[str, set[str]] = {}
        self._sequences: dict[str, list[tuple[str, ...]]] = {}

        def enter(entry: str, name: str) -> None:
            table = stems if entry.endswith("*") else members
            word = soften(entry.removesuffix("*"))
            if latin and not word.isascii():
                return  # no spelling in Latin letters stands for it
            table.setdefault(latinize(word) if latin else word, set()).add(name)

        for word in literals:
            enter(word, "=" + word)
        for name in _NAMED.values():
            members.setdefault(name, set()).add("=" + name)
        for name, entries in classes.items():
            for entry in entries:
                parts = entry.split()
                if len(parts) > 1:
                    self._sequences.setdefault(name, []).append(tuple(parts))
                    for part in parts:
                        enter(part, "=" + part)
                else:
                    enter(entry, name)
        for word, names in members.items():
            for stem, stem_names in stems.items():
                if word.startswith(stem):
                    names |= stem_names
        self._codes: dict[frozenset[str], str] = {}
        self.words = {word: self._code(frozenset(names)) for word, names in members.items()}
        self._cache = dict(self.words)
        self._stems: dict[str, list[tuple[str, str]]] = {}
        for stem in sorted(stems, key=len, reverse=True):
            names = set().union(*(stems[other] for other in stems if stem.startswith(other)))
            self._stems.setdefault(stem[:_STEM_KEY], []).append((stem, self._code(frozenset(names))))
        self.stems = frozenset(stems)
        self._by_class: dict[str, str] = {}
        for members_of, code in self._codes.items():
            for name in members_of:
                self._by_class[name] = self._by_class.get(name, "") + code
        self.any_word = self._code(frozenset())

    def _code(self, names: frozenset[str]) -> str:
        return self._codes.setdefault(names, chr(_FIRST_CODE + len(self._codes)))

    def encode(self, words: Iterable[str]) -> str:
        """One code character a token."""
        get = self._cache.get
        return "".join([get(word) or self._unlisted(word) for word in words])

    def _unlisted(self, word: str) -> str:
        code = self._classify(word)
        if len(self._cache) < _CACHED_WORDS:
            self._cache[word] = code
        return code

    def _classify(self, word: str) -> str:
        if len(word) < _STEM_KEY and word.isalpha():
            return self.any_word
        for stem, code in self._stems.get(word[:_STEM_KEY], ()):
            if word.startswith(stem):
                return code
        name = tokens.kind(word)
        if name:
            return self.words[name]
        return self.words["<number>"] if word.isdecimal() else self.any_word

    def codes(self, name: str) -> str:
        """All code characters of a class, of `=word` or of a named token."""
        return self._by_class.get(name, "")

    def sequences(self, name: str) -> Sequence[tuple[str, ...]]:
        """The entries of a class that hold several words."""
        return self._sequences.get(name, ())


class Phrase:
    """One phrase, compiled for one lexicon when first needed."""

    def __init__(self, phrase: str, lexicon: Lexicon, slack: int) -> None:
        self._slack = slack
        self._elements = phrase.split()
        self._lexicon = lexicon
        self.needs = tuple(
            frozenset(self._codes(element)) for element in self._elements if _is_needed(element)
        )

    def may_match(self, present: frozenset[str]) -> bool:
        """Whether a text with these code characters has one of every element."""
        for need in self.needs:  # noqa: SIM110 - a generator costs more than the checks
            if present.isdisjoint(need):
                return False
        return True

    def anchor(self, common: frozenset[str]) -> frozenset[str]:
        """The need that the fewest texts fulfil."""
        return min(self.needs, key=lambda need: (len(need & common), len(need)))

    def find(self, codes: bytes, limit: int) -> list[tuple[int, int]]:
        """Token spans of the first `limit` matches in UTF-8 encoded codes, marks at their edges left out."""
        found: list[tuple[int, int]] = []
        for match in self._pattern.finditer(codes):
            start, end = (offset // CODE_BYTES for offset in match.span())
            text = codes[match.start() : match.end()].decode()
            start += len(text) - len(text.lstrip(self._edge))
            end -= len(text) - len(text.rstrip(self._edge))
            if start < end:
                found.append((start, end))
            if len(found) == limit:
                break
        return found

    @cached_property
    def _edge(self) -> str:
        return "".join(self._lexicon.codes("=" + _NAMED[name]) for name in _MARKS)

    @cached_property
    def _pattern(self) -> re2._Regexp:
        return re2.compile(self._compile(self._elements), _OPTIONS)

    def _compile(self, elements: list[str]) -> str:
        out: list[str] = []
        marks = f"[{self._edge}]{{0,2}}"
        after_word = False
        for element in elements:
            if element[0] in "_~":
                out.append(self._filler(element[0], int(element[1:]) + self._slack))
                after_word = False
                continue
            optional = element.endswith("?")
            body = self._element(element.rstrip("?"))
            if optional and not body:
                continue
            if element == "START":
                out.append(f"(?:^|[{self._edge}])")
            elif optional:
                out.append(f"(?:{marks if after_word else ''}{body})?")
            else:
                out.append((marks if after_word else "") + body)
            after_word = element != "START"
        return "".join(out)

    def _filler(self, kind: str, most: int) -> str:
        stop = self._lexicon.codes("=" + tokens.BREAK)
        if kind == "_":
            return f"[^{stop}]{{0,{most}}}"
        return f"(?:[^{stop}]{{0,{most - 1}}}[^{stop}{self._lexicon.codes('self')}])?"

    def _element(self, element: str) -> str:
        singles: list[str] = []
        rows: list[str] = []
        for part in element.split("|"):
            if part.startswith("@"):
                singles.append(self._lexicon.codes(part[1:]))
                rows.extend(self._row(row) for row in self._lexicon.sequences(part[1:]))
            elif "+" in part:
                rows.append(self._row(part.split("+")))
            else:
                singles.append(self._word(part))
        single = "".join(singles)
        options = ([f"[{single}]"] if single else []) + [row for row in rows if row]
        return f"(?:{'|'.join(options)})" if options else ""

    def _row(self, words: Sequence[str]) -> str:
        """Words in a row; "" when the lexicon lacks one of them."""
        codes = [self._word(word) for word in words]
        return f"[{self._edge}]{{0,2}}".join(f"[{code}]" for code in codes) if all(codes) else ""

    def _word(self, word: str) -> str:
        if word.startswith("@"):
            return self._lexicon.codes(word[1:])
        return self._lexicon.codes("=" + _NAMED.get(word, word))

    def _codes(self, element: str) -> str:
        """Codes of which one must be in a matching text."""
        codes = ""
        for part in element.split("|"):
            if part.startswith("@"):
                codes += self._lexicon.codes(part[1:])
                codes += "".join(self._word(max(row, key=len)) for row in self._lexicon.sequences(part[1:]))
            else:
                codes += self._word(max(part.split("+"), key=len))
        return codes


class PhraseIndex(Generic[Owner]):
    """Phrases with their owners, found by the code characters that a text holds.

    `slack` is added to the length of every gap.
    """

    def __init__(self, owned: Iterable[tuple[Owner, str]], lexicon: Lexicon, slack: int = 0) -> None:
        self._phrases = [(owner, Phrase(phrase, lexicon, slack)) for owner, phrase in owned]
        self._by_code: dict[str, list[int]] = {}
        common = frozenset(lexicon.codes("common"))
        for number, (_, phrase) in enumerate(self._phrases):
            for code in phrase.anchor(common):
                self._by_code.setdefault(code, []).append(number)

    def candidates(self, present: frozenset[str]) -> Iterator[tuple[Owner, Phrase]]:
        """The phrases that could match a text with these code characters, in a fixed order."""
        numbers: set[int] = set()
        for code in present:
            numbers.update(self._by_code.get(code, ()))
        for number in sorted(numbers):
            owned = self._phrases[number]
            if owned[1].may_match(present):
                yield owned


def _is_needed(element: str) -> bool:
    return element[0] not in "_~" and not element.endswith("?") and element != "START"


def literals_of(phrases: Iterable[str]) -> set[str]:
    """The words that phrases name directly."""
    found: set[str] = set()
    for phrase in phrases:
        for element in phrase.split():
            if element[0] in "_~" or element == "START":
                continue
            for part in element.rstrip("?").split("|"):
                if not part.startswith("@"):
                    found.update(word for word in part.split("+") if word not in _NAMED and word[0] != "@")
    return found
