"""Recall on LoCoMo: what is found, what is rightly not answered, how fast, beside others in the same run.

    .venv-bench/bin/python -m bench.recall --data DIR [--quick] [--json FILE] [--no-peers | --only-peers]

Method. Conversations 5-9 (nothing was fitted on them); each turn is a memory with its speaker and session date;
gold are the evidence turns of the questions of categories 1-4; recall@k is the share of a question's evidence in the
first k, averaged over questions. ONE committed threshold decides every answer. A category-5 question, a question
whose evidence is held out of the store, and the 200 queries of bench/corpus/unanswerable.jsonl are false answers
when answered. The peers get the same PostgreSQL (durable), embedder and RENDERED text; `bare` is the bare text.
Latency: whole calls with the embedding of the query, one at a time, warm, limit 10. --quick: conversation 9 alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from bench import peers
from bench.fit_recall import Bench, Case, opened, recall_at
from bench.locomo import Asked, Conversation, services
from local.postgres import OWNER
from remembrancer.domain import abstention, query
from remembrancer.domain.recall_weights import THRESHOLD
from remembrancer.domain.requests import RecallRequest
from remembrancer.flows import recall
from remembrancer.flows.context import Call
from remembrancer.store import search

CORPUS = Path(__file__).parent / "corpus" / "unanswerable.jsonl"
TIMED = 200
WARM = 10


def ranking_metrics(orders: Sequence[Sequence[Any]], golds: Sequence[frozenset[Any]]) -> dict[str, float]:
    """recall@5/10/20, MRR, nDCG@10 of orders against what they should hold."""
    rows = list(zip(orders, golds, strict=True))

    def mean(of: Callable[[Sequence[Any], frozenset[Any]], float]) -> float:
        return statistics.fmean(of(order, gold) for order, gold in rows)

    def dcg(places: Sequence[int]) -> float:
        return sum(1 / math.log2(place + 2) for place in places)

    return {
        **{f"recall_at_{k}": mean(lambda o, g, k=k: len(set(o[:k]) & g) / len(g)) for k in (5, 10, 20)},
        "mrr": mean(lambda o, g: next((1 / p for p, item in enumerate(o, 1) if item in g), 0.0)),
        "ndcg_at_10": mean(
            lambda o, g: dcg([p for p, item in enumerate(o[:10]) if item in g]) / dcg(range(min(10, len(g))))
        ),
    }


def line(name: str, values: dict[str, float]) -> str:
    return f"{name:34}" + "".join(f"{100 * value:8.1f}" for value in values.values())


def ablations(bench: Bench) -> dict[str, dict[str, float]]:
    """Our legs alone and fused plainly, over every memory of the conversation."""
    orders: dict[str, list[list[UUID]]] = {}
    golds: list[frozenset[UUID]] = []
    for conversation in bench.conversations:
        for asked in conversation.answerable:
            question = query.understand(asked.text, datetime.now(UTC))
            [vector] = bench.embedder.embed([question.text])
            rows = bench.reader.database.read(
                conversation.credential,
                lambda unit, q=question, v=vector: (
                    search.search(
                        unit,
                        search.Asking(
                            v, bench.embedder.contract, [f for w in q.words for f in w.forms], [], 2_000
                        ),
                        replace(
                            recall.filters_of(unit, RecallRequest(query="x"), q), phrases=(), excluded=()
                        ),
                    ).rows
                ),
            )
            near = _ranked({r["memory_id"]: float(r["cosine"]) for r in rows})
            said = _ranked({r["memory_id"]: float(r["bm25"]) for r in rows})
            fused = {m: 1 / (60 + near[m]) + 1 / (60 + said[m]) for m in near}
            cosines = _shares({r["memory_id"]: float(r["cosine"]) for r in rows})
            bm25s = _shares({r["memory_id"]: float(r["bm25"]) for r in rows})
            convex = {m: 0.6 * cosines[m] + 0.4 * bm25s[m] for m in near}
            for name, scores in (
                ("our vector leg alone", {m: -r for m, r in near.items()}),
                ("our BM25 leg alone", {m: -r for m, r in said.items()}),
                ("reciprocal rank, k = 60", fused),
                ("convex 0.6 / 0.4", convex),
            ):
                orders.setdefault(name, []).append(sorted(scores, key=lambda m, s=scores: -s[m]))
            golds.append(frozenset(conversation.ids[g] for g in asked.gold))
    return {name: ranking_metrics(found, golds) for name, found in orders.items()}


def full_text(bench: Bench) -> dict[str, float]:
    """PostgreSQL's own full text: the lexemes of the question OR-ed, ts_rank_cd."""
    orders, golds = [], []
    with psycopg.connect(bench.owner_url, autocommit=True) as owner:
        for conversation in bench.conversations:
            ids = list(conversation.ids.values())
            for asked in conversation.answerable:
                rows = owner.execute(
                    """
                    with q as (select coalesce(string_agg(quote_literal(lexeme), ' | '), '')::tsquery as query
                               from unnest(to_tsvector('english', %s)))
                    select memory_id from passage, q where memory_id = any (%s)
                      and to_tsvector('english', rendered) @@ q.query
                    order by ts_rank_cd(to_tsvector('english', rendered), q.query, 1) desc, memory_id limit 20
                    """,
                    (asked.text, ids),
                ).fetchall()
                orders.append([row[0] for row in rows])
                golds.append(frozenset(conversation.ids[g] for g in asked.gold))
    return ranking_metrics(orders, golds)


