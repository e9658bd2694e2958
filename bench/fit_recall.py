"""Fits the ranking, the abstention and the relevance of recall on LoCoMo conversations 0-4, and writes
layers/core/python/remembrancer/domain/recall_weights.py. `bench/recall.py` reports on conversations 5-9.

    python -m bench.fit_recall --data DIR [--write]

Method. Ranking: linear in the features of domain/ranking.py, listwise softmax, L2 1e-3, Adam. Answer: logistic in
the features of domain/abstention.py (L2 10 on standardized features, Newton); positives are the questions of
categories 1-4 whose first ten hold evidence; negatives the category-5 questions, the questions whose evidence is
held out of the store, and questions of another conversation. Hit: logistic, positives are hits that are evidence.
Threshold: what is lost to it is measured out of fold, since what was fitted loses more on what is new: each
conversation by the ranking and the abstention fitted on the other four. It is the highest at which the loss of
recall@10 and one standard error of it (jackknife over the conversations) stay within ALLOWED. The weights are those
of all five.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg

from bench import locomo
from bench.locomo import Asked, CachedEmbedder, Conversation
from local.postgres import MIGRATOR, OWNER, Server
from remembrancer.domain import abstention, query, ranking
from remembrancer.domain.requests import RecallRequest
from remembrancer.flows import recall
from remembrancer.flows.context import Services
from remembrancer.flows.recall import Ranked
from remembrancer.store.migrate import migrate

ALLOWED = 0.05
"""Of recall@10, what may be given up for abstention: five points."""
WEIGHTS = Path(__file__).parent.parent / "layers/core/python/remembrancer/domain/recall_weights.py"


@dataclass(frozen=True)
class Case:
    """One question as ranked, with the memories that answer it (empty: it must not be answered)."""

    conversation: int
    asked: Asked
    ranked: Ranked
    gold: frozenset[UUID]

    @property
    def order(self) -> list[UUID]:
        return [self.ranked.candidates[i].memory_id for i in self.ranked.best]


@dataclass
class Bench:
    """A database with the conversations in it, and recall as its function runs it."""

    reader: Services
    embedder: CachedEmbedder
    owner_url: str
    conversations: list[Conversation]

    def case(self, conversation: Conversation, asked: Asked, *, answerable: bool = True) -> Case:
        question = query.understand(asked.text, datetime.now(UTC))
        [vector] = self.embedder.embed([question.text])
        request = RecallRequest(query=asked.text, limit=20)
        ranked = self.reader.database.read(
            conversation.credential,
            lambda unit: recall.rank(unit, request, question, vector, self.embedder.contract),
        )
        gold = frozenset(conversation.ids[g] for g in asked.gold) if answerable else frozenset()
        return Case(conversation.number, asked, ranked, gold)

    def embed_questions(self, texts: Sequence[str]) -> None:
        now = datetime.now(UTC)
        self.embedder.embed([query.understand(text, now).text for text in texts])

    @contextmanager
    def without(self, conversation: Conversation, turns: Sequence[str]) -> Iterator[None]:
        """The turns are out of every leg, counts and statistics included, by the hold-out that erasure waits
        behind; afterwards they are back."""
        ids = [conversation.ids[turn] for turn in turns]
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
                " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
                " where memory_id = any (%s)",
                (ids,),
            )
            try:
                yield
            finally:
                owner.execute("delete from hold_out where memory_id = any (%s)", (ids,))

    def removed(self, conversation: Conversation, questions: Sequence[Asked]) -> list[Case]:
        cases = []
        for asked in questions:
            with self.without(conversation, asked.gold):
                cases.append(self.case(conversation, asked, answerable=False))
        return cases


@contextmanager
def opened(data: Path, numbers: Sequence[int]) -> Iterator[Bench]:
    """A fresh durable PostgreSQL in a temporary folder with these conversations stored."""
    with tempfile.TemporaryDirectory(prefix="rem-bench-") as folder:
        Path(folder).chmod(0o755)
        # A starved machine is no idle client.
        patient = {"idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0"}
        with Server(Path(folder) / "data", flavour="16", settings=patient) as server:
            server.ensure_database("bench")
            with psycopg.connect(server.url(MIGRATOR, "bench"), autocommit=True) as connection:
                migrate(connection)
            yield filled(server, "bench", data, numbers)


def filled(server: Server, database: str, data: Path, numbers: Sequence[int]) -> Bench:
    embedder = CachedEmbedder()
    owner = locomo.services(server.url(MIGRATOR, database), embedder)
    ingest = locomo.services(server.url("rem_ingest", database), embedder)
    conversations = [c for c in locomo.read(data) if c.number in numbers]
    for conversation in conversations:
        locomo.store(owner, ingest, conversation)
    embedder.save()
    with psycopg.connect(server.url(OWNER, database), autocommit=True) as connection:
        connection.execute("vacuum analyze")
    reader = locomo.services(server.url("rem_recall", database), embedder)
    return Bench(reader, embedder, server.url(OWNER, database), conversations)


@dataclass
class Cases:
    answerable: list[Case]
    adversarial: list[Case]
    removed: list[Case]
    foreign: list[Case]

    @property
    def parts(self) -> tuple[list[Case], list[Case], list[Case], list[Case]]:
        return self.answerable, self.adversarial, self.removed, self.foreign

    @property
    def everything(self) -> list[Case]:
        return [case for some in self.parts for case in some]

    def chosen(self, wanted: Callable[[Case], bool]) -> Cases:
        return Cases(*([case for case in some if wanted(case)] for some in self.parts))


def collect(bench: Bench) -> Cases:
    """Every question of the conversations, and each conversation asked the next one's."""
    cases = Cases([], [], [], [])
    bench.embed_questions([asked.text for c in bench.conversations for asked in c.questions])
    for place, conversation in enumerate(bench.conversations):
        print(f"conversation {conversation.number}", file=sys.stderr, flush=True)
        cases.answerable += [bench.case(conversation, asked) for asked in conversation.answerable]
        cases.adversarial += [
            bench.case(conversation, asked, answerable=False) for asked in conversation.adversarial
        ]
        cases.removed += bench.removed(conversation, conversation.answerable)
        other = bench.conversations[(place + 1) % len(bench.conversations)]
        if other is not conversation:
            cases.foreign += [
                bench.case(conversation, asked, answerable=False) for asked in other.answerable[::4]
            ]
    bench.embedder.save()
    return cases


