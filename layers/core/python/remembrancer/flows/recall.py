"""Reading: recall with citations, a memory by id, its history, the list."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.domain.fusion import convex
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import RecallRequest
from remembrancer.domain.screen import Verdict, screen
from remembrancer.domain.terms import query_terms, scoped
from remembrancer.flows import render
from remembrancer.flows.context import Call, Services
from remembrancer.flows.cursors import Cursors, instant_and_id
from remembrancer.flows.decide import public_id
from remembrancer.store import conflicts, graph, memories, search, visibility
from remembrancer.store.database import Row, Unit

LEG = 50
"""Candidates a leg gives to the fusion; at least twice the limit."""


def recall(services: Services, call: Call, request: RecallRequest) -> dict[str, Any]:
    """Hits with citations, or none: `decision` is `ok` or `low_confidence`. A query is data, never an error."""
    [vector] = services.embedder.embed([request.query])

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        width = max(LEG, 2 * request.limit)
        filters = _filters(unit, request)
        near = search.vector_leg(unit, vector, services.embedder.contract, filters, width)
        words = [form for asked in query_terms(request.query) for form in asked.forms]
        spaces = unit.principal.visible_spaces
        said = search.lexical_leg(unit, [n for s in spaces for n in scoped(s, words)], filters, width)
        ranked = _fuse(near, said)[: request.limit * 2]
        hits = _hits(unit, ranked, request.limit)
        return {"decision": "ok" if hits else "low_confidence", "hits": hits}

    answer = services.database.read(call.credential, read)
    # Logged by the caller as a signal; the answer is the same.
    return {**answer, "correlation_id": call.correlation_id}


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
        return _shown(unit, [row])[0]

    return services.database.read(call.credential, read)


def history(services: Services, call: Call, memory: str) -> dict[str, Any]:
    """Every version of a memory with its two time axes, and what it took the place of."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        memory_id = public_id("mem", memory)
        row = memories.get(unit, memory_id)
        if row is None or row["held_for"]:
            raise Problem("not_found")
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
        }

    return services.database.read(call.credential, read)


def list_memories(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Live memories of the reader's spaces, newest first."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        # The spaces listed are the reader's own view, so the position is meant for no one else.
        filters = {"reader": str(unit.principal.principal_id)}
        position = Cursors(services.macs).decode(unit.tenant_id, "memories", filters, cursor)
        rows = memories.list_live(unit, instant_and_id(position), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [page[-1]["created_at"].isoformat(), str(page[-1]["memory_id"])]
            more = Cursors(services.macs).encode(unit.tenant_id, "memories", filters, last)
        return {"memories": _shown(unit, page), "next_cursor": more}

    return services.database.read(call.credential, read)


def _filters(unit: Unit, request: RecallRequest) -> dict[str, Any]:
    names = {"private": unit.principal.private_space, "team_shared": unit.principal.team_space}
    spaces = None if request.spaces is None else [names[space] for space in request.spaces]
    for space in spaces or ():
        authorize(unit.principal, "read", space=space)
    return {
        "spaces": spaces,
        "domains": request.domains,
        "kinds": request.kinds,
        "sources": request.sources,
        "since": request.since,
        **visibility.view(unit.principal.settings, unit.now, at=request.at, known_at=request.known_at),
    }


def _fuse(near: list[Row], said: list[Row]) -> list[tuple[UUID, int, float, dict[str, int]]]:
    """(passage, version, score, rank by leg), best first; the better of a memory's passages stands for it."""
    scores = convex(
        {row["passage_id"]: row["score"] for row in near}, {row["passage_id"]: row["score"] for row in said}
    )
    ranks: dict[UUID, dict[str, int]] = {}
    for leg, rows in (("vector", near), ("lexical", said)):
        for rank, row in enumerate(rows, start=1):
            ranks.setdefault(row["passage_id"], {})[leg] = rank
    owners = {row["passage_id"]: (row["memory_id"], row["version"]) for row in (*near, *said)}
    best: dict[UUID, tuple[UUID, int, float, dict[str, int]]] = {}
    for passage_id, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        memory_id, version = owners[passage_id]
        best.setdefault(memory_id, (passage_id, version, score, ranks[passage_id]))
    return list(best.values())


def _hits(
    unit: Unit, ranked: list[tuple[UUID, int, float, dict[str, int]]], limit: int
) -> list[dict[str, Any]]:
    found = {passage_id: (score, ranks) for passage_id, _, score, ranks in ranked}
    rows = search.hydrate(unit, [entry[0] for entry in ranked], [entry[1] for entry in ranked])
    # Ties: newer first, then id.
    rows.sort(
        key=lambda r: (
            -round(found[r["passage_id"]][0], 9),
            -(r["observed_at"] or r["created_at"]).timestamp(),
            r["memory_id"],
        )
    )
    rows = rows[:limit]
    shown = _shown(unit, rows)
    for row, hit in zip(rows, shown, strict=True):
        score, ranks = found[row["passage_id"]]
        hit["relevance"] = round(score, 6)
        hit["ranks"] = ranks
        hit["evidence"]["spans"] = [[row["span_start"], row["span_end"]]]
    return shown


def _shown(unit: Unit, rows: list[Row]) -> list[dict[str, Any]]:
    """Memories with their relationships and open conflicts, for this reader."""
    ids = [row["memory_id"] for row in rows]
    edges = graph.supported_by(unit, ids)
    opposed = conflicts.of(unit, ids)
    reveal = unit.principal.sees_pii
    shown = []
    for row in rows:
        memory = render.memory(row, unit.principal.team_space, reveal_pii=reveal)
        memory["relationships"] = render.relationships(edges.get(row["memory_id"], []), reveal_pii=reveal)
        memory["conflicts"] = [_opposed(unit, conflict) for conflict in opposed.get(row["memory_id"], [])]
        shown.append(memory)
    return shown


def _opposed(unit: Unit, conflict: Row) -> dict[str, Any]:
    """The other side of an open conflict; its text only while it may be shown itself."""
    other = memories.get_live(unit, conflict["other_id"])
    return {
        "conflict_id": format_id("con", conflict["conflict_id"]),
        "reason": conflict["reason"],
        "memory_id": format_id("mem", conflict["other_id"]),
        "text": None if other is None else render.clean(other["content"], reveal_pii=unit.principal.sees_pii),
    }
