"""Written by bench/fit_recall.py from LoCoMo conversations 0-4; do not edit."""

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
    "bias": -9.1105,
    "cosine_top": -0.0213,
    "cosine_best": 6.7804,
    "coverage_top": -0.7492,
    "coverage_best": 1.5154,
    "coverage_around": 1.0912,
    "unseen": 0.3843,
    "agreement": -0.0487,
    "lead": 0.3724,
    "mass": 0.6866,
    "specific": 0.3588,
    "named": -0.3281,
    "named_cosine": -4.4041,
    "named_cosine_margin": -1.3601,
    "named_coverage": 0.2344,
    "named_coverage_margin": 1.2663,
    "named_first": 3.5368,
}
HIT: dict[str, float] = {
    "bias": -1.4631,
    "answer": 0.7610,
    "behind": -0.6606,
    "rank": -0.4640,
    "cosine": 0.2711,
    "coverage": 0.6475,
}
TYPICAL: dict[str, float] = {
    "lead": 3.9056,
    "mass": 0.4583,
}
THRESHOLD: float = 0.1476