def fit_ranking(cases: Sequence[Case], rounds: int = 250) -> dict[str, float]:
    """Listwise softmax: the mean log probability of the evidence among all candidates."""
    data = []
    for case in cases:
        rows = np.array(case.ranked.features)
        hits = [i for i, c in enumerate(case.ranked.candidates) if c.memory_id in case.gold]
        if hits:
            data.append((rows, hits))
    spread = np.mean([rows.std(axis=0) for rows, _ in data], axis=0)
    used = [i for i, name in enumerate(ranking.FEATURES) if spread[i] > 1e-9 and name not in ranking.UNFITTED]
    scaled = [(rows[:, used] / spread[used], hits) for rows, hits in data]
    weights = np.ones(len(used))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, rounds + 1):
        slope = 1e-3 * weights
        for rows, hits in scaled:
            score = rows @ weights
            share = np.exp(score - score.max())
            share /= share.sum()
            slope = slope + (share @ rows - rows[hits].mean(axis=0)) / len(scaled)
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        weights = weights - 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return {ranking.FEATURES[i]: float(w / spread[i]) for i, w in zip(used, weights, strict=True)}


def fit_logistic(
    rows: Sequence[dict[str, float]], labels: Sequence[bool], names: Sequence[str], l2: float = 10.0
) -> dict[str, float]:
    """Newton on standardized features; the weights of the raw ones, with `bias`."""
    x = np.array([[row[name] for name in names] for row in rows])
    y = np.array(labels, float)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    used = spread > 1e-9
    z = np.column_stack([np.ones(len(x)), (x[:, used] - mean[used]) / spread[used]])
    penalty = np.full(z.shape[1], l2)
    penalty[0] = 0
    w = np.zeros(z.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-(z @ w)))
        slope = z.T @ (p - y) + penalty * w
        curve = (z * (p * (1 - p))[:, None]).T @ z + np.diag(penalty)
        w = w - np.linalg.solve(curve, slope)
    raw = w[1:] / spread[used]
    fitted = {name: float(v) for name, v in zip(np.array(names)[used], raw, strict=True)}
    return {"bias": float(w[0] - raw @ mean[used]), **fitted}


