"""Fitted on LoCoMo conversations 0-4 (bench/fit_recall.py; docs/recall.md says how clean the figures are)."""

from __future__ import annotations

RANKING: dict[str, float] = {
    "cosine": 3.9111,
    "bm25": 3.9814,
    "cosine+1": 0.9040,
    "bm25+1": 0.7094,
    "cosine-1": 0.4029,
    "bm25-1": 2.2929,
    "cosine+2": 0.4287,
    "bm25+2": 0.8942,
    "cosine-2": -0.7673,
    "bm25-2": 1.8959,
    "around": 0.2356,
    "author_named": 2.3035,
    "length": 1.2368,
    "asks": -0.5702,
    "after_question": 0.3970,
    "time_asked_and_named": 2.1619,
}
ANSWER: dict[str, float] = {
    "bias": -7.4351,
    "cosine_top": 0.2804,
    "cosine_best": 5.4003,
    "coverage_top": -0.3651,
    "coverage_best": 1.2144,
    "coverage_around": 0.8353,
    "unseen": 0.0155,
    "agreement": -0.3123,
    "lead": 0.2952,
    "mass": 0.5925,
    "specific": 0.3014,
    "named": -0.7466,
    "named_cosine": -2.3817,
    "named_cosine_margin": -2.8717,
    "named_coverage": -0.1760,
    "named_coverage_margin": 1.5923,
    "named_first": 1.0810,
    "named_score_margin": 0.0042,
    "named_bm25_margin": -0.4297,
    "named_mass": 1.5081,
    "named_top3": 0.6430,
    "named_top10": 0.8013,
}
HIT: dict[str, float] = {
    "bias": -1.8518,
    "answer": 0.5519,
    "behind": -0.5657,
    "rank": -0.7946,
    "cosine": 0.7270,
    "coverage": 0.9048,
}
TYPICAL: dict[str, float] = {
    "lead": 5.4973,
    "mass": 0.7131,
}
THRESHOLD: float = 0.1964
