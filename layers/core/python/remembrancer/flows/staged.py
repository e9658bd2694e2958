"""What waits in a job. A record waits to be judged, a part of a judged document to be read for what it states; both
are the worker's to do, since thousands of them outlast any request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.batch import Item
from remembrancer.flows.context import Services
from remembrancer.flows.records import Judged, Record, by_index, judge
from remembrancer.store.database import Row
from remembrancer.store.jobs import REFUSED, WAITING


def unread(item: Item) -> dict[str, Any]:
    """The body of an item that passed the gate and was not enriched."""
    return {**item.to_dict(), WAITING: "enrich"}


def unjudged(record: Record, pointer: str) -> dict[str, Any]:
    """The body of a record that has not come to the gate; `pointer` as `judge` takes it."""
    return {**record.to_dict(), WAITING: "judge", "pointer": pointer}


@dataclass(frozen=True)
class Prepared:
    """`bodies` by ordinal, ready or refused; `items` are the ready ones, `refused` what the others are told."""

    bodies: dict[int, dict[str, Any]]
    items: dict[int, Item]
    refused: dict[int, dict[str, Any]]


def prepare(services: Services, settings: TenantSettings, rows: Sequence[Row], now: datetime) -> Prepared:
    """The gate's work on records and the reading of all, for rows {ordinal, body} of which none is ready."""
    made = Prepared({}, {}, {})
    for row in rows:
        if row["body"][WAITING] == "enrich":
            _keep(made, row["ordinal"], Item.from_dict(row["body"]).enriched(now), [])
    records = {row["body"]["index"]: row for row in rows if row["body"][WAITING] == "judge"}
    if not records:
        return made
    judged = Judged()
    [pointer] = {row["body"]["pointer"] for row in records.values()}
    judge(services, judged, [Record.from_dict(row["body"]) for row in records.values()], settings, pointer)
    redactions: dict[int, list[dict[str, Any]]] = {}
    for entry in judged.redactions:
        redactions.setdefault(entry["index"], []).append(entry)
    for item in judged.items:
        _keep(made, records[item.index]["ordinal"], item.enriched(now), redactions.get(item.index, []))
    for entry in judged.refused:
        ordinal = records[entry["index"]]["ordinal"]
        made.refused[ordinal] = entry
        made.bodies[ordinal] = {REFUSED: entry, "redactions": redactions.get(entry["index"], [])}
    return made


def _keep(made: Prepared, ordinal: int, item: Item, redactions: list[dict[str, Any]]) -> None:
    made.items[ordinal] = item
    made.bodies[ordinal] = {**item.to_dict(), "redactions": redactions}


def told(shown: Mapping[str, Any], bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the caller of records is told in the end, as if all had been judged at once; `shown` was at first."""
    refused = [body[REFUSED] for body in bodies if REFUSED in body]
    return {
        **shown,
        "refused": by_index([*shown["refused"], *refused]),
        "redactions": by_index(
            [*shown["redactions"], *(entry for body in bodies for entry in body["redactions"])]
        ),
        "pii": any(body.get("pii", False) for body in bodies),
    }
