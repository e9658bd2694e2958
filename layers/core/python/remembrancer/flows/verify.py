"""Is a claim said by what is remembered? Deterministic matches with their spans, and what the graph opposes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.conflict import Neighbour, Statement, find_conflict
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.query import name_candidates, understand
from remembrancer.domain.requests import RecallRequest, VerifyRequest
from remembrancer.domain.sanitize import sanitize_part
from remembrancer.domain.triples import Triple
from remembrancer.domain.verifying import Match, match, verdict
from remembrancer.flows import recall, render
from remembrancer.flows.context import Call, Services
from remembrancer.flows.decide import public_id
from remembrancer.store import graph, graph_read, memories, search
from remembrancer.store.database import Row, Unit

SEARCHED = 20
"""How many of the best memories a claim without ids is compared with, sure or not: verifying is not answering."""


def verify(services: Services, call: Call, request: VerifyRequest) -> dict[str, Any]:
    """`supported` | `partially_supported` | `unsupported`, the matches (spans in code points of the text as
    stored), and `contradicted` with the relationships that say the opposite.

    A memory id that is absent, foreign, held or erased is not found: Problem not_found.
    """

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        if request.memory_ids is not None:
            rows = [_live(unit, public_id("mem", text)) for text in dict.fromkeys(request.memory_ids)]
        else:
            asked = request.query or request.claim
            question = understand(asked, services.clock(), operators=request.query is not None)
            vector = recall.query_vector(services.embedder, question.text)
            wanted = RecallRequest(query=asked, limit=SEARCHED)
            ranked = recall.rank(unit, wanted, question, vector, services.embedder.contract)
            best = [ranked.found.rows[index] for index in ranked.best[:SEARCHED]]
            found = {row["memory_id"]: row for row in search.hydrate(unit, best)}
            rows = [found[row["memory_id"]] for row in best if row["memory_id"] in found]
        matches = [(row, match(request.claim, row["content"])) for row in rows]
        opposed = _opposed(unit, request.claim)
        return {
            "verdict": verdict([found for _, found in matches]),
            "contradicted": opposed is not None,
            "matches": [_shown(unit, row, found) for row, found in matches if found is not None],
            "contradictions": [] if opposed is None else [opposed],
            "compared": len(rows),
        }

    return {**services.database.read(call.credential, read), "correlation_id": call.correlation_id}


def _live(unit: Unit, memory_id: UUID) -> Row:
    row = memories.get_live(unit, memory_id)
    if row is None:
        raise Problem("not_found")
    return row


def _shown(unit: Unit, row: Row, found: Match) -> dict[str, Any]:
    start, end = found.span
    return {
        "memory_id": format_id("mem", row["memory_id"]),
        "version": row["version"],
        "kind": found.kind,
        "span": [start, end],
        "coverage": round(found.coverage, 4),
        "text": sanitize_part(row["content"], start, end, reveal_pii=render.reveals(unit, "mem", row)),
        "untrusted": True,
    }


def _opposed(unit: Unit, claim: str) -> dict[str, Any] | None:
    """The live relationship that holds the opposite of the claim, by the rules of conflicts."""
    edges = graph_read.about(unit, name_candidates(claim))
    conflict = None
    for space in unit.principal.visible_spaces:
        others = [
            Neighbour(
                edge["relationship_id"],
                edge["version"],
                Statement("", _triples(edge), edge["valid_from"], edge["valid_to"]),
                1.0,
            )
            for edge in edges
            if edge["space_id"] == space
        ]
        # Each space has a registry of its own.
        single = graph.single_valued(unit, space) if others else set()
        conflict = conflict or find_conflict(Statement(claim), others, single)
    if conflict is None:
        return None
    edge = next(edge for edge in edges if edge["relationship_id"] == conflict.memory_id)
    [shown] = render.relationships(unit, [edge])
    return {
        "relationship": shown,
        "reason": conflict.reason,
        "memory_ids": [format_id("mem", memory_id) for memory_id in edge["memories"]],
    }


def _triples(edge: Row) -> tuple[Triple, ...]:
    """The relationship said of its subject by each name that the claim calls it."""
    target = edge["object"] if edge["object"] is not None else edge["value_canonical"]
    return tuple(
        Triple(name, edge["predicate_key"], target, edge["polarity"], edge["valid_from"], edge["valid_to"])
        for name in edge["called"]
    )
