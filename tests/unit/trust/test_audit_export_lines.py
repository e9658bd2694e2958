"""Lines that are no line of an export, and pages that disagree."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.audit import GENESIS, AuditEvent, AuditRow, ChainPoint, event_hash
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
