"""Whether what was found answers the question, as a probability: logistic models over a few features.

The features compare what was said with who said it: most questions that must not be answered ask of one person
what another one said. Weights and threshold are fitted by bench/fit_recall.py, committed in `recall_weights`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from remembrancer.domain.names import fold
from remembrancer.domain.query import Question, mentions
from remembrancer.domain.ranking import Candidate, chains
from remembrancer.domain.recall_weights import ANSWER, HIT, RANKING, THRESHOLD, TYPICAL

TOP = 10
_PRIOR = 200
"""Passages that every word is imagined to be missing from: a share of three passages proves little."""

_NONE: frozenset[int] = frozenset()

ANSWER_FEATURES = (
    "cosine_top",
    "cosine_best",
    "coverage_top",
    "coverage_best",
    "coverage_around",
    "unseen",
    "agreement",
    "lead",
    "mass",
    "specific",
    "named",
    "named_cosine",
    "named_cosine_margin",
    "named_coverage",
    "named_coverage_margin",
    "named_first",
    "named_score_margin",
    "named_bm25_margin",
    "named_mass",
    "named_top3",
    "named_top10",
    "graph",
)
HIT_FEATURES = ("answer", "behind", "rank", "cosine", "coverage")


def word_weights(
    question: Question, holding: Sequence[int], passages: int, authors: Sequence[str]
) -> list[float]:
    """The weight of each word of the question: how rare it is, nothing for the name of an author."""
    names = {part for author in authors for part in fold(author).split()}
    weights = []
    place = 0
    for asked in question.words:
        counts = holding[place : place + len(asked.forms)]
        place += len(asked.forms)
        seen = max(counts, default=0)
        named = fold(asked.word) in names
        weights.append(0.0 if named else math.log(1 + (_PRIOR + passages - seen + 0.5) / (seen + 0.5)))
    return weights


@dataclass(frozen=True)
class Coverage:
    """Of the words of a question: `weights` (rarity) of each, `held` by each candidate, and the share (0..1) of
    the weights that each candidate holds."""

    weights: list[float]
    held: list[frozenset[int]]
    shares: list[float]


def coverage(
    question: Question, candidates: Sequence[Candidate], holding: Sequence[int], passages: int
) -> Coverage:
    """`holding` counts the `passages` that hold each form of the words."""
    authors = sorted({candidate.author for candidate in candidates if candidate.author})
    weights = word_weights(question, holding, passages, authors)
    held = words_held(question, candidates)
    return Coverage(weights, held, [_covered(weights, words) for words in held])


def words_held(question: Question, candidates: Sequence[Candidate]) -> list[frozenset[int]]:
    """Which words of the question each candidate holds, in any form."""
    word_of = [place for place, asked in enumerate(question.words) for _ in asked.forms]
    return [
        _NONE
        if candidate.held is None
        else frozenset([word for word, count in zip(word_of, candidate.held, strict=True) if count])
        for candidate in candidates
    ]


def answer_features(
    question: Question,
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    holding: Sequence[int],
    covering: Coverage,
    author_weight: float = RANKING["author_named"],
) -> dict[str, float]:
    """The features of the whole answer; `scores` are the ranking's, in which a named author counts
    `author_weight`. `candidates` must not be empty."""
    weights, held, covered = covering.weights, covering.held, covering.shares
    total = sum(weights)
    order = sorted(range(len(candidates)), key=lambda i: -scores[i])
    top = order[:TOP]
    first = order[0]
    beside = _beside(candidates)
    around = [_covered(weights, held[i].union(*(held[o] for o in beside.get(i, ())))) for i in top]
    by_cosine = sorted(range(len(candidates)), key=lambda i: -candidates[i].cosine)[:TOP]
    said = [i for i in range(len(candidates)) if candidates[i].bm25 > 0]
    by_bm25 = sorted(said, key=lambda i: -candidates[i].bm25)[:TOP]
    unseen = sum(weight for weight, words in zip(weights, _seen(question, holding), strict=True) if not words)
    lead, mass = _spread([scores[i] for i in order])
    named_authors = {
        a for a in {c.author for c in candidates} if a is not None and mentions(question.name_words, a)
    }
    own = [i for i in range(len(candidates)) if candidates[i].author in named_authors]
    ours = set(own)
    others = [i for i in range(len(candidates)) if candidates[i].author and i not in ours]
    named = bool(own) and bool(others)

    def best(of: Sequence[int], value: Callable[[int], float]) -> float:
        return max((value(i) for i in of), default=0.0)

    def cosine(i: int) -> float:
        return candidates[i].cosine

    def coverage(i: int) -> float:
        return covered[i]

    return {
        "cosine_top": candidates[first].cosine,
        "cosine_best": candidates[by_cosine[0]].cosine,
        "coverage_top": covered[first],
        "coverage_best": max(covered[i] for i in top),
        "coverage_around": max(around),
        "unseen": unseen / total if total else 0.0,
        "agreement": len(set(by_cosine) & set(by_bm25)) / TOP,
        "lead": lead,
        "mass": mass,
        "specific": math.log1p(total),
        "named": float(named),
        "named_cosine": best(own, cosine) if named else 0.0,
        "named_cosine_margin": best(own, cosine) - best(others, cosine) if named else 0.0,
        "named_coverage": best(own, coverage) if named else 0.0,
        "named_coverage_margin": best(own, coverage) - best(others, coverage) if named else 0.0,
        "named_first": sum(i in ours for i in top[:5]) / 5 if named else 0.0,
        **(
            _said_by(ours, [s - author_weight * (i in ours) for i, s in enumerate(scores)], candidates)
            if named
            else dict.fromkeys(_SAID_BY, 0.0)
        ),
        "graph": max(candidate.graph for candidate in candidates),
    }


_SAID_BY = ("named_score_margin", "named_bm25_margin", "named_mass", "named_top3", "named_top10")


def _said_by(
    ours: Collection[int], content: Sequence[float], candidates: Sequence[Candidate]
) -> dict[str, float]:
    """Who would be first if nobody had been named: the named author against the others, by the score of what is
    said alone."""
    order = sorted(range(len(content)), key=lambda i: -content[i])
    others = [i for i in order if i not in ours]
    mine = [i for i in order if i in ours]
    weights = {i: math.exp(content[i] - content[order[0]]) for i in order}
    best_bm25 = max(candidate.bm25 for candidate in candidates) or 1.0
    return {
        "named_score_margin": content[mine[0]] - content[others[0]],
        "named_bm25_margin": (max(candidates[i].bm25 for i in mine) - max(candidates[i].bm25 for i in others))
        / best_bm25,
        "named_mass": sum(weights[i] for i in mine) / sum(weights.values()),
        "named_top3": sum(i in ours for i in order[:3]) / 3,
        "named_top10": sum(i in ours for i in order[:10]) / 10,
    }


def _spread(ordered: Sequence[float]) -> tuple[float, float]:
    """How far the first score is before the tenth, and its share by softmax; those of a clear first when there
    are too few candidates to tell."""
    if len(ordered) < TOP:
        return TYPICAL["lead"], TYPICAL["mass"]
    return ordered[0] - ordered[TOP - 1], 1.0 / sum(math.exp(score - ordered[0]) for score in ordered)


def answer_probability(values: Mapping[str, float]) -> float:
    """The probability that the top ten hold the answer."""
    return _sigmoid(logit(ANSWER, values))


def hit_features(answer: float, behind: float, rank: int, cosine: float, coverage: float) -> dict[str, float]:
    """`answer` is the probability of the whole, `behind` how far the score is from the first's, rank from 1."""
    clipped = min(max(answer, 1e-6), 1 - 1e-6)
    return {
        "answer": math.log(clipped / (1 - clipped)),
        "behind": behind,
        "rank": math.log(rank),
        "cosine": cosine,
        "coverage": coverage,
    }


