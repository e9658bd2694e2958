"""The consistency report: what may be said twice, contradict or mean one thing. Ids and scores; people decide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.lookalikes import lookalikes
from remembrancer.domain.principal import authorize
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.context import Call, Services
from remembrancer.flows.instants import instant
from remembrancer.flows.tenants import Walk
from remembrancer.store import centroids, consistency, reports, spaces
from remembrancer.store.database import Unit

NEAR = 0.9
"""Cosine from which two memories may say the same. Measured on bench/corpus/conflicts.jsonl: half of the
paraphrases lie above, of statements about another subject, relation or value few."""
COMPARED = 500
"""Newest passages that are compared with all others."""
LISTED = 200
NAMES = 5_000


def look(services: Services, call: Call) -> dict[str, Any]:
    """On demand, of the spaces that the reviewer sees."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review")
        return document(unit, unit.principal.visible_spaces, unit.principal.settings)

    return services.database.read(call.credential, read)


def document(unit: Unit, space_ids: Sequence[UUID], settings: TenantSettings) -> dict[str, Any]:
    """Near-duplicates, open conflicts and entities that look alike, at most LISTED of each."""
    newest = consistency.recent(unit, space_ids, settings, COMPARED)
    pairs = consistency.near_duplicates(unit, newest, settings, NEAR, LISTED)
    open_ones = consistency.open_conflicts(unit, space_ids, LISTED)
    alike = _alike(unit, space_ids, settings)
    return {
        "at": instant(unit.now),
        "compared_passages": len(newest),
        "near_at": NEAR,
        "counts": {
            "near_duplicates": len(pairs),
            "open_conflicts": len(open_ones),
            "alike_entities": len(alike),
        },
        "near_duplicates": [
            {
                "memory_id": format_id("mem", row["memory_id"]),
                "other_id": format_id("mem", row["other_id"]),
                "cosine": round(row["cosine"], 4),
            }
            for row in pairs
        ],
        "open_conflicts": [
            {
                "conflict_id": format_id("con", row["conflict_id"]),
                "memory_id": format_id("mem", row["memory_id"]),
                "other_id": format_id("mem", row["other_id"]),
                "reason": row["reason"],
            }
            for row in open_ones
        ],
        "alike_entities": [
            {"entity_id": format_id("ent", first), "other_id": format_id("ent", second), "score": score}
            for first, second, score in alike
        ],
    }


def upkeep(services: Services) -> dict[str, int]:
    """The schedule's work, one transaction a tenant: centroids that are stale, a report where there is something.

    `centroids` counts those that were computed again.
    """
    made = {"centroids": 0, "reports": 0}
    walk = Walk()
    for tenant_id, settings in services.database.tenants():
        with walk.part(tenant_id):
            count, reported = services.database.job(
                tenant_id, partial(_upkeep, settings=settings), audited=False
            )
            made["centroids"] += count
            made["reports"] += reported
    walk.end()
    return made


def _upkeep(unit: Unit, settings: TenantSettings) -> tuple[int, bool]:
    count = sum(centroids.recompute(unit, settings, space) for space in centroids.stale(unit, settings))
    found = document(unit, spaces.every(unit), settings)
    if not any(found["counts"].values()):
        return count, False
    report_id = unit.new_id()
    reports.add(unit, report_id, "consistency", found, None)
    public = format_id("rep", report_id)
    unit.audit("consistency_reported", public, counts=found["counts"])
    unit.alert("consistency_report", public)
    return count, True


def _alike(unit: Unit, space_ids: Sequence[UUID], settings: TenantSettings) -> list[tuple[UUID, UUID, float]]:
    shared = [
        (row["entity_id"], row["other_id"], row["score"])
        for row in consistency.shared_names(unit, space_ids, settings, LISTED)
    ]
    by_space: dict[UUID, dict[UUID, str]] = {}
    for row in consistency.names(unit, space_ids, settings, NAMES):
        by_space.setdefault(row["space_id"], {})[row["entity_id"]] = row["name_key"]
    known = {frozenset(pair[:2]) for pair in shared}
    near = [
        pair for names in by_space.values() for pair in lookalikes(names) if frozenset(pair[:2]) not in known
    ]
    return [*shared, *sorted(near, key=lambda pair: (-pair[2], pair[:2]))][:LISTED]
