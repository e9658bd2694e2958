"""The chain as JSON lines, to be verified without the database.

A page begins with a line about the chain, {format, tenant_id, head: {seq, hash}, checkpoints: [{seq, hash}]},
followed by a line for each row in ascending order. Pages may be joined end to end: the last head is the chain's, and
what earlier pages say of it must still hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.audit import (
    GENESIS,
    HASH_BYTES,
    AuditEvent,
    AuditRow,
    ChainPoint,
    Verification,
    verify,
)
from remembrancer.domain.canonical import canonical_json

FORMAT = "remembrancer-audit-export-1"


class NotAnExport(ValueError):
    """The text is not what `lines` writes; `line` counts from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is not a line of an export")
        self.line = line


def lines(
    tenant: UUID, head: ChainPoint, checkpoints: Mapping[int, bytes], rows: Iterable[AuditRow]
) -> Iterator[str]:
    """One page, each line with its line feed."""
    points = [_point(ChainPoint(*item)) for item in sorted(checkpoints.items())]
    about = {"format": FORMAT, "tenant_id": str(tenant), "head": _point(head), "checkpoints": points}
    yield canonical_json(about) + "\n"
    for row in rows:
        event = row.event
        shown = {
            "seq": event.seq,
            "at": event.at.isoformat(timespec="microseconds"),
            "actor_id": None if event.actor_id is None else str(event.actor_id),
            "actor_kind": event.actor_kind,
            "action": event.action,
            "target": event.target,
            "detail": event.detail,
            "prev_hash": event.prev_hash.hex(),
            "hash": row.hash.hex(),
        }
        yield canonical_json(shown) + "\n"


@dataclass
class Export:
    """What the lines about the chain said; complete once the rows were read to their end."""

    tenant: UUID | None = None
    head: ChainPoint = GENESIS
    points: list[ChainPoint] = field(default_factory=list)
    """The checkpoints, and the heads of all pages."""


def verify_lines(text: Iterable[str], *, witnesses: Iterable[ChainPoint] = ()) -> tuple[Export, Verification]:
    """Verify an export; `witnesses` are checkpoints that were kept elsewhere.

    The rows are held in memory, since the head stands before them and pages may be joined. Raises NotAnExport.
    """
    export = Export()
    rows: list[AuditRow] = []
    for number, line in enumerate(text, 1):
        try:
            entry = json.loads(line)
            if "format" in entry:
                _about(export, entry)
            elif export.tenant is None:
                raise ValueError("a row before its chain")
            else:
                rows.append(_row(export.tenant, entry))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise NotAnExport(number) from None
    if export.tenant is None:
        raise NotAnExport(1)
    known = [*witnesses, *export.points]
    return export, verify(rows, tenant=export.tenant, head=export.head, checkpoints=known)


def _point(point: ChainPoint) -> dict[str, Any]:
    return {"seq": point.seq, "hash": point.hash.hex()}


def _about(export: Export, entry: Mapping[str, Any]) -> None:
    tenant = UUID(_text(entry["tenant_id"]))
    if entry["format"] != FORMAT or export.tenant not in (None, tenant):
        raise ValueError("another format or tenant")
    export.tenant = tenant
    export.head = _point_of(entry["head"])
    export.points += [*map(_point_of, entry["checkpoints"]), export.head]


def _point_of(entry: Mapping[str, Any]) -> ChainPoint:
    return ChainPoint(_seq(entry["seq"], least=0), _hash(entry["hash"]))


def _row(tenant: UUID, entry: Mapping[str, Any]) -> AuditRow:
    at = datetime.fromisoformat(entry["at"])
    if at.utcoffset() != timedelta(0):
        raise ValueError("not UTC")
    event = AuditEvent(
        tenant=tenant,
        seq=_seq(entry["seq"], least=1),
        at=at,
        actor_id=None if entry["actor_id"] is None else UUID(_text(entry["actor_id"])),
        actor_kind=_text(entry["actor_kind"]),
        action=_text(entry["action"]),
        target=None if entry["target"] is None else _text(entry["target"]),
        detail=_text(entry["detail"]),
        prev_hash=_hash(entry["prev_hash"]),
    )
    return AuditRow(event, _hash(entry["hash"]))


def _seq(value: Any, *, least: int) -> int:
    if type(value) is not int or not least <= value < 2**63:
        raise ValueError("not a sequence number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    value.encode()  # a lone surrogate has no bytes to hash
    return value


def _hash(value: Any) -> bytes:
    digest = bytes.fromhex(_text(value))
    if len(digest) != HASH_BYTES:
        raise ValueError("not a hash")
    return digest
