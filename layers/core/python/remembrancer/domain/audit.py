"""The audit chain of a tenant: the hash of a row, and the search for the place where a chain was changed.

The byte layout is simple enough for SQL to repeat (`audit_hash` in store/migrations/0002_audit.sql): ten
fields in the order below, each as a 4-byte big-endian length and that many bytes, null as ff ff ff ff;
numbers as decimal text, UUIDs as lower-case text, hashes as raw bytes; SHA-256 over the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from remembrancer.domain.canonical import microseconds

LAYOUT = "remembrancer-audit-1"
HASH_BYTES = 32
MAX_FAULTS = 100
"""A verification lists about so many faults; a chain replaced as a whole would list every row."""

_NULL = b"\xff\xff\xff\xff"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What the hash covers: all of it. `detail` is canonical JSON text and holds no content."""

    tenant: UUID
    seq: int
    """1, 2, 3 ... without gaps within the tenant."""
    at: datetime
    """Timezone-aware, whole microseconds."""
    actor_id: UUID | None
    actor_kind: str
    action: str
    target: str | None
    detail: str
    prev_hash: bytes


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event as stored, with the hash it was given when written."""

    event: AuditEvent
    hash: bytes


@dataclass(frozen=True, slots=True)
class ChainPoint:
    """The state of a chain after `seq` events: a head, or a checkpoint."""

    seq: int
    hash: bytes


GENESIS = ChainPoint(0, bytes(HASH_BYTES))
"""Where every chain starts; the first row's prev_hash is 32 zero bytes."""


class FaultKind(StrEnum):
    """What was found. The row named may itself be genuine: see each kind."""

    EDITED = "edited"
    """The row's content does not give its hash (also both rows of a swap)."""
    RELINKED = "relinked"
    """The row is consistent in itself but does not continue the row before: one of the two was rewritten."""
    MISSING = "missing"
    """Rows from `seq` to `until` are gone from the middle."""
    OUT_OF_PLACE = "out_of_place"
    """A row with a number already passed: inserted, duplicated or moved."""
    FOREIGN = "foreign"
    """A row of another tenant."""
    TRUNCATED = "truncated"
    """Rows from `seq` to `until` are gone from the end."""
    UNWITNESSED = "unwitnessed"
    """The row's hash is not the one a head or checkpoint recorded at that number, or lies beyond the head."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where the chain is not what was written; `until` equals `seq` for a single row."""

    kind: FaultKind
    seq: int
    until: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome: how many rows were read, the point reached, and the first faults in reading order."""

    rows: int
    reached: ChainPoint
    faults: tuple[Fault, ...]

    @property
    def intact(self) -> bool:
        return not self.faults


def event_hash(event: AuditEvent) -> bytes:
    """SHA-256 over every field in the layout of this module, 32 bytes."""
    parts = (
        LAYOUT.encode(),
        str(event.tenant).encode(),
        str(event.seq).encode(),
        str(microseconds(event.at)).encode(),
        None if event.actor_id is None else str(event.actor_id).encode(),
        event.actor_kind.encode(),
        event.action.encode(),
        None if event.target is None else event.target.encode(),
        event.detail.encode(),
        event.prev_hash,
    )
    framed = (_NULL if part is None else len(part).to_bytes(4, "big") + part for part in parts)
    return hashlib.sha256(b"".join(framed)).digest()


def verify(
    rows: Iterable[AuditRow],
    *,
    tenant: UUID,
    from_checkpoint: ChainPoint = GENESIS,
    head: ChainPoint | None = None,
    checkpoints: Iterable[ChainPoint] = (),
) -> Verification:
    """Read the rows after `from_checkpoint` in ascending order and say where the chain was changed.

    `head` is the tenant's head: rows that it counts and that are absent were truncated. `checkpoints` are what
    signed checkpoints recorded; they alone reveal a chain that was rewritten together with its head, and two of
    one number that differ say so by themselves. Constant memory; each row is charged with one fault, the most
    telling.
    """
    witnesses = {from_checkpoint.seq: from_checkpoint.hash}
    faults: list[Fault] = []
    for point in [*checkpoints, *([head] if head else [])]:
        if witnesses.setdefault(point.seq, point.hash) != point.hash:
            faults.append(Fault(FaultKind.UNWITNESSED, point.seq, point.seq))
    reached = from_checkpoint
    count = 0
    for row in rows:
        count += 1
        if len(faults) < MAX_FAULTS:
            faults.extend(_faults_of(row, reached, tenant, witnesses, head))
        if row.event.tenant == tenant and row.event.seq > reached.seq:
            reached = ChainPoint(row.event.seq, row.hash)
    end = min(reached.seq, head.seq) if head else reached.seq
    if max(witnesses) > end:
        faults.append(Fault(FaultKind.TRUNCATED, end + 1, max(witnesses)))
    return Verification(count, reached, tuple(faults))


def _faults_of(
    row: AuditRow, reached: ChainPoint, tenant: UUID, witnesses: Mapping[int, bytes], head: ChainPoint | None
) -> Iterable[Fault]:
    seq = row.event.seq
    if row.event.tenant != tenant:
        yield Fault(FaultKind.FOREIGN, seq, seq)
        return
    if seq <= reached.seq:
        yield Fault(FaultKind.OUT_OF_PLACE, seq, seq)
        return
    gap = seq > reached.seq + 1
    if gap:
        yield Fault(FaultKind.MISSING, reached.seq + 1, seq - 1)
    if event_hash(row.event) != row.hash:
        yield Fault(FaultKind.EDITED, seq, seq)
    elif not gap and row.event.prev_hash != reached.hash:
        yield Fault(FaultKind.RELINKED, seq, seq)
    elif witnesses.get(seq, row.hash) != row.hash or (head is not None and seq > head.seq):
        yield Fault(FaultKind.UNWITNESSED, seq, seq)
