"""Words that were pulled apart (`i g n o r e`, `ig.no-re`) or run together, cut into known words again."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from remembrancer.domain.screen.tokens import Tokens, append_tokens

LONG_WORD = 16
MIN_COVERED = 0.7
MIN_COVERED_SPELLED_OUT = 0.4
_GAP = r"(?:[^\w@]{1,9}|_{1,3})"
_SPELLED_OUT = rf"(?<![^\W_])[^\W_](?:{_GAP}[^\W_]){{5,}}(?![^\W_])"
_PULLED_APART = r"[^\W_]+(?:(?:[^\w\s@:/]{1,3}|_{1,3})[^\W_]+)+"
_CHUNK = re.compile(rf"{_SPELLED_OUT}|{_PULLED_APART}|[^\W\d_]{{{LONG_WORD},}}")
MAX_HINT_LOSS = 1.4  # a cut along the gaps may be that much worse than the best cut
_LETTER_COST, _CROSSING_COST, _WORD_COST = 0.1, 0.15, 0.01
_NOT_LETTER = re.compile(r"[\W_]+")
_LETTER = re.compile(r"[^\W_]")


class Vocabulary:
    """The words that letters may be put together to. A long one of them (`anchors`) gives a hidden phrase away."""

    def __init__(self, words: frozenset[str], anchors: re2._Regexp) -> None:
        self.words = words
        self.anchors = anchors
        lengths: dict[str, set[int]] = {}
        for word in words:
            if len(word) >= 2 and word.isalpha():
                lengths.setdefault(word[:2], set()).add(len(word))
        self.lengths = {prefix: tuple(sorted(found)) for prefix, found in lengths.items()}


@dataclass(slots=True)
class Rejoined:
    """`tokens` is None when nothing was put together. `overflow` is where more than `limit` letters began."""

    tokens: Tokens | None
    letters: int
    overflow: tuple[int, int] | None


def rejoin(text: str, vocabulary: Vocabulary, limit: int) -> Rejoined:
    """Tokens of `text` in which chunks that are mostly known words are cut into those words.

    A chunk that is not spelled out letter by letter is cut only when an anchor appears once its parts are joined.
    At most `limit` letters are cut.
    """
    tokens = Tokens([], [], [])
    done = letters = 0
    overflow = None
    for chunk in _CHUNK.finditer(text):
        joined = _NOT_LETTER.sub("", chunk.group())
        spelled_out = len(chunk.group()) >= 2 * len(joined) - 1
        if not spelled_out and not _hides_anchor(chunk.group(), joined, vocabulary.anchors):
            continue
        if letters + len(joined) > limit:
            overflow = chunk.span()
            break
        letters += len(joined)
        pieces = _best_cut(chunk.group(), joined, spelled_out, vocabulary)
        covered = sum(len(piece) for _, _, piece in pieces if piece in vocabulary.words)
        if covered < (MIN_COVERED_SPELLED_OUT if spelled_out else MIN_COVERED) * len(joined):
            continue
        start, end = chunk.span()
        positions = [letter.start() for letter in _LETTER.finditer(text, start, end)]
        append_tokens(tokens, text, done, start)
        for piece_start, piece_end, piece in pieces:
            tokens.words.append(piece)
            tokens.starts.append(positions[piece_start])
            tokens.ends.append(positions[piece_end - 1] + 1)
        done = end
    if done == 0:
        return Rejoined(None, letters, overflow)
    append_tokens(tokens, text, done, len(text))
    return Rejoined(tokens, letters, overflow)


def _hides_anchor(written: str, joined: str, anchors: re2._Regexp) -> bool:
    """Whether an anchor stands in `joined` that is not a word of `written` by itself."""
    found = anchors.search(joined)
    return found is not None and not set(_NOT_LETTER.split(written)).issuperset(anchors.findall(joined))


def _best_cut(
    written: str, joined: str, spelled_out: bool, vocabulary: Vocabulary
) -> list[tuple[int, int, str]]:
    """The cut along the gaps of `written` where they tell words apart, else the cheapest one."""
    free = _cut(joined, frozenset(), vocabulary)
    if not spelled_out:
        return free
    bounds = _word_bounds(_NOT_LETTER.findall(written))
    if not bounds:
        return free
    hinted = _cut(joined, bounds, vocabulary)
    return hinted if _loss(hinted, vocabulary) <= MAX_HINT_LOSS * _loss(free, vocabulary) else free


def _word_bounds(gaps: list[str]) -> frozenset[int]:
    """Where words end in letters that are all apart: at the longer gaps, or at spaces between other marks."""
    shortest = min(map(len, gaps))
    if max(map(len, gaps)) > shortest:
        return frozenset(number for number, gap in enumerate(gaps, 1) if len(gap) > shortest)
    if set(gaps) == {" "}:
        return frozenset()
    return frozenset(number for number, gap in enumerate(gaps, 1) if gap == " ")


def _loss(pieces: list[tuple[int, int, str]], vocabulary: Vocabulary) -> float:
    return sum(
        _WORD_COST if piece in vocabulary.words else _LETTER_COST * len(piece) for _, _, piece in pieces
    )


def _cut(letters: str, bounds: frozenset[int], vocabulary: Vocabulary) -> list[tuple[int, int, str]]:
    """The cheapest cut into known words: letters outside them, words across `bounds` and words cost, in that order."""
    words, lengths = vocabulary.words, vocabulary.lengths
    size = len(letters)
    cost = [0.0] * (size + 1)
    step = [1] * (size + 1)
    for position in range(size - 1, -1, -1):
        alone = position + 1 in bounds and (position == 0 or position in bounds)
        best, best_step = cost[position + 1] + (_WORD_COST if alone else _LETTER_COST), 1
        for length in lengths.get(letters[position : position + 2], ()):
            end = position + length
            if end <= size and cost[end] + _WORD_COST < best and letters[position:end] in words:
                crossed = bounds and any(middle in bounds for middle in range(position + 1, end))
                candidate = cost[end] + _WORD_COST + (_CROSSING_COST if crossed else 0)
                if candidate < best:
                    best, best_step = candidate, length
        cost[position], step[position] = best, best_step
    pieces: list[tuple[int, int, str]] = []
    position = 0
    while position < size:
        end = position + step[position]
        loose = step[position] == 1 and pieces and pieces[-1][2] not in words and position not in bounds
        if loose:
            pieces[-1] = (pieces[-1][0], end, letters[pieces[-1][0] : end])
        else:
            pieces.append((position, end, letters[position:end]))
        position = end
    return pieces
