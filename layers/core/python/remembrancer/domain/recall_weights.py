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
    "bias": -7.4405,
    "cosine_top": 1.0235,
    "cosine_best": 3.8979,
    "coverage_top": 0.1525,
    "coverage_best": 0.8605,
    "coverage_around": 0.8770,
    "bm25_top": -0.5802,
    "length_top": 0.5270,
    "unseen": -0.2601,
    "agreement": 0.1260,
    "lead": 0.2225,
    "mass": 0.6895,
    "specific": 0.0823,
    "named": -0.6109,
    "named_cosine": -1.0965,
    "named_cosine_margin": -2.4625,
    "named_coverage": 0.1111,
    "named_coverage_margin": 0.8352,
    "named_first": 0.3969,
    "named_score_margin": 0.0798,
    "named_bm25_margin": 0.1161,
    "named_mass": 0.8613,
    "named_top3": 0.5397,
    "named_top10": 0.5760,
}
HIT: dict[str, float] = {
    "bias": -1.9990,
    "answer": 0.5576,
    "behind": -0.5406,
    "rank": -0.6287,
    "cosine": 0.9468,
    "coverage": 0.7998,
}
TYPICAL: dict[str, float] = {
    "lead": 5.2273,
    "mass": 0.7057,
}
THRESHOLD: float = 0.2174
