"""Whether a text says a claim, and where: exact, normalized, or most of its words in one window."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, takewhile
from typing import Literal

from remembrancer.domain.lexicon import stem
from remembrancer.domain.stopwords import is_negation
from remembrancer.domain.terms import WORD, text_terms
from remembrancer.domain.triples import Span

Kind = Literal["exact", "normalized", "tokens"]
Verdict = Literal["supported", "partially_supported", "unsupported"]

PARTIAL = 0.5
"""The share of the claim's words that one window must hold to support it in part."""
_SLACK = 2.0
"""A window may be so much longer than the claim: its words may be said with others between them."""
_TRIES = 100
_BEHIND = 3
_BEFORE = 200
"""Characters before a match in which its sentence is looked for a denial."""
_SENTENCE = re.compile(r"[.!?;\n。！？]")
_WORD_OR_NUMBER = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:,\d{{3}})+(?![\d,])|{WORD.pattern}")
_STATEMENT = re.compile(r"[.!?;…](?=\s|$)|[。！？；]|\n\s*\n")
"""Ends of a statement: a line may break inside one, and a point inside a number ends none."""
_SCALE = (
    r"(?:percent|per cent|hundred|thousand|million|billion|trillion|dozen|[ap]\.?m\b|(?<=\d)(?:k|m|bn))"
    r"(?![^\W_])"
)
_QUANTITY = re.compile(
    r"(?<![\w.,])(?P<sign>[-−－]|minus\s)?(?P<before>[$€£¥])?(?P<number>\d+(?:[.,:/]\d+)*"
    r"(?:(?<!\d{4})\s?[-–]\s?\d{1,3}(?:[.,]\d+)*(?!\d|-\d))?)"
    rf"(?:\s?(?P<after>[%‰€£¥$％]|{_SCALE}))?",
    re.IGNORECASE,
)
"""A number, or a range of two, with its sign, and its currency, share, scale or half of the day."""
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER_GOES_ON = re.compile(rf"[.,:/]\d|\s?[%‰％]|\s?{_SCALE}|[-–]\d", re.IGNORECASE)
_NUMBER_BEGAN = re.compile(r"(?:\d[.,:/]|(?<![^\W_])[-−]|[$€£¥]|\bminus\s|\d[-–])$", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\s*,?\s*(?:no longer|no more|not any ?more)\b"
    r"|[\s.,:;!–—-]*(?:(?:which|that|this|it)(?:['’]s)?\s+)?(?:(?:is|was|are|were|has been|proved|turned out)\s+)?"
    r"(?:to be\s+)?(?:not true|false|untrue|wrong|incorrect|an? (?:lie|myth|rumou?r|hoax|joke|mistake))\b"
    r"|\s*(?:is|was)(?:n['’]t| not) (?:true|so|the case|correct)\b",
    re.IGNORECASE,
)
"""What stands behind a statement that is denied only then. English, like the next."""
_UNREAL = frozenset(
    map(
        stem,
        re.findall(
            r"\w+",
            "will would shall should could may might must want plan hope wish intend try almost nearly hardly barely"
            " scarcely refuse decline fail forget stop cease quit used",
        ),
    )
)
"""Words that make of what is done something wished, feared, over or left undone."""
_DENIAL = "\0not"
"""Stands for any word that denies among the terms of a claim, none of which has this form."""
_OPPOSITES = (
    ("before", "after"),
    ("on", "off"),
    ("over", "under"),
    ("above", "below"),
    ("more", "less"),
    ("more", "fewer"),
    ("up", "down"),
    ("in", "out"),
    ("all", "some"),
    ("always", "sometimes"),
    ("until", "since"),
    ("and", "or"),
    ("i", "you"),
    ("my", "your"),
    ("he", "she"),
    ("his", "her"),
)
"""Words that tell statements apart although the index leaves them out. English only, as conflicts are."""


