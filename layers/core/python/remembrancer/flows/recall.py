"""Reading: recall with citations, a memory by id, its history, the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.domain import abstention, packing, query, ranking
from remembrancer.domain.ids import format_id
from remembrancer.domain.pagerank import pagerank
from remembrancer.domain.passages import cut
from remembrancer.domain.periods import EventBound, Period, event_bound
from remembrancer.domain.ports import Embedder
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.query import Question
from remembrancer.domain.ranking import Candidate
from remembrancer.domain.recall_weights import THRESHOLD
from remembrancer.domain.requests import RecallRequest
from remembrancer.domain.screen import Verdict, screen
from remembrancer.flows import render
from remembrancer.flows.context import Call, Services
from remembrancer.flows.cursors import Cursors, instant_and_id
from remembrancer.flows.decide import public_id
from remembrancer.store import conflicts, graph, graph_read, memories, remember_read, search, visibility
from remembrancer.store.database import Row, Unit

LEG = 30
"""Candidates a leg gives to the ranking; at least twice the limit."""


@dataclass(frozen=True)
class Ranked:
    """What the legs found for a question, in order, and how sure it is. `best` has one candidate a memory."""

    question: Question
    found: search.Found
    candidates: list[Candidate]
    features: list[list[float]]
    scores: list[float]
    best: list[int]
    answer: Mapping[str, float]
    probability: float
    relevance: list[float]
    """Of each of `best`: the probability that it is part of the answer."""


def recall(services: Services, call: Call, request: RecallRequest) -> dict[str, Any]:
    """Hits with citations, or none: `decision` is `ok` or `low_confidence`. A query is data, never an error."""
    now = services.clock()
    question = query.understand(request.query, now)
    bound = event_bound(question.text) if not question.periods else None

    def read(unit: Unit) -> dict[str, Any]:
        # Who may not read makes nobody embed.
        authorize(unit.principal, "read")
        asked = question
        if bound is not None:
            asked = replace(question, periods=_around_event(unit, services, request, bound, now))
        vector = query_vector(services.embedder, question.text)
        ranked = rank(unit, request, asked, vector, services.embedder.contract)
        return _answer(unit, services, request, ranked)

    answer = services.database.read(call.credential, read)
    # Logged by the caller as a signal; the answer is the same.
    return {**answer, "correlation_id": call.correlation_id}


def query_vector(embedder: Embedder, text: str) -> Any:
    """One unit vector: of a query longer than the model reads, the mean of its pieces."""
    pieces = [piece.text for piece in cut(text, embedder.count_tokens)]
    vectors = embedder.embed(pieces)
    if len(pieces) == 1:
        return vectors[0]
    mean = vectors.mean(axis=0)
    length = float((mean * mean).sum()) ** 0.5
    return mean / length if length > 0 else vectors[0]


def rank(unit: Unit, request: RecallRequest, question: Question, vector: Any, contract: str) -> Ranked:
    """The legs, the ranking and the probabilities; nothing is rendered yet."""
    filters = filters_of(unit, request, question)
    linked = _graph_leg(unit, question, filters) if request.graph else {}
    found = search.search(
        unit,
        search.Asking(
            vector=vector,
            contract=contract,
            forms=[form for asked in question.words for form in asked.forms],
            graph=list(linked),
            width=max(LEG, 2 * request.limit),
        ),
        filters,
    )
    candidates = [Candidate.of(row, linked.get(row["memory_id"], 0.0)) for row in found.rows]
    features = ranking.features(question, candidates)
    scores = ranking.scores(features)
    best: dict[UUID, int] = {}
    for index in ranking.order(candidates, scores):
        best.setdefault(candidates[index].memory_id, index)
    return _judged(question, found, candidates, features, scores, list(best.values()))


def _judged(
    question: Question,
    found: search.Found,
    candidates: list[Candidate],
    features: list[list[float]],
    scores: list[float],
    best: list[int],
) -> Ranked:
    if not candidates:
        return Ranked(question, found, candidates, features, scores, best, {}, 0.0, [])
    covering = abstention.coverage(question, candidates, found.holding, found.passages)
    answer = abstention.answer_features(question, candidates, scores, found.holding, covering)
    probability = abstention.answer_probability(answer)
    relevance = [
        abstention.hit_probability(
            abstention.hit_features(
                probability,
                scores[best[0]] - scores[index],
                place,
                candidates[index].cosine,
                covering.shares[index],
            )
        )
        for place, index in enumerate(best, start=1)
    ]
    return Ranked(question, found, candidates, features, scores, best, answer, probability, relevance)


def suspicious(query: str) -> bool:
    """Whether the screen would not call this query clean: a signal for the log, nothing else."""
    return screen({"/query": query}).verdict is not Verdict.CLEAN


def get_memory(
    services: Services, call: Call, memory: str, at: datetime | None, known_at: datetime | None
) -> dict[str, Any]:
    """The memory as the asked view believes it. Absent, foreign, held and erased are one answer."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        row = memories.get_live(unit, public_id("mem", memory), at=at, known_at=known_at)
        if row is None:
            raise Problem("not_found")
        return _shown(unit, [row], at, known_at)[0]

    return services.database.read(call.credential, read)


