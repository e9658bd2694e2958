"""Many texts of one request as memories, in one transaction: what the imports and their jobs publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import Passages, Place
from remembrancer.domain.principal import Principal, authorize, may_change_others
from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import IngestRequest
from remembrancer.flows.admit import Admitted, Candidate, admit_many
from remembrancer.flows.enrich import enriched
from remembrancer.flows.index import Text
from remembrancer.store import memories, sources, spaces
from remembrancer.store.database import Row, Unit


@dataclass(frozen=True)
class Part:
    """Where a text lies in the document it is a part of; lines from 1, both ends included."""

    ordinal: int
    heading_path: str | None
    line_start: int
    line_end: int


@dataclass(frozen=True)
class Item:
    """One text that passed the gate. `index` is its place in what was sent."""

    index: int
    request: IngestRequest
    report: Mapping[str, Any]
    pii: bool
    held: bool
    part: Part | None = None
    claimed: Mapping[str, Any] | None = None
    complete: bool = False
    """It says all of graph and time itself: nothing is read from its text."""

    @property
    def text(self) -> Text:
        return text_of(self.request)

    def enriched(self, now: datetime) -> Item:
        """With what its text states of graph and time (flows/enrich). Once: what was read is said from then on."""
        return self if self.complete else replace(self, request=enriched(self.request, now))

    def to_dict(self) -> dict[str, Any]:
        """JSON, for the staging table."""
        part = self.part
        return {
            "index": self.index,
            "request": self.request.model_dump(mode="json", exclude_defaults=True),
            "report": dict(self.report),
            "pii": self.pii,
            "held": self.held,
            "part": None
            if part is None
            else [part.ordinal, part.heading_path, part.line_start, part.line_end],
            "claimed": None if self.claimed is None else dict(self.claimed),
            "complete": self.complete,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Item:
        part = stored["part"]
        return cls(
            index=stored["index"],
            request=IngestRequest.model_validate(stored["request"]),
            report=stored["report"],
            pii=stored["pii"],
            held=stored["held"],
            part=None if part is None else Part(*part),
            claimed=stored["claimed"],
            complete=stored["complete"],
        )


def text_of(request: IngestRequest) -> Text:
    return Text(request.content, request.author, request.observed_at)


@dataclass(frozen=True)
class Published:
    """What became of the items, in their order, and the parts of an earlier revision that were retired."""

    admitted: list[Admitted]
    retired: list[UUID] = field(default_factory=list)

    @property
    def fresh(self) -> list[Admitted]:
        return [one for one in self.admitted if not one.duplicate]


def publish(
    unit: Unit,
    items: Sequence[Item],
    passages: Sequence[Passages],
    correlation_id: str,
    began: Principal,
    submitted_at: datetime,
) -> Published:
    """Admit every item, replace the earlier revision of their source, audit each memory.

    The spaces are locked alone: a batch meets no other writer, so that two imports of one source cannot mix
    and no lock is needed for each of thousands of rows. Parts of a document all go to one space. Raises
    Problem forbidden for a space the caller may not write to, and when the source is another owner's and the
    caller no reviewer, commit_conflict when something was erased there since `began`, stale_input when a revision
    of the source that was submitted later is there already.
    """
    targets = [writable_space(unit, item.request.target_space) for item in items]
    memories.lock(unit, "space", [space_id.bytes for space_id in targets])
    spaces.unchanged(unit, began, set(targets))
    source_uri = items[0].request.source_uri if items[0].part is not None else None
    earlier = _earlier(unit, targets[0], source_uri, items, submitted_at)
    parent_id = earlier[0]["parent_id"] if earlier else unit.new_id()
    candidates = [
        _candidate(unit, space_id, item, found, parent_id, source_uri)
        for item, space_id, found in zip(items, targets, passages, strict=True)
    ]
    admitted = admit_many(unit, candidates, correlation_id, submitted_at)
    retired = [] if any(item.held for item in items) else _retire(unit, earlier, items, admitted)
    _audit(unit, items, admitted, retired, correlation_id)
    return Published(admitted, retired)


def _candidate(
    unit: Unit, space_id: UUID, item: Item, passages: Passages, parent_id: UUID, source_uri: str | None
) -> Candidate:
    part = item.part
    return Candidate(
        request=item.request,
        passages=passages,
        report=dict(item.report),
        pii=item.pii,
        held=item.held,
        overridden=False,
        space_id=space_id,
        owner_id=unit.principal.principal_id,
        admitted_by="ingest",
        place=None
        if part is None
        else Place(parent_id, part.ordinal, part.heading_path, part.line_start, part.line_end),
        claimed=item.claimed,
        part_of_source=source_uri is not None,
        exclusive=True,
    )


def _earlier(
    unit: Unit, space_id: UUID, source_uri: str | None, items: Sequence[Item], submitted_at: datetime
) -> list[Row]:
    if source_uri is None:
        return []
    parts = sources.current_parts(unit, space_id, source_uri, items[0].request.source)
    foreign = any(part["owner_id"] != unit.principal.principal_id for part in parts)
    if foreign and not may_change_others(unit.principal):
        raise Problem("forbidden")
    if any(part["submitted_at"] > submitted_at for part in parts):
        raise Problem("stale_input")  # what waited in a job must not undo what came after it
    return parts


def writable_space(unit: Unit, asked: str | None) -> UUID:
    """The space a write goes to. Raises Problem forbidden when this principal may not write there."""
    space_id = target_space(unit.principal, asked)
    authorize(unit.principal, "write", space=space_id)
    return space_id


def target_space(principal: Principal, asked: str | None) -> UUID:
    """The space that was asked for, else the tenant's default. Whether it is allowed, `authorize` says."""
    wanted = asked or principal.settings.default_space
    return principal.private_space if wanted == "private" else principal.team_space