@dataclass(frozen=True)
class Match:
    """`span` is half-open, in code points of the text as stored; `coverage` the share of the claim's words; `plain`
    says that they stand in the claim's order in one statement with its numbers, and that nothing before them denies
    them, no opposite stands for one of them, and they are not asked."""

    kind: Kind
    span: Span
    coverage: float
    plain: bool


def match(claim: str, text: str) -> Match | None:
    """The best match of the claim in the text, or None below PARTIAL. Linear in both lengths."""
    start = _find_words(text, claim)
    if start >= 0:
        span = (start, start + len(claim))
        return Match("exact", span, 1.0, _stated(claim, text, span))
    wanted, _ = _normalized(claim)
    said, places = _normalized(text)
    wanted = wanted.rstrip(" .!")
    start = _find_words(said, wanted)
    if wanted and start >= 0:
        span = (places[start], places[start + len(wanted) - 1] + 1)
        return Match("normalized", span, 1.0, _stated(claim, text, span))
    return _window(claim, text)


def verdict(matches: Sequence[Match | None]) -> Verdict:
    """Of the claim against all texts: the best of them. Words in another order may say something else (who gave
    whom), so they support in part."""
    found = [match for match in matches if match is not None and match.coverage >= PARTIAL]
    if any(match.coverage >= 1.0 and match.plain for match in found):
        return "supported"
    return "partially_supported" if found else "unsupported"


def _stated(claim: str, text: str, span: Span) -> bool:
    """Whether what stands there is neither denied before or behind it nor asked."""
    taken_back = _TAKEN_BACK.match(text, span[1], span[1] + _BEFORE) is not None
    return not taken_back and not _denied(text, span[0]) and not _asked(claim, text, span[1])


def _asked(claim: str, text: str, end: int) -> bool:
    """Whether a statement of the claim is a question in the text."""
    if claim.rstrip().endswith(("?", "？")):
        return False
    mark = _STATEMENT.search(text, end, end + _BEFORE)
    return mark is not None and mark[0] in "?？"


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
        if (
            not (start and text[start - 1].isalnum() and wanted[0].isalnum())
            and not (end < len(text) and text[end].isalnum() and wanted[-1].isalnum())
            and not _inside_number(text, start, end)
        ):
            return start
        start = text.find(wanted, start + 1)
    return -1


def _inside_number(text: str, start: int, end: int) -> bool:
    """Whether a number at either end goes on outside: `5` is not said by `1.5`, `-5`, `5,000` or `5 %`."""
    return (text[start].isdigit() and _NUMBER_BEGAN.search(text[max(0, start - 7) : start]) is not None) or (
        text[end - 1].isdigit() and _NUMBER_GOES_ON.match(text, end) is not None
    )


@dataclass(frozen=True)
class _Said:
    word: str
    terms: frozenset[str]
    negative: bool
    start: int
    end: int
    statement: int
    """Which statement of the text it stands in."""
    unreal: str
    """What of _UNREAL it is a form of."""


@dataclass(frozen=True)
class _Claimed:
    """What a statement must have to say the claim: its terms and denials in order, its words, its numbers."""

    order: Sequence[str]
    words: frozenset[str]
    unreal: frozenset[str]
    quantities: frozenset[str]

    @classmethod
    def of(cls, claim: str, terms: Sequence[str]) -> _Claimed:
        said = _words(claim)
        order = list(terms)
        denial = next((word for word in said if word.negative), None)
        if denial is not None:
            order.insert(len(text_terms(claim[: denial.start]).words), _DENIAL)
        words = frozenset(word.word for word in said)
        quantities = frozenset(quantity.said for quantity in _quantities(claim))
        return cls(order, words, frozenset(word.unreal for word in said if word.unreal), quantities)

    def said_by(
        self, quantities: Sequence[_Quantity], window: Sequence[_Said], behind: Sequence[_Said]
    ) -> bool:
        """`quantities` are those of the text; `behind` are the words after the window, where the opposite of the
        claim's last word may stand."""
        return any(
            self._said_by_one(quantities, list(words), behind)
            for _, words in groupby(window, key=lambda word: word.statement)
        )

    def _said_by_one(
        self, quantities: Sequence[_Quantity], said: Sequence[_Said], behind: Sequence[_Said]
    ) -> bool:
        if not _in_order(self.order, said) or self.unreal != {word.unreal for word in said if word.unreal}:
            return False
        words = {word.word for word in said}
        words.update(word.word for word in behind if word.statement == said[-1].statement)
        if any(_opposed(self.words, words, *pair) for pair in _OPPOSITES):
            return False
        # Those that the words touch, whole: `10.0` is a part of `10.0.0.1`.
        place = bisect_right(quantities, said[0].start, key=lambda quantity: quantity.end)
        touched = takewhile(lambda quantity: quantity.start < said[-1].end, islice(quantities, place, None))
        return self.quantities <= {quantity.said for quantity in touched}