def history(services: Services, call: Call, memory: str) -> dict[str, Any]:
    """Every version of a memory with its two time axes, what it took the place of, and how often it was submitted."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        memory_id = public_id("mem", memory)
        row = memories.get(unit, memory_id)
        if row is None or row["held_for"]:
            raise Problem("not_found")
        reveal = render.reveals(unit, "mem", row)
        return {
            "memory_id": format_id("mem", memory_id),
            "supersedes": [format_id("mem", other) for other in memories.superseded(unit, memory_id)],
            "versions": [
                {
                    "version": version["version"],
                    "valid_from": render.instant(version["valid_from"]),
                    "valid_to": render.instant(version["valid_to"]),
                    "created_at": render.instant(version["created_at"]),
                    "superseded_at": render.instant(version["superseded_at"]),
                    "superseded_by": None
                    if version["superseded_by"] is None
                    else format_id("mem", version["superseded_by"]),
                    "expires_at": render.instant(version["expires_at"]),
                }
                for version in memories.versions(unit, memory_id)
            ],
            "submissions": [
                _submission(submission, reveal_pii=reveal)
                for submission in remember_read.submissions(unit, memory_id)
            ],
        }

    return services.database.read(call.credential, read)


def _submission(row: Row, *, reveal_pii: bool) -> dict[str, Any]:
    """One submission of the text; `text` when it said the same in other words."""
    said = {name: row[name] for name in ("text", "source", "source_group", "revision", "labels")}
    return {
        "occurrence_id": format_id("occ", row["occurrence_id"]),
        "submitted_by": format_id("prin", row["submitted_by"]),
        "submitted_at": render.instant(row["submitted_at"]),
        "source_type": row["source_type"],
        "authority": row["authority"],
        "observed_at": render.instant(row["observed_at"]),
        **render.clean(said, reveal_pii=reveal_pii),
    }


def list_memories(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Live memories of the reader's spaces, newest first."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        # The spaces listed are the reader's own view, so the position is meant for no one else.
        filters = {"reader": str(unit.principal.principal_id)}
        position = Cursors(services.macs).decode(unit.tenant_id, "memories", filters, cursor)
        rows = memories.list_live(unit, instant_and_id(position), limit + 1)
        # As many as one answer can carry; the first in any case.
        page = packing.leading(rows[:limit], lambda row: packing.stored(row["content"]), packing.STORED_BYTES)
        shown = packing.leading(_shown(unit, page), packing.sent, packing.SENT_BYTES)
        more = None
        if len(rows) > len(shown):
            row = rows[len(shown) - 1]
            last = [row["created_at"].isoformat(), str(row["memory_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "memories", filters, last)
        return {"memories": shown, "next_cursor": more}

    return services.database.read(call.credential, read)


def filters_of(unit: Unit, request: RecallRequest, question: Question) -> search.Filters:
    """What the request narrows to, authorized. Raises Problem forbidden for a space that is not the reader's."""
    names = {"private": unit.principal.private_space, "team_shared": unit.principal.team_space}
    spaces = unit.principal.visible_spaces
    if request.spaces is not None:
        spaces = tuple(dict.fromkeys(names[space] for space in request.spaces))
    for space in spaces:
        authorize(unit.principal, "read", space=space)
    return search.Filters(
        spaces=spaces,
        domains=request.domains,
        kinds=request.kinds,
        sources=request.sources,
        since=request.since,
        known_at=request.known_at,
        decayed="decayed" in request.include,
        phrases=question.phrases,
        excluded=question.excluded,
        excluded_phrases=question.excluded_phrases,
        view=visibility.view(unit.principal.settings, unit.now, at=request.at, known_at=request.known_at),
    )


