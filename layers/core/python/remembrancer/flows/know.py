"""Reading the graph: entities by name, one entity with its relationships, a relationship's history, predicates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from remembrancer.domain.ids import format_id
from remembrancer.domain.names import fold
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows import render
from remembrancer.flows.context import Call, Services
from remembrancer.flows.decide import public_id
from remembrancer.store import graph_read
from remembrancer.store.database import Row, Unit

MAX_RELATIONSHIPS = 200


def entities(
    services: Services,
    call: Call,
    name: str,
    limit: int,
    at: datetime | None = None,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """The entities of the reader's spaces that bear this name, in any spelling of it, as of the asked times."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        key = fold(name)
        rows = graph_read.by_name(unit, key, limit, at, known_at) if key else []
        return {"entities": [_entity(unit, row) for row in rows]}

    return services.database.read(call.credential, read)


def entity(
    services: Services,
    call: Call,
    entity_id: str,
    at: datetime | None = None,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """One entity, its names and its relationships as of the asked times, and how many more of these there are. Absent
    and foreign are one answer."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        row = graph_read.entity(unit, public_id("ent", entity_id), at, known_at)
        if row is None:
            raise Problem("not_found")
        edges = graph_read.edges_of(unit, row["entity_id"], MAX_RELATIONSHIPS, at, known_at)
        return {
            **_entity(unit, row),
            "relationships": render.relationships(unit, edges),
            "omitted": edges[0]["matching"] - len(edges) if edges else 0,
        }

    return services.database.read(call.credential, read)


def relationship_history(services: Services, call: Call, relationship: str) -> dict[str, Any]:
    """Every version of a relationship with its two time axes and what it rests on."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        rows = graph_read.versions(unit, public_id("rel", relationship))
        if not rows:
            raise Problem("not_found")
        shown = render.relationships(unit, rows)
        supports = graph_read.supports(unit, rows[0]["relationship_id"])
        return {
            "relationship_id": shown[0]["relationship_id"],
            "versions": [
                {
                    **version,
                    "created_at": render.instant(row["created_at"]),
                    "superseded_at": render.instant(row["superseded_at"]),
                    "superseded_by": None
                    if row["superseded_by"] is None
                    else format_id("rel", row["superseded_by"]),
                    "supports": [
                        {
                            "memory_id": format_id("mem", support["memory_id"]),
                            "occurrence_id": format_id("occ", support["occurrence_id"]),
                            "start": support["span_start"],
                            "end": support["span_end"],
                        }
                        for support in supports.get(row["version"], [])
                    ],
                }
                for version, row in zip(shown, rows, strict=True)
            ],
        }

    return services.database.read(call.credential, read)


def predicates(services: Services, call: Call) -> dict[str, Any]:
    """The predicates registered in the reader's spaces."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "read")
        return {
            "predicates": [
                {
                    "predicate": row["predicate_key"],
                    "kind": row["kind"],
                    "cardinality": row["cardinality"],
                    "subject_kinds": row["subject_kinds"],
                    "object_kinds": row["object_kinds"],
                    "aliases": row["aliases"],
                    "space": _space(unit, row),
                }
                for row in graph_read.predicates(unit)
            ]
        }

    return services.database.read(call.credential, read)


def _entity(unit: Unit, row: Row) -> dict[str, Any]:
    entity_id = format_id("ent", row["entity_id"])
    names = render.revealed(unit, entity_id, lambda reveal: render.clean(row["names"], reveal_pii=reveal))
    return {
        "entity_id": entity_id,
        "name": names[0] if names else None,
        "aliases": names[1:],
        "kind": row["kind"],
        "space": _space(unit, row),
        "created_at": render.instant(row["created_at"]),
    }


def _space(unit: Unit, row: Row) -> str:
    return "team_shared" if row["space_id"] == unit.principal.team_space else "private"