def _opposed(claimed: Collection[str], said: Collection[str], one: str, other: str) -> bool:
    return (one in claimed and one not in said and other in said) or (
        other in claimed and other not in said and one in said
    )


@dataclass(frozen=True)
class _Quantity:
    """A number of a text with its sign, scale, currency or share, and without digit groups."""

    start: int
    end: int
    said: str


def _quantities(text: str) -> list[_Quantity]:
    found = []
    for match in _QUANTITY.finditer(text):
        number = "".join(unicodedata.normalize("NFKC", match["number"]).split())
        if _GROUPED.fullmatch(number):
            number = number.replace(",", "")
        unit = unicodedata.normalize("NFKC", match["before"] or match["after"] or "").lower()
        sign = "-" if match["sign"] else ""
        found.append(_Quantity(match.start(), match.end(), f"{sign}{number}{unit}"))
    return found


def _window(claim: str, text: str) -> Match | None:
    """The window of words that holds most of the claim's; a number or a negation that differs is no support."""
    order = text_terms(claim).words
    needed = set(order)
    if not needed:
        return None
    claimed = _Claimed.of(claim, order)
    said = _words(text)
    quantities = _quantities(text) if claimed.quantities else []

    def says(left: int, right: int) -> bool:
        behind = right + 1
        return claimed.said_by(quantities, said[left:behind], said[behind : behind + _BEHIND])

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
            better = says(left, right)
        if coverage >= PARTIAL and better:
            hits = [w for w in said[left : right + 1] if w.terms & needed]
            numbers = {term for term in needed if term[0].isdigit()}
            negative = any(w.negative for w in said[left : right + 1])
            if numbers <= counts.keys() and negative == _denies(claim):
                span = (hits[0].start, hits[-1].end)
                plain = coverage == 1.0 and says(left, right)
                taken_back = _TAKEN_BACK.match(text, span[1], span[1] + _BEFORE) is not None
                best = Match(
                    "tokens", span, coverage, plain and not taken_back and not _asked(claim, text, span[1])
                )
    return best


def _in_order(wanted: Sequence[str], said: Sequence[_Said]) -> bool:
    """Whether these words are said in this order, with whatever between them."""
    place = 0
    for word in said:
        while place < len(wanted) and (
            word.negative if wanted[place] == _DENIAL else wanted[place] in word.terms
        ):
            place += 1
    return place == len(wanted)


def _words(text: str) -> list[_Said]:
    ends = [end.start() for end in _STATEMENT.finditer(text)]
    return [
        _Said(
            found[0].casefold(),
            _terms(found[0]),
            is_negation(found[0]),
            found.start(),
            found.end(),
            bisect_left(ends, found.start()),
            _unreal(found[0]),
        )
        for found in _WORD_OR_NUMBER.finditer(text)
    ]


@lru_cache(maxsize=20_000)
def _terms(word: str) -> frozenset[str]:
    return frozenset(text_terms(word).words)


@lru_cache(maxsize=20_000)
def _unreal(word: str) -> str:
    # Not the month, nor the man.
    root = "" if word[0].isupper() else stem(word)
    return root if root in _UNREAL else ""


def _denies(text: str) -> bool:
    return any(is_negation(found[0]) for found in WORD.finditer(text))
