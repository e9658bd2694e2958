"""Written by bench/fit_recall.py; do not edit."""

from __future__ import annotations

RANKING: dict[str, float] = {
    "cosine": 3.65,
    "bm25": 3.62,
    "author_named": 2.31,
    "length": 1.28,
    "asks": -0.61,
    "after_question": 0.42,
    "time_asked_and_named": 2.09,
    "cosine+1": 0.74,
    "cosine-1": 0.26,
    "bm25+1": 0.43,
    "bm25-1": 2.04,
    "cosine+2": 0.28,
    "cosine-2": -0.95,
    "bm25+2": 0.46,
    "bm25-2": 1.56,
    "around": 0.5,
}
ANSWER: dict[str, float] = {}
HIT: dict[str, float] = {}
THRESHOLD: float = 0.0
