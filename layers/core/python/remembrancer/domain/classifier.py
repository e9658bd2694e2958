"""Layer 2 of the screen, the pure part: windows of a text, their features, and a small head over them.

The head is a small network on the sentence vector of each window, a few word counts, and how the window
stands in its text: a request that is harmless alone is not harmless in the middle of an e-mail.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

MAX_WINDOWS = 64
_PIECE = 300
"""Code points after which a sentence without an end is cut."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]{0,3}\s|[。！？]|\n|\|(?=\S)|</[a-z]{1,10}>")
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")

_CONCEPTS: tuple[tuple[str, str], ...] = (
    (
        "override",
        r"ignor\w*|disregard\w*|forget|overrid\w*|bypass\w*|discard|overrul\w*|cancel|supersede\w*|instead",
    ),
    (
        "rules",
        r"instructions?|rules?|guidelines?|prompts?|directives?|restrictions?|polic(?:y|ies)|constraints?",
    ),
    ("earlier", r"previous|prior|above|earlier|before|preceding|initial|original"),
    ("system", r"system|developer|debug|mode|root|terminal|configuration"),
    (
        "reply",
        r"your (?:\w+ )?(?:response|reply|answer|output|summary|code|solution|implementation|program)s?",
    ),
    ("replying", r"(?:the|this|a) (?:response|reply|answer|output|summary)|respond|reply|answer(?:ing)?"),
    (
        "secret",
        r"passwords?|passcode|passphrase|secrets?|credentials?|tokens?|keys?|confidential|hidden|private",
    ),
    ("personal", r"addresse?s?|birth\w*|phone|salar(?:y|ies)|balance|residence|location|lives?"),
    ("you", r"you|your|yours|yourself"),
    ("self", r"i|i'm|i've|i'll|my|me|we|our|us|mine"),
    ("user", r"users?|customers?|clients?|visitors?"),
    ("machine", r"ai|assistants?|agents?|bots?|models?|chatbots?|llm|chatgpt|gpt|language model"),
    (
        "trigger",
        r"whenever|next time|from now on|every time|each time|as soon as|hereafter|any time|in future",
    ),
    ("condition", r"when|if|once|until|after|should"),
    (
        "stealth",
        r"do not (?:tell|mention|log)|never mention|without (?:telling|asking)|quietly|secretly|silently",
    ),
    ("send", r"send|forward|upload|post|email|transmit|transfer|share|copy|fetch|download|submit"),
    ("persona", r"act as|acting|pretend\w*|role|roleplay|character|persona|imagine|simulate|play"),
    (
        "grant",
        r"admin\w*|approved?|authori[sz]ed|permission|trusted|exempt\w*|cleared?|verified|rights|binding",
    ),
    ("store", r"remember|memory|memories|save|store|persist|append|insert|include|add|integrate|embed"),
    ("always", r"always|never|must|only|shall|regardless|immediately"),
    (
        "task",
        r"write|explain|describe|list|provide|give|tell|translate|create|compose|draft|generate|show|print",
    ),
    ("question", r"what|who|how|why|where|which|can you|could you"),
    ("said", r"said|says|wrote|asked|reads?|claimed|called|example|told"),
)
_CONCEPT = tuple(re.compile(rf"\b(?:{words})\b") for _, words in _CONCEPTS)
_TASK_START = re.compile(
    r"(?:^|[.!?:;|>]\s+)(?:please |now |then )?(?:write|explain|describe|list|provide|give|tell|translate|create|"
    r"compose|draft|generate|show|print|answer|respond|reply|use|replace|add|include|insert|integrate|modify|"
    r"ignore|forget|disregard|send|forward|upload|repeat|reveal|state|say|output|convert|encode|find|calculate|"
    r"summari[sz]e|suggest|recommend|promote|offer|ensure|act|pretend|play)\b"
)
_SUSPECT = re.compile(
    r"(?i)\b(?:ignor|disregard|forget|overrid|bypass|instruction|guideline|previous|prompt|system|assistant|"
    r"password|secret|credential|token|whenever|next time|from now|never mention|do not tell|send|forward|"
    r"upload|admin|approved|permission|remember|memory|pretend|act as|you are|your (?:reply|response|answer)|"
    r"write|explain|translate|promote|recommend|insert|user)"
)
_URL = re.compile(r"https?://|www\.|\b[\w-]+\.(?:com|net|org|example|xyz|io)\b|\w@\w")
_CODE = re.compile(r"```|[{}<>;=_]|\bimport\b|\bdef\b")

SHAPES = (
    "length",
    "digits",
    "capitals",
    "foreign",
    "questions",
    "exclamations",
    "quotes",
    "url",
    "code",
    "task_start",
)
LEXICAL = (*(name for name, _ in _CONCEPTS), *SHAPES)
"""Names of the word-count features, in order."""

DIMENSIONS = 384
SCALE = np.float32(4)
"""Brings the components of a unit vector to the order of the counts, so that one penalty suits both."""
FEATURES = 2 * DIMENSIONS + 2 * len(LEXICAL) + 3


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of `text`, blank ones left out; long ones cut into pieces. Linear."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end in [*(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]:
        while start < end:
            stop = end if end - start <= _PIECE else _word_end(text, start, start + _PIECE)
            if text[start:stop].strip():
                spans.append((start, stop))
            start = stop
    return spans