def hit_probability(values: Mapping[str, float]) -> float:
    """The probability that this hit is part of the answer: what `relevance` and `min_relevance` mean."""
    return _sigmoid(logit(HIT, values))


def answers(probability: float) -> bool:
    """Whether the probability is enough to answer, at the one operating point."""
    return probability >= THRESHOLD


def logit(model: Mapping[str, float], values: Mapping[str, float]) -> float:
    return model.get("bias", 0.0) + sum(model.get(name, 0.0) * value for name, value in values.items())


def _beside(candidates: Sequence[Candidate]) -> dict[int, list[int]]:
    """The one before and the one after each candidate in its source."""
    beside: dict[int, list[int]] = {}
    for chain in chains(candidates):
        for one, other in pairwise(chain):
            beside.setdefault(one, []).append(other)
            beside.setdefault(other, []).append(one)
    return beside


def _seen(question: Question, holding: Sequence[int]) -> list[bool]:
    seen = []
    place = 0
    for asked in question.words:
        seen.append(any(holding[place : place + len(asked.forms)]))
        place += len(asked.forms)
    return seen


def _covered(weights: Sequence[float], words: frozenset[int]) -> float:
    total = sum(weights) if words else 0.0
    return sum([weights[i] for i in words]) / total if total else 0.0


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
