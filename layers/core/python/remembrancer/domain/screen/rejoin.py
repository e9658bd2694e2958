"""Words that were pulled apart (`i g n o r e`, `ig.no-re`) or run together, cut into known words again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import re2

from remembrancer.domain.screen.tokens import Tokens, append_tokens

LONG_WORD = 16
MIN_COVERED = 0.7
_GAP = r"(?:[^\w\n]{1,3}|_{1,3}|\n)"
_SPELLED_OUT = rf"(?<![^\W_])[^\W_](?:{_GAP}[^\W_]){{5,}}(?![^\W_])"
_PULLED_APART = r"[^\W_]+(?:(?:[^\w\s@:/]{1,3}|_{1,3})[^\W_]+)+"
_CHUNK = re.compile(rf"{_SPELLED_OUT}|{_PULLED_APART}|[^\W\d_]{{{LONG_WORD},}}")
_NOT_LETTER = re.compile(r"[\W_]+")
_LETTER = re.compile(r"[^\W_]")


def lengths_by_prefix(words: Collection[str]) -> dict[str, tuple[int, ...]]:
    """First two letters -> the word lengths worth trying there, for `rejoined`."""
    lengths: dict[str, set[int]] = {}
    for word in words:
        if len(word) >= 2 and word.isalpha():
            lengths.setdefault(word[:2], set()).add(len(word))
    return {prefix: tuple(sorted(found)) for prefix, found in lengths.items()}


def rejoined(
    text: str, words: Collection[str], lengths: Mapping[str, tuple[int, ...]], anchors: re2._Regexp
) -> Tokens | None:
    """Tokens of `text` in which chunks that are mostly known `words` are cut into those words.

    A chunk is cut only when one of `anchors` appears once its parts are joined. None when none was.
    """
    tokens = Tokens([], [], [])
    done = 0
    for chunk in _CHUNK.finditer(text):
        joined = _NOT_LETTER.sub("", chunk.group())
        found = anchors.findall(joined)
        if not found or set(_NOT_LETTER.split(chunk.group())).issuperset(found):
            continue
        pieces = _cut(joined, words, lengths)
        if pieces is None:
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
        return None
    append_tokens(tokens, text, done, len(text))
    return tokens


def _cut(
    letters: str, words: Collection[str], lengths: Mapping[str, tuple[int, ...]]
) -> list[tuple[int, int, str]] | None:
    """The cut with the fewest letters outside known words, then the fewest words; None when they are many."""
    size = len(letters)
    cost = [0.0] * (size + 1)
    step = [1] * (size + 1)
    for position in range(size - 1, -1, -1):
        best, best_step = cost[position + 1] + 1.0, 1
        for length in lengths.get(letters[position : position + 2], ()):
            if position + length <= size:
                candidate = cost[position + length] + 0.01
                if candidate < best and letters[position : position + length] in words:
                    best, best_step = candidate, length
        cost[position], step[position] = best, best_step
    if cost[0] > (1 - MIN_COVERED) * size:
        return None
    pieces: list[tuple[int, int, str]] = []
    position = 0
    while position < size:
        end = position + step[position]
        if step[position] == 1 and pieces and pieces[-1][2] not in words and pieces[-1][1] == position:
            pieces[-1] = (pieces[-1][0], end, letters[pieces[-1][0] : end])
        else:
            pieces.append((position, end, letters[position:end]))
        position = end
    return pieces
