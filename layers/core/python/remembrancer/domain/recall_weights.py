"""Written by bench/fit_recall.py from LoCoMo conversations 0-4; do not edit."""

from __future__ import annotations

RANKING: dict[str, float] = {
    "cosine": 3.5268,
    "bm25": 3.7149,
    "cosine+1": 0.6306,
    "bm25+1": 0.6721,
    "cosine-1": 0.2237,
    "bm25-1": 2.1563,
    "cosine+2": 0.5857,
    "bm25+2": 0.7446,
    "cosine-2": -0.3179,
    "bm25-2": 1.5346,
    "around": 0.4871,
    "author_named": 2.1698,
    "length": 1.2812,
    "asks": -0.5711,
    "after_question": 0.4018,
    "time_asked_and_named": 2.2140,
}
ANSWER: dict[str, float] = {
    "bias": -7.2916,
    "cosine_top": 0.3507,
    "cosine_best": 5.5458,
    "coverage_top": -0.4314,
    "coverage_best": 1.1893,
    "coverage_around": 0.9123,
    "unseen": -0.1644,
    "agreement": -0.0159,
    "lead": 0.2848,
    "mass": 0.7490,
    "specific": 0.2316,
    "named": -1.1420,
    "named_cosine": -2.1973,
    "named_cosine_margin": -2.9683,
    "named_coverage": 0.0970,
    "named_coverage_margin": 1.1706,
    "named_first": 0.9849,
    "named_score_margin": -0.0087,
    "named_bm25_margin": -0.2064,
    "named_mass": 1.6536,
    "named_top3": 0.6496,
    "named_top10": 0.7845,
}
HIT: dict[str, float] = {
    "bias": -1.7117,
    "answer": 0.6320,
    "behind": -0.6456,
    "rank": -0.5350,
    "cosine": 0.6075,
    "coverage": 0.6397,
}
TYPICAL: dict[str, float] = {
    "lead": 5.2273,
    "mass": 0.7057,
}
THRESHOLD: float = 0.1994
