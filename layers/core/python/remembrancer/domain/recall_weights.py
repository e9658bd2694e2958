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
    "bias": -7.2968,
    "cosine_top": 0.3486,
    "cosine_best": 5.5507,
    "coverage_top": -0.4322,
    "coverage_best": 1.1880,
    "coverage_around": 0.9120,
    "unseen": -0.1662,
    "agreement": -0.0172,
    "lead": 0.2883,
    "mass": 0.7330,
    "specific": 0.2309,
    "named": -1.1460,
    "named_cosine": -2.1994,
    "named_cosine_margin": -2.9710,
    "named_coverage": 0.0970,
    "named_coverage_margin": 1.1727,
    "named_first": 0.9930,
    "named_score_margin": -0.0088,
    "named_bm25_margin": -0.2077,
    "named_mass": 1.6490,
    "named_top3": 0.6481,
    "named_top10": 0.7905,
}
HIT: dict[str, float] = {
    "bias": -1.7110,
    "answer": 0.6322,
    "behind": -0.6458,
    "rank": -0.5347,
    "cosine": 0.6064,
    "coverage": 0.6393,
}
TYPICAL: dict[str, float] = {
    "lead": 5.2310,
    "mass": 0.7058,
}
THRESHOLD: float = 0.2125