def _graph_leg(unit: Unit, question: Question, filters: search.Filters) -> dict[UUID, float]:
    """What the graph gives to memories, 0..1: by the rank of the entities that their live edges join."""
    names = query.name_candidates(question.text)
    seeds = graph_read.named(
        unit, filters.spaces, names, filters.view, known_at=filters.known_at, decayed=filters.decayed
    )
    if not seeds:
        return {}
    edges = graph_read.around(
        unit, filters.spaces, seeds, filters.view, known_at=filters.known_at, decayed=filters.decayed
    )
    pairs = {(edge["subject_id"], edge["object_id"]) for edge in edges if edge["object_id"] is not None}
    ranks = pagerank(sorted(pairs), seeds)
    given: dict[UUID, float] = {}
    for edge in edges:
        worth = ranks.get(edge["subject_id"], 0.0) + ranks.get(edge["object_id"], 0.0)
        given[edge["memory_id"]] = max(given.get(edge["memory_id"], 0.0), worth)
    strongest = sorted(given.items(), key=lambda item: (-item[1], item[0]))[:LEG]
    most = strongest[0][1] if strongest else 0.0
    return {memory_id: worth / most for memory_id, worth in strongest} if most > 0 else {}


def _around_event(
    unit: Unit, services: Services, request: RecallRequest, bound: EventBound, now: datetime
) -> tuple[Period, ...]:
    """The time before or after the memory that best tells of an event: one that has every word of it and does not
    itself ask. None when there is none."""
    event = query.understand(bound.event, now)
    vector = query_vector(services.embedder, event.text)
    told = rank(unit, request, event, vector, services.embedder.contract)
    held = abstention.words_held(event, told.candidates)
    for index in told.best:
        candidate = told.candidates[index]
        if len(held[index]) == len(event.words) > 0 and not candidate.asks:
            at = candidate.happened
            return (Period(None, at) if bound.before else Period(at, None),)
    return ()


def _answer(unit: Unit, services: Services, request: RecallRequest, ranked: Ranked) -> dict[str, Any]:
    least = request.min_relevance or 0.0
    wanted = [
        (index, relevance)
        for index, relevance in zip(ranked.best, ranked.relevance, strict=True)
        if relevance >= least
    ]
    sure = abstention.answers(ranked.probability) and bool(wanted)
    answer: dict[str, Any] = {"decision": "ok" if sure else "low_confidence", "hits": []}
    if sure:
        hits, packed = _hits(unit, services, request, ranked, wanted)
        answer |= {"hits": hits, "packed": packed}
    elif "nearest" in request.include:
        weak = list(zip(ranked.best, ranked.relevance, strict=True))
        answer["nearest"], answer["packed"] = _hits(unit, services, request, ranked, weak)
    if request.explain:
        why = "relevant_enough" if sure else _not_sure(ranked)
        answer["explain"] = {**_explained(ranked), "filters": _narrowed(unit, request), "decided_by": why}
    return answer


def _not_sure(ranked: Ranked) -> str:
    """What kept an answer from being given."""
    if not ranked.best:
        return "nothing_found"
    return "min_relevance" if abstention.answers(ranked.probability) else "threshold"


def _narrowed(unit: Unit, request: RecallRequest) -> dict[str, Any]:
    """The filters as they were applied, in the form of the request."""
    spaces = {"private": unit.principal.private_space, "team_shared": unit.principal.team_space}
    visible = [name for name, space in spaces.items() if space in unit.principal.visible_spaces]
    return {
        "spaces": request.spaces or visible,
        "domains": request.domains,
        "kinds": request.kinds,
        "sources": request.sources,
        "since": render.instant(request.since),
        "at": render.instant(request.at),
        "known_at": render.instant(request.known_at),
        "min_relevance": request.min_relevance,
        "include": list(request.include),
    }


