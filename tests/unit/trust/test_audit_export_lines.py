"""Lines that are no line of an export, and pages that disagree."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.audit import GENESIS, AuditEvent, AuditRow, ChainPoint, FaultKind, event_hash
from remembrancer.domain.audit_export import NotAnExport, lines, verify_lines

TENANT = UUID(int=1)


def chain(length: int, action: str = "done", before: tuple[AuditRow, ...] = ()) -> list[AuditRow]:
    rows = list(before)
    while len(rows) < length:
        previous = rows[-1].hash if rows else GENESIS.hash
        event = AuditEvent(
            TENANT,
            len(rows) + 1,
            datetime(2026, 1, 1, tzinfo=UTC),
            TENANT,
            "human",
            action,
            None,
            "{}",
            previous,
        )
        rows.append(AuditRow(event, event_hash(event)))
    return rows


def page(rows: list[AuditRow], after: int = 0, until: int | None = None, **points: Any) -> list[str]:
    head = ChainPoint(rows[-1].event.seq, rows[-1].hash)
    return list(lines(TENANT, head, points.get("checkpoints", {}), rows[after:until]))


@pytest.mark.parametrize("member", ["tenant_id", "actor_id", "head", "checkpoints", "hash", "at"])
@pytest.mark.parametrize("value", [5, True, ["a"], {"a": 1}, "x", 1.5])
def test_a_member_of_another_type_is_no_line(member: str, value: Any) -> None:
    about, row = map(json.loads, page(chain(1)))
    for entry in (about, row):
        if member in entry:
            entry[member] = value
    with pytest.raises(NotAnExport):
        verify_lines(map(json.dumps, (about, row)))


@pytest.mark.parametrize("kept", ["head", "checkpoint"])
def test_a_chain_that_was_rewritten_between_two_pages_is_told_by_what_the_first_says(kept: str) -> None:
    old = chain(3)
    new = chain(5, "harmless", tuple(old[:1]))
    points = {3: old[2].hash} if kept == "checkpoint" else {}
    first = page(old if kept == "head" else old[:1], until=1, checkpoints=points)
    second = page(new, after=1, checkpoints={3: new[2].hash} if points else {})
    outcome = verify_lines([*first, *second])[1]
    assert {(fault.kind, fault.seq) for fault in outcome.faults} == {(FaultKind.UNWITNESSED, 3)}
    grown = chain(5, before=tuple(old))
    assert verify_lines([*page(old, until=1), *page(grown, after=1)])[1].intact