def _retire(
    unit: Unit, earlier: Sequence[Row], items: Sequence[Item], admitted: Sequence[Admitted]
) -> list[UUID]:
    """The parts that the new revision no longer has; each points at what now stands under its heading."""
    kept = {one.memory_id for one in admitted}
    by_title: dict[str | None, UUID] = {}
    for item, one in zip(items, admitted, strict=True):
        if not one.duplicate:
            by_title.setdefault(item.request.title, one.memory_id)
    gone = [part for part in earlier if part["memory_id"] not in kept]
    sources.retire(unit, [(part["memory_id"], part["version"], by_title.get(part["title"])) for part in gone])
    return [part["memory_id"] for part in gone]


def _audit(
    unit: Unit,
    items: Sequence[Item],
    admitted: Sequence[Admitted],
    retired: Sequence[UUID],
    correlation_id: str,
) -> None:
    for item, one in zip(items, admitted, strict=True):
        unit.audit(
            "memory_duplicate" if one.duplicate else "memory_admitted",
            format_id("mem", one.memory_id),
            source=item.request.source,
            verdict="quarantine" if item.held else "clean",
            correlation_id=correlation_id,
        )
    for memory_id in retired:
        unit.audit(
            "memory_retired", format_id("mem", memory_id), reason="revision", correlation_id=correlation_id
        )
    held = [one.memory_id for one in admitted if one.held and not one.duplicate]
    if held:
        unit.alert("screen", format_id("mem", held[0]))  # one for the batch: its ids are in the queue


def outcome(items: Sequence[Item], published: Published) -> dict[str, Any]:
    """What the caller is told, by the index of what was sent. Ids alone: a job keeps this."""
    return {
        "items": [
            {
                "index": item.index,
                "memory_id": format_id("mem", one.memory_id),
                "status": _status(one),
                "lines": None if item.part is None else [item.part.line_start, item.part.line_end],
            }
            for item, one in zip(items, published.admitted, strict=True)
        ],
        "retired": [format_id("mem", memory_id) for memory_id in published.retired],
    }


def _status(one: Admitted) -> str:
    if one.held:
        return "held"
    return "duplicate" if one.duplicate else "stored"