def _hits(
    unit: Unit,
    services: Services,
    request: RecallRequest,
    ranked: Ranked,
    wanted: Sequence[tuple[int, float]],
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The hits that fit, with what lies around them when asked and affordable; {tokens, omitted}."""
    distinct = _distinct(unit, request, ranked, [index for index, _ in wanted])
    ready, _ = packing.pack([packing.stored(row["content"]) for row in distinct], packing.STORED_BYTES)
    rows = [distinct[place] for place in ready]
    shown = _shown(unit, rows, request.at, request.known_at, decayed="decayed" in request.include)
    sizes = [services.embedder.count_tokens(memory["text"]) for memory in shown]
    affordable, _ = packing.pack(sizes, request.token_budget)
    sendable, _ = packing.pack([packing.sent(shown[place]) for place in affordable], packing.SENT_BYTES)
    fitting = [affordable[place] for place in sendable]
    tokens = sum(sizes[place] for place in fitting)
    found = {ranked.candidates[index].passage_id: (index, relevance) for index, relevance in wanted}
    ranks = _ranks(ranked)
    hits = []
    for place in fitting:
        hit, row = shown[place], rows[place]
        index, relevance = found[row["passage_id"]]
        hit["relevance"] = round(relevance, 4)
        hit["ranks"] = ranks[index]
        hit["evidence"]["spans"] = [[row["span_start"], row["span_end"]]]
        if request.explain:
            hit["explain"] = _explained_hit(ranked, index)
        hits.append(hit)
    if request.context:
        tokens = _add_context(unit, services, request, hits, [rows[place] for place in fitting], tokens)
    return hits, {"tokens": tokens, "omitted": len(distinct) - len(fitting)}


def _distinct(unit: Unit, request: RecallRequest, ranked: Ranked, wanted: Sequence[int]) -> list[Row]:
    """The first `limit` of these candidates that say different things, however many repeat what was said."""
    rows: list[Row] = []
    begin, step = 0, 2 * request.limit
    while begin < len(wanted) and len(rows) < request.limit:
        chosen = [ranked.found.rows[index] for index in wanted[begin : begin + step]]
        by_passage = {row["passage_id"]: row for row in search.hydrate(unit, chosen)}
        rows += [by_passage[row["passage_id"]] for row in chosen if row["passage_id"] in by_passage]
        keep = packing.distinct(
            [row["content"] for row in rows], [row["author"] for row in rows], request.limit
        )
        rows = [rows[place] for place in keep]
        begin, step = begin + step, 2 * step
    return rows


def _add_context(
    unit: Unit,
    services: Services,
    request: RecallRequest,
    hits: Sequence[dict[str, Any]],
    rows: Sequence[Row],
    tokens: int,
) -> int:
    """Give each hit the turns around it that are no hits themselves, the best hit's first, as the budget allows;
    the tokens used in all."""
    view = visibility.view(unit.principal.settings, unit.now, at=request.at, known_at=request.known_at)
    spaces = [row["space_id"] for row in rows]
    found = search.context(
        unit,
        [row["memory_id"] for row in rows],
        spaces,
        request.context,
        request.known_at,
        view,
        decayed="decayed" in request.include,
    )
    taken = {row["memory_id"] for row in rows}
    room = packing.SENT_BYTES - sum(packing.sent(hit) for hit in hits)
    for hit, row in zip(hits, rows, strict=True):
        hit["context"] = []
        for turn in found.get(row["memory_id"], []):
            if turn["memory_id"] in taken:
                continue
            reveal = render.reveals(unit, "mem", turn)
            beside = {
                "memory_id": format_id("mem", turn["memory_id"]),
                "offset": turn["offset"],
                "text": render.clean(turn["content"], reveal_pii=reveal),
                "author": render.clean(turn["author"], reveal_pii=reveal),
                "observed_at": render.instant(turn["observed_at"]),
                "untrusted": True,
            }
            size = services.embedder.count_tokens(beside["text"])
            if request.token_budget is not None and tokens + size > request.token_budget:
                continue
            if (bytes_sent := packing.sent(beside)) > room:
                continue
            room -= bytes_sent
            tokens += size
            taken.add(turn["memory_id"])
            hit["context"].append(beside)
        hit["context"].sort(key=lambda turn: turn["offset"])
    return tokens


def _ranks(ranked: Ranked) -> list[dict[str, int]]:
    """The rank of each candidate in each leg that found it, from 1; equals in the order they came, by passage."""
    ranks: list[dict[str, int]] = [{} for _ in ranked.candidates]
    legs = {
        "vector": [c.cosine for c in ranked.candidates],
        "lexical": [c.bm25 for c in ranked.candidates],
        "graph": [c.graph for c in ranked.candidates],
    }
    for leg, values in legs.items():
        order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
        for place, index in enumerate(order, start=1):
            if leg == "vector" or values[index] > 0:
                ranks[index][leg] = place
    return ranks


def _explained(ranked: Ranked) -> dict[str, Any]:
    """How the query was understood and why the decision fell as it did."""
    question = ranked.question
    return {
        "query": {
            "embedded": question.text,
            "words": [asked.word for asked in question.words],
            "terms": [list(asked.forms) for asked in question.words],
            "phrases": [[list(form.terms) for form in phrase] for phrase in question.phrases],
            "excluded": [*question.excluded, *(list(phrase.terms) for phrase in question.excluded_phrases)],
            "names": sorted(question.name_words),
            "asks_when": question.asks_when,
            "periods": [
                {"begin": render.instant(p.begin), "end": render.instant(p.end)} for p in question.periods
            ],
        },
        "search": {
            "mode": "exact" if ranked.found.exact else "indexed",
            "passages": ranked.found.passages,
            "candidates": len(ranked.candidates),
        },
        "abstention": {
            "features": {name: round(value, 4) for name, value in ranked.answer.items()},
            "probability": round(ranked.probability, 4),
            "threshold": THRESHOLD,
        },
    }


def _explained_hit(ranked: Ranked, index: int) -> dict[str, Any]:
    candidate = ranked.candidates[index]
    weighted = ranking.contributions(ranked.features[index])
    return {
        "score": round(ranked.scores[index], 4),
        "legs": {
            "vector": round(candidate.cosine, 4),
            "lexical": round(candidate.bm25, 4),
            "graph": round(candidate.graph, 4),
        },
        "features": {
            name: round(value, 4)
            for name, value in zip(ranking.FEATURES, ranked.features[index], strict=True)
        },
        "contributions": {name: round(value, 4) for name, value in weighted.items()},
    }


def _shown(
    unit: Unit,
    rows: list[Row],
    at: datetime | None = None,
    known_at: datetime | None = None,
    *,
    decayed: bool = False,
) -> list[dict[str, Any]]:
    """Memories with their relationships and open conflicts in the asked view, for this reader."""
    ids = [row["memory_id"] for row in rows]
    view = visibility.view(unit.principal.settings, unit.now, at=at, known_at=known_at)
    edges = graph.supported_by(unit, ids, visibility.live_edge(known_at=known_at), view)
    opposed = conflicts.of(unit, ids, view, known_at, decayed=decayed)
    # The other paths know no spans.
    spans = remember_read.spans(unit, [row["memory_id"] for row in rows if row["admitted_by"] == "remember"])
    shown = []
    for row in rows:
        reveal = render.reveals(unit, "mem", row)
        memory = render.memory(row, unit.principal.team_space, reveal_pii=reveal)
        supported = edges.get(row["memory_id"], [])
        memory["relationships"] = [
            {
                **relationship,
                "spans": spans.get((row["memory_id"], edge["relationship_id"], edge["version"]), []),
            }
            for relationship, edge in zip(render.relationships(unit, supported), supported, strict=True)
        ]
        memory["conflicts"] = [_opposed(unit, conflict) for conflict in opposed.get(row["memory_id"], [])]
        shown.append(memory)
    return shown


def _opposed(unit: Unit, conflict: Row) -> dict[str, Any]:
    """The other side of an open conflict."""
    other = {"memory_id": conflict["other_id"], "pii": conflict["pii"]}
    return {
        "conflict_id": format_id("con", conflict["conflict_id"]),
        "reason": conflict["reason"],
        "memory_id": format_id("mem", conflict["other_id"]),
        "text": render.clean(conflict["content"], reveal_pii=render.reveals(unit, "mem", other)),
    }
