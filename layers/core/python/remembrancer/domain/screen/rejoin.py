"""Words that were pulled apart (`i g n o r e`, `ig.no-re`) or run together, cut into known words again."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from remembrancer.domain.screen.tokens import Tokens, append_tokens

LONG_WORD = 16
AROUND_ANCHOR = 64  # letters
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

    def __init__(self, words: frozenset[str], anchors: frozenset[str]) -> None:
        self.words = words
        self.anchors = re2.compile("|".join(sorted(anchors)))
        self.shortest_anchor = min(map(len, anchors))
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
    """Tokens of `text` in which chunks that hide known words are cut into those words.

    Letters that are all apart are always cut; other chunks only around anchors that appear once the parts are
    joined. At most `limit` letters are cut.
    """
    tokens = Tokens([], [], [])
    done = letters = 0
    overflow = None
    for chunk in _CHUNK.finditer(text):
        written = chunk.group()
        joined = _NOT_LETTER.sub("", written)
        spelled_out = len(written) >= 2 * len(joined) - 1
        windows = [(0, len(joined))] if spelled_out else _windows(written, joined, vocabulary)
        if not windows:
            continue
        letters += sum(end - start for start, end in windows)
        if letters > limit:
            overflow = chunk.span()
            break
        start, end = chunk.span()
        append_tokens(tokens, text, done, start)
        positions = [letter.start() for letter in _LETTER.finditer(text, start, end)]
        bounds = _word_bounds(_NOT_LETTER.findall(written)) if spelled_out else frozenset()
        for piece_start, piece_end in _cut_windows(joined, windows, bounds, vocabulary):
            tokens.words.append(joined[piece_start:piece_end])
            tokens.starts.append(positions[piece_start])
            tokens.ends.append(positions[piece_end - 1] + 1)
        done = end
    if done == 0:
        return Rejoined(None, letters, overflow)
    append_tokens(tokens, text, done, len(text))
    return Rejoined(tokens, letters, overflow)


def _windows(written: str, joined: str, vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """The parts of `joined` around anchors, if any of them is not a word of `written` by itself."""
    if len(joined) < vocabulary.shortest_anchor or vocabulary.anchors.search(joined) is None:
        return []
    found = list(vocabulary.anchors.finditer(joined))
    if set(_NOT_LETTER.split(written)).issuperset(match.group() for match in found):
        return []
    windows: list[tuple[int, int]] = []
    for match in found:
        start, end = max(0, match.start() - AROUND_ANCHOR), min(len(joined), match.end() + AROUND_ANCHOR)
        if windows and start <= windows[-1][1]:
            start = windows.pop()[0]
        windows.append((start, end))
    return windows


def _cut_windows(
    joined: str, windows: list[tuple[int, int]], bounds: frozenset[int], vocabulary: Vocabulary
) -> list[tuple[int, int]]:
    """Spans of pieces; what lies between windows is one piece each."""
    pieces: list[tuple[int, int]] = []
    done = 0
    for start, end in windows:
        if done < start:
            pieces.append((done, start))
        pieces.extend(
            (start + first, start + last) for first, last in _best_cut(joined[start:end], bounds, vocabulary)
        )
        done = end
    if done < len(joined):
        pieces.append((done, len(joined)))
    return pieces


def _best_cut(letters: str, bounds: frozenset[int], vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """The cut along `bounds` where they tell words apart, else the cheapest one."""
    free = _cut(letters, frozenset(), vocabulary)
    if not bounds:
        return free
    hinted = _cut(letters, bounds, vocabulary)
    loss = _loss(hinted, letters, vocabulary)
    return hinted if loss <= MAX_HINT_LOSS * _loss(free, letters, vocabulary) else free


def _word_bounds(gaps: list[str]) -> frozenset[int]:
    """Where words end in letters that are all apart: at the longer gaps, or at spaces between other marks."""
    shortest = min(map(len, gaps))
    if max(map(len, gaps)) > shortest:
        return frozenset(number for number, gap in enumerate(gaps, 1) if len(gap) > shortest)
    if set(gaps) == {" "}:
        return frozenset()
    return frozenset(number for number, gap in enumerate(gaps, 1) if gap == " ")


def _loss(pieces: list[tuple[int, int]], letters: str, vocabulary: Vocabulary) -> float:
    return sum(
        _WORD_COST if letters[start:end] in vocabulary.words else _LETTER_COST * (end - start)
        for start, end in pieces
    )


def _cut(letters: str, bounds: frozenset[int], vocabulary: Vocabulary) -> list[tuple[int, int]]:
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
    pieces: list[tuple[int, int]] = []
    position = 0
    while position < size:
        end = position + step[position]
        loose = step[position] == 1 and position not in bounds
        if loose and pieces and letters[slice(*pieces[-1])] not in words:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((position, end))
        position = end
    return pieces