def rescored(case: Case, weights: dict[str, float]) -> tuple[list[float], list[int]]:
    """Scores and order of one candidate a memory, under other weights."""
    vector = [weights.get(name, ranking.UNFITTED.get(name, 0.0)) for name in ranking.FEATURES]
    scores = [sum(w * x for w, x in zip(vector, row, strict=True)) for row in case.ranked.features]
    best: dict[UUID, int] = {}
    for index in sorted(range(len(scores)), key=lambda i: -scores[i]):
        best.setdefault(case.ranked.candidates[index].memory_id, index)
    return scores, list(best.values())


def recall_at(case: Case, order: Sequence[UUID], k: int) -> float:
    return len(set(order[:k]) & case.gold) / len(case.gold)


def answer_row(case: Case, scores: Sequence[float], author_weight: float) -> dict[str, float]:
    ranked = case.ranked
    found = ranked.found
    covering = abstention.coverage(ranked.question, ranked.candidates, found.holding, found.passages)
    return abstention.answer_features(
        ranked.question, ranked.candidates, scores, found.holding, covering, author_weight
    )


@dataclass(frozen=True)
class Judge:
    """A ranking and an abstention, and what they make of a case."""

    ranking: dict[str, float]
    answer: dict[str, float]

    def row(self, case: Case) -> tuple[dict[str, float], list[float], list[int]]:
        """The features of the answer, the scores of the candidates, the order of the memories."""
        scores, best = rescored(case, self.ranking)
        return answer_row(case, scores, self.ranking["author_named"]), scores, best

    def sure(self, row: dict[str, float]) -> float:
        return float(1 / (1 + np.exp(-abstention.logit(self.answer, row))))


def found_at_ten(case: Case, best: Sequence[int]) -> float:
    """recall@10 of the case in this order; 0 where there is nothing to find."""
    order = [case.ranked.candidates[i].memory_id for i in best]
    return recall_at(case, order, 10) if case.gold else 0.0


def judge(cases: Cases) -> Judge:
    """Fitted on these cases."""
    ranker = Judge(fit_ranking(cases.answerable), {})
    seen = [(case, *ranker.row(case)) for case in cases.everything]
    labels = [found_at_ten(case, best) > 0 for case, _, _, best in seen]
    model = fit_logistic([row for _, row, _, _ in seen], labels, abstention.ANSWER_FEATURES)
    return Judge(ranker.ranking, model)


@dataclass(frozen=True)
class Fold:
    """The answerable questions of one conversation under a judge that has not seen it."""

    recalls: Sequence[float]
    probabilities: Sequence[float]

    def lost(self, threshold: float) -> float:
        """The sum of the recall that is not answered."""
        return sum(r for r, p in zip(self.recalls, self.probabilities, strict=True) if p < threshold)


def out_of_fold(cases: Cases, report: Callable[[str], None]) -> list[Fold]:
    """One fold a conversation; what else would be answered at a few thresholds is reported."""
    folds = []
    unanswerable: dict[str, list[float]] = {"category 5": [], "removed": [], "foreign": []}
    for number in sorted({case.conversation for case in cases.answerable}):
        judged = judge(cases.chosen(lambda case, n=number: case.conversation != n))
        held = cases.chosen(lambda case, n=number: case.conversation == n)
        rows = [(case, *judged.row(case)) for case in held.answerable]
        folds.append(
            Fold(
                [found_at_ten(case, best) for case, _, _, best in rows],
                [judged.sure(row) for _, row, _, _ in rows],
            )
        )
        for name, some in zip(unanswerable, held.parts[1:], strict=True):
            unanswerable[name] += [judged.sure(judged.row(case)[0]) for case in some]
    for threshold in (0.15, 0.175, 0.2, 0.225, 0.25):
        lost, error = loss(folds, threshold)
        shares = ", ".join(
            f"{name} {np.mean([p >= threshold for p in sure]):.3f}"
            for name, sure in unanswerable.items()
            if sure
        )
        report(f"out of fold at {threshold:.3f}: lost {lost:.4f}, standard error {error:.4f}; {shares}")
    return folds