def _word_end(text: str, start: int, limit: int) -> int:
    space = text.rfind(" ", start + _PIECE // 2, limit)
    return space + 1 if space >= 0 else limit


def windows(text: str) -> list[tuple[int, int]]:
    """Spans of two neighbouring sentences each, overlapping by one; a lone sentence is a window."""
    spans = [_trim(text, start, end) for start, end in sentences(text)]
    if len(spans) < 2:
        return spans
    return [(first[0], second[1]) for first, second in pairwise(spans)]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def choose(texts: Sequence[str]) -> list[list[str]]:
    """The windows of every text of one request, within the budget of `limit`. Linear."""
    return limit([[text[start:end] for start, end in windows(text)] for text in texts])


def limit(chosen: Sequence[Sequence[str]]) -> list[list[str]]:
    """At most MAX_WINDOWS windows in all, in order: when there are more, those with the most suspicious words,
    so that an attack deep in a long document is not lost to the budget."""
    if sum(map(len, chosen)) <= MAX_WINDOWS:
        return [list(own) for own in chosen]
    ranked = [
        (-_suspicion(window), number, place)
        for number, own in enumerate(chosen)
        for place, window in enumerate(own)
    ]
    kept = {(number, place) for _, number, place in nsmallest(MAX_WINDOWS, ranked)}
    return [
        [window for place, window in enumerate(own) if (number, place) in kept]
        for number, own in enumerate(chosen)
    ]


def _suspicion(window: str) -> int:
    return len({found.group().lower()[:4] for found in _SUSPECT.finditer(window)})


def lexical(text: str) -> Floats:
    """Word counts of one window, shape (len(LEXICAL),), each of the order of 1."""
    lowered = text.lower()
    words = max(len(_WORD.findall(lowered)), 1)
    size = max(len(text), 1)
    counts = [min(len(concept.findall(lowered)), 3) / 3**0.5 for concept in _CONCEPT]
    shapes = [
        np.log1p(words) / 4,
        sum(character.isdigit() for character in text) / size * 4,
        sum(character.isupper() for character in text) / size * 4,
        sum(character > "\x7f" for character in text) / size,
        min(text.count("?"), 3) / 2,
        min(text.count("!"), 3) / 2,
        min(text.count('"') + text.count("“"), 4) / 4,
        float(_URL.search(lowered) is not None),
        min(len(_CODE.findall(text)), 8) / 8,
        min(len(_TASK_START.findall(lowered)), 3) / 2,
    ]
    return np.array([*counts, *shapes], np.float32)


def features(vectors: Floats, counts: Floats) -> Floats:
    """Features (n, FEATURES) of all windows of ONE text, from their vectors (n, 384) and counts (n, k)."""
    n = len(vectors)
    inside = np.full((n, 1), float(n > 1), np.float32)
    rest = vectors.sum(axis=0) - vectors
    rest = inside * rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-6)
    near = (vectors * rest).sum(axis=1, keepdims=True)
    share = inside * np.float32(np.log1p(n) / 4)
    parts = [vectors * SCALE, counts, counts * inside, rest * SCALE, inside, near, share]
    return np.concatenate(parts, axis=1).astype(np.float32)


@dataclass(frozen=True)
class Head:
    """One hidden layer of rectified units (n of them) over the features of a window, then a logistic output."""

    model_id: str
    contract: str
    """The vector space it was trained on; it means nothing on another."""
    inner: Floats
    """Shape (FEATURES + 1, n); the last row are the biases."""
    outer: Floats
    """Shape (n + 1,); the bias last."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Head:
        """Raises KeyError, TypeError or ValueError when the data are not a head."""
        inner, outer = unpack(data["weights"])
        return cls(str(data["model_id"]), str(data["contract"]), inner, outer)

    def logits(self, rows: Floats) -> Floats:
        """Log-odds (m,) of windows from their features (m, FEATURES)."""
        units = np.maximum(rows @ self.inner[:-1] + self.inner[-1], 0)
        odds: Floats = units @ self.outer[:-1] + self.outer[-1]
        return odds

    def score(self, vectors: Floats, counts: Floats) -> float:
        """Probability 0..1 that one text is an attack, from its windows; 0 when it has none."""
        if not len(vectors):
            return 0.0
        return float(1 / (1 + np.exp(-float(np.max(self.logits(features(vectors, counts)))))))


def pack(inner: Floats, outer: Floats) -> str:
    """A head's numbers as base64 of little-endian half precision: `inner` row by row, then `outer`."""
    return base64.b64encode(np.concatenate([inner.ravel(), outer]).astype("<f2").tobytes()).decode()


def unpack(text: str) -> tuple[Floats, Floats]:
    """`inner` and `outer` of `pack`. Raises TypeError or ValueError for anything else."""
    numbers = np.frombuffer(base64.b64decode(text, validate=True), "<f2").astype(np.float32)
    units, rest = divmod(len(numbers) - 1, FEATURES + 2)
    if units < 1 or rest or not np.isfinite(numbers).all():
        raise ValueError(f"a head has {FEATURES + 2} finite numbers a unit, and one more")
    cut = (FEATURES + 1) * units
    return numbers[:cut].reshape(FEATURES + 1, units), numbers[cut:]