def peer_metrics(peer: peers.Peer, conversations: Sequence[Conversation], *, bare: bool) -> dict[str, float]:
    orders, golds = [], []
    for conversation in conversations:
        group = f"{'bare' if bare else 'rendered'}-{conversation.number}"
        texts = [(turn.text or "...") if bare else turn.rendered for turn in conversation.turns]
        peer.add(group, [turn.id for turn in conversation.turns], texts)
        for asked in conversation.answerable:
            orders.append(peer.search(group, asked.text, 20))
            golds.append(frozenset(asked.gold))
    return ranking_metrics(orders, golds)


def timed(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Milliseconds of each call, after WARM calls to warm up."""
    for call in calls[:WARM]:
        call()
    found = []
    for call in calls:
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return sorted(found)


def reliability(title: str, pairs: Sequence[tuple[float, bool]]) -> None:
    """Expected against observed, in tenths."""
    print(f"\n{title}: probability said, how often it was so, how many")
    for tenth in range(10):
        inside = [(p, y) for p, y in pairs if tenth / 10 <= p < (tenth + 1) / 10 or (tenth == 9 and p == 1)]
        if inside:
            said, so = (
                statistics.fmean(float(value) for value in column) for column in zip(*inside, strict=True)
            )
            print(f"  {said:6.2f} {so:8.2f} {len(inside):8}")


def measure(bench: Bench) -> dict[str, float]:
    """Our own figures, printed and returned."""
    answerable: list[Case] = []
    adversarial: list[Case] = []
    removed: list[Case] = []
    bench.embed_questions([asked.text for c in bench.conversations for asked in c.questions])
    for conversation in bench.conversations:
        answerable += [bench.case(conversation, asked) for asked in conversation.answerable]
        adversarial += [
            bench.case(conversation, asked, answerable=False) for asked in conversation.adversarial
        ]
        removed += bench.removed(conversation, conversation.answerable)
    lines = [json.loads(row) for row in CORPUS.read_text(encoding="utf-8").splitlines()]
    nonsense = [
        bench.case(conversation, Asked(row["query"], 0, ()), answerable=False)
        for place, conversation in enumerate(bench.conversations)
        for row in lines[place :: len(bench.conversations)]
    ]
    overall = ranking_metrics([case.order for case in answerable], [case.gold for case in answerable])
    print(line("Remembrancer", overall))
    for category in sorted({case.asked.category for case in answerable}):
        some = [case for case in answerable if case.asked.category == category]
        values = ranking_metrics([case.order for case in some], [case.gold for case in some])
        print(line(f"  category {category} ({len(some)} questions)", values))

    def at(threshold: float) -> tuple[float, float, float, float]:
        kept = statistics.fmean(
            recall_at(c, c.order, 10) * (c.ranked.probability >= threshold) for c in answerable
        )
        return (
            kept,
            *(
                statistics.fmean(c.ranked.probability >= threshold for c in cases)
                for cases in (adversarial, removed, nonsense)
            ),
        )

    print(
        "\nthreshold, recall@10 answered, answered of: category 5, removed evidence, nonsense and off-topic"
    )
    for threshold in sorted({*(n / 20 for n in range(1, 20)), THRESHOLD}):
        mark = " <- the operating point" if threshold == THRESHOLD else ""
        print(f"  {threshold:.3f} " + " ".join(f"{value:8.3f}" for value in at(threshold)) + mark)
    everything = [*answerable, *adversarial, *removed, *nonsense]
    reliability("Answer", [(c.ranked.probability, bool(set(c.order[:10]) & c.gold)) for c in everything])
    reliability(
        "Hit",
        [
            (p, c.ranked.candidates[i].memory_id in c.gold)
            for c in everything
            for i, p in list(zip(c.ranked.best, c.ranked.relevance, strict=True))[:10]
        ],
    )
    kept, cat5, gone, odd = at(THRESHOLD)
    return {
        **overall,
        "recall_at_10_answered": kept,
        "false_answer_rate_cat5": cat5,
        "false_answer_rate_removed": gone,
        "nonsense_answer_rate": odd,
        "threshold": THRESHOLD,
        **{f"answered_{k}": abstention_share(cases) for k, cases in (("answerable", answerable),)},
    }


def abstention_share(cases: Sequence[Case]) -> float:
    return statistics.fmean(abstention.answers(case.ranked.probability) for case in cases)


def latency(bench: Bench, reader_url: str) -> dict[str, float]:
    """Whole recalls, as the function runs them after the request was parsed."""
    real = services(reader_url, bench.embedder.real)
    asked = [(c, q.text) for c in bench.conversations for q in c.answerable][::5][:TIMED]
    calls = [
        lambda c=c, text=text: recall.recall(
            real,
            Call(
                credential=c.credential, correlation_id="bench", operation="recall", route="POST /v1/recall"
            ),
            RecallRequest(query=text),
        )
        for c, text in asked
    ]
    found = timed(calls)
    real.database.close()
    return {"p50_ms": found[len(found) // 2], "p95_ms": found[int(len(found) * 0.95)]}


def _ranked(scores: dict[UUID, float]) -> dict[UUID, int]:
    return {m: place for place, m in enumerate(sorted(scores, key=lambda m: -scores[m]), 1)}


def _shares(scores: dict[UUID, float]) -> dict[UUID, float]:
    low, high = min(scores.values()), max(scores.values())
    return {m: (s - low) / (high - low) if high > low else 0.0 for m, s in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--only-peers", action="store_true", help="the other half of --no-peers")
    options = parser.parse_args()
    print(__doc__)
    peers_here = importlib.util.find_spec("langgraph") is not None
    metrics: dict[str, float] = {}
    with opened(options.data, [9] if options.quick else range(5, 10)) as bench:
        print(f"{'':34}     R@5    R@10    R@20     MRR  nDCG@10")
        if not options.only_peers:
            metrics |= measure(bench)
            print()
            for name, values in ablations(bench).items():
                print(line(name, values), flush=True)
            print(line("PostgreSQL full text, ts_rank_cd", full_text(bench)), flush=True)
            metrics |= latency(bench, bench.owner_url.replace(OWNER, "rem_recall"))
        if not options.no_peers and not peers_here:
            print("\nNo peers in this environment: see docs/recall.md for `.venv-bench`.")
        elif not options.no_peers:
            metrics |= beside_peers(bench, options.quick)
        for name, value in metrics.items():
            print(f"{name:32} {value:.4g}")
    if options.json:
        options.json.write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


def beside_peers(bench: Bench, quick: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    with psycopg.connect(bench.owner_url, autocommit=True) as owner:
        for name in ("peer_store", "peer_mem0"):
            owner.execute(f"create database {name}".encode())
    for kind, name in ((peers.PostgresStore, "peer_store"), (peers.Mem0, "peer_mem0")):
        peer: peers.Peer = kind(bench.owner_url.replace("/bench", f"/{name}"), bench.embedder)
        rendered = peer_metrics(peer, bench.conversations, bare=False)
        print(line(f"{peer.name}, rendered text", rendered), flush=True)
        found[f"{peer.name.lower()}_recall_at_10"] = rendered["recall_at_10"]
        if not quick:
            bare = peer_metrics(peer, bench.conversations, bare=True)
            print(line(f"{peer.name}, bare text", bare), flush=True)
            found[f"{peer.name.lower()}_bare_recall_at_10"] = bare["recall_at_10"]
        peer.close()
    timed_peer = peers.PostgresStore(bench.owner_url.replace("/bench", "/peer_store"), bench.embedder.real)
    asked = [(c, q.text) for c in bench.conversations for q in c.answerable][::5][:TIMED]
    times = timed(
        [lambda c=c, text=text: timed_peer.search(f"rendered-{c.number}", text, 10) for c, text in asked]
    )
    timed_peer.close()
    return {**found, "postgresstore_p50_ms": times[len(times) // 2]}


if __name__ == "__main__":
    main()