def loss(folds: Sequence[Fold], threshold: float) -> tuple[float, float]:
    """The mean recall lost over all questions, and its standard error: the jackknife that leaves out one
    conversation (Efron and Tibshirani 1993, eq. 11.5), since questions of one conversation are alike."""
    lost = [fold.lost(threshold) for fold in folds]
    asked = [len(fold.recalls) for fold in folds]
    without = np.array([(sum(lost) - a) / (sum(asked) - n) for a, n in zip(lost, asked, strict=True)])
    spread = (len(folds) - 1) / len(folds) * ((without - without.mean()) ** 2).sum()
    return sum(lost) / sum(asked), float(np.sqrt(spread))


def operating_point(folds: Sequence[Fold]) -> float:
    """The highest threshold before the loss and its standard error first exceed ALLOWED."""
    reached = 0.0
    for threshold in sorted({p for fold in folds for p in fold.probabilities}):
        if sum(loss(folds, threshold)) > ALLOWED:
            break
        reached = threshold
    return reached


def fit(cases: Cases, report: Callable[[str], None] = print) -> dict[str, Any]:
    # A question that nothing passes the filters of (a quoted phrase nobody said) is not answered anyway.
    cases = cases.chosen(lambda case: bool(case.ranked.best))
    # Half of the removed: as many of each kind would make the model blind to who said what.
    cases.removed = cases.removed[::2]
    judged = judge(cases)
    threshold = operating_point(out_of_fold(cases, report))
    report(f"threshold {threshold:.4f}")
    everything = [(case, *judged.row(case)) for case in cases.everything]
    sure = [judged.sure(row) for _, row, _, _ in everything]
    n = len(cases.answerable)
    hit_rows, hit_labels = [], []
    for (case, _, scores, best), p in zip(everything, sure, strict=True):
        ranked = case.ranked
        covering = abstention.coverage(
            ranked.question, ranked.candidates, ranked.found.holding, ranked.found.passages
        )
        for place, index in enumerate(best[:20], start=1):
            candidate = ranked.candidates[index]
            hit_rows.append(
                abstention.hit_features(
                    p, scores[best[0]] - scores[index], place, candidate.cosine, covering.shares[index]
                )
            )
            hit_labels.append(candidate.memory_id in case.gold)
    hit = fit_logistic(hit_rows, hit_labels, abstention.HIT_FEATURES)
    # Where there are too few rivals to compare with, the first counts as one that stands clear of them.
    seen = {name: [row[name] for _, row, _, _ in everything[:n]] for name in ("lead", "mass")}
    typical = {name: float(np.mean(values) + np.std(values)) for name, values in seen.items()}
    return {
        "RANKING": judged.ranking,
        "ANSWER": judged.answer,
        "HIT": hit,
        "TYPICAL": typical,
        "THRESHOLD": threshold,
    }


def written(fitted: dict[str, Any]) -> str:
    """The module of the weights."""
    lines = ['"""Written by bench/fit_recall.py from LoCoMo conversations 0-4; do not edit."""', ""]
    lines += ["from __future__ import annotations", ""]
    for name in ("RANKING", "ANSWER", "HIT", "TYPICAL"):
        lines.append(f"{name}: dict[str, float] = {{")
        lines += [f'    "{key}": {value:.4f},' for key, value in fitted[name].items()]
        lines.append("}")
    lines.append(f"THRESHOLD: float = {fitted['THRESHOLD']:.4f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="replace the committed weights")
    options = parser.parse_args()
    with opened(options.data, range(5)) as bench:
        fitted = fit(collect(bench))
    text = written(fitted)
    if options.write:
        WEIGHTS.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
