"""The one way in which rows are erased: lock their spaces, see what a legal hold keeps, delete, bury, fence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from remembrancer.domain.attempt_objects import keys
from remembrancer.domain.ids import Prefix, format_id
from remembrancer.domain.problems import Problem
from remembrancer.domain.subjects import subject_key
from remembrancer.flows.context import Services
from remembrancer.flows.selectors import Selected, witness
from remembrancer.store import attempts, erasure, jobs, legal, locks, selection, spaces
from remembrancer.store.database import Row, Unit

REMAINS = (
    "Backups and point-in-time recovery keep the bytes until their retention ends; a restored database replays "
    "the tombstones before it opens. The tombstones and the audit rows stay and hold no content."
)


@dataclass(frozen=True)
class Found:
    """Under the locks: what goes, what a legal hold keeps, and the spaces of what goes.

    `along` are the proposals that go with the memories, `before` the imports that are over and brought them: a backup
    may be older than the memory and hold its text there.
    """

    doomed: Selected
    held: Selected
    spaces: list[UUID]
    along: list[UUID]
    before: list[UUID]

    @property
    def present(self) -> set[UUID]:
        return {*self.doomed.memories, *self.held.memories, *self.doomed.proposals, *self.held.proposals}


def lock_for_ids(unit: Unit, wanted: Selected) -> None:
    """Wait until no write is in flight in the spaces of these rows, and keep new ones out."""
    _lock_work(unit)
    _lock(unit, erasure.spaces_of(unit, wanted.memories, wanted.proposals, wanted.occurrences))


def lock_everywhere(unit: Unit) -> None:
    """The same of every space: a subject may be where its first memory is just being written."""
    _lock_work(unit)
    _lock(unit, spaces.every(unit))


def _lock_work(unit: Unit) -> None:
    """What is being published or committed, before its spaces: as it does itself."""
    erasure.lock_imports(unit)
    attempts.lock_processing(unit)


def _lock(unit: Unit, space_ids: Collection[UUID]) -> None:
    locks.lock(unit, "space", [space_id.bytes for space_id in space_ids])


def judge(services: Services, unit: Unit, wanted: Selected) -> Found:
    """Call under the locks. What is wanted and not there is in neither half."""
    held = _on_hold(services, unit)
    memories = erasure.find(unit, wanted.memories)
    kept = {row["memory_id"] for row in memories if held(row)}
    gone = [row["memory_id"] for row in memories if row["memory_id"] not in kept]
    beside = erasure.proposals_with(unit, gone)
    proposals = erasure.find_proposals(unit, sorted({*wanted.proposals, *beside}))
    occurrences = erasure.find_occurrences(unit, wanted.occurrences)
    staged = sorted({*wanted.jobs, *selection.jobs_with_texts_of(unit, gone)})
    of_staged = selection.subjects_of_jobs(unit, staged)
    jobs_kept = {one for one in staged if held({"data_subjects": of_staged.get(one, [])})}
    of_attempts = attempts.touched(unit, wanted.attempts, gone, wanted.occurrences)
    kept_attempts, gone_attempts = _halves(of_attempts, "attempt_id", held)
    kept_proposals, going_proposals = _halves(proposals, "proposal_id", held)
    gone_proposals = [one for one in going_proposals if one in set(wanted.proposals)]
    kept_occurrences, gone_occurrences = _halves(occurrences, "occurrence_id", held)
    doomed = Selected(
        gone, gone_proposals, [j for j in staged if j not in jobs_kept], gone_occurrences, gone_attempts
    )
    going = {*gone, *going_proposals, *gone_occurrences}
    touched = {
        row["space_id"]
        for name, rows in (
            ("memory_id", memories),
            ("proposal_id", proposals),
            ("occurrence_id", occurrences),
        )
        for row in rows
        if row[name] in going
    }
    return Found(
        doomed,
        Selected(sorted(kept), kept_proposals, sorted(jobs_kept), kept_occurrences, kept_attempts),
        sorted(touched),
        [one for one in going_proposals if one not in set(gone_proposals)],
        erasure.imports_of(unit, gone, gone_occurrences),
    )


def _halves(rows: Sequence[Row], name: str, held: Callable[[Row], bool]) -> tuple[list[UUID], list[UUID]]:
    """Held, and not."""
    kept: list[UUID] = []
    gone: list[UUID] = []
    for row in rows:
        (kept if held(row) else gone).append(row[name])
    return kept, gone


def _on_hold(services: Services, unit: Unit) -> Callable[[Row], bool]:
    """Whether an order holds this row, or one of the subjects that it names."""
    digests = legal.held_subjects(unit)

    def held(row: Row) -> bool:
        return bool(row.get("on_legal_hold")) or (
            bool(digests)
            and any(
                witness(services.macs, unit.tenant_id, subject_key(subject)) in digests
                for subject in row["data_subjects"]
            )
        )

    return held


def delete(unit: Unit, doomed: Selected, along: Sequence[UUID]) -> dict[str, int]:
    """Rows removed, by table; `along` as in Found."""
    of_attempts = attempts.erase(unit, doomed.attempts)
    proposals = [*doomed.proposals, *along]
    counts = erasure.erase(unit, doomed.memories, proposals, doomed.jobs, doomed.occurrences)
    return counts | of_attempts


def bury(
    services: Services, unit: Unit, found: Found, reason: str, erasure_id: UUID | None = None
) -> list[UUID]:
    """A tombstone for every row that goes, and for what a backup may still hold in its place; no bundle left that may
    hold its bytes. The tombstones' ids.

    `erasure_id` groups the tombstones of one long erasure, whose own bundle is its subject's and stays.
    """
    doomed = found.doomed
    if doomed.memories or doomed.proposals or doomed.occurrences or doomed.attempts:
        _erase_bundles(services, unit, erasure_id)
    _erase_work(services, unit, doomed.attempts)
    rows = [*doomed.memories, *doomed.proposals, *doomed.jobs, *doomed.occurrences, *doomed.attempts]
    rows += [*found.along, *found.before]

    def mac(row_id: UUID) -> bytes:
        return services.macs.mac("tombstone", unit.tenant_id, row_id.bytes)

    return erasure.bury(unit, rows, mac, reason, erasure_id)


def _erase_bundles(services: Services, unit: Unit, keep: UUID | None) -> None:
    """Any bundle of the last day may hold the bytes. Its object goes first: a purge that fails then is repeated."""
    bundles = jobs.erase_bundles(unit, keep)
    if bundles:
        if services.objects is None:
            raise Problem("configuration_invalid")
        services.objects.delete(bundles)


def _erase_work(services: Services, unit: Unit, attempt_ids: Sequence[UUID]) -> None:
    """What attempts that were at work handed on through the bucket."""
    at_work = attempts.erased_at_work(unit, attempt_ids)
    if at_work:
        if services.objects is None:
            raise Problem("configuration_invalid")
        services.objects.delete([key for one in at_work for key in keys(unit.tenant_id, one)])


def shown(found: Found) -> dict[str, Any]:
    """The rows, by their public ids."""
    return {
        "erased": ids("mem", found.doomed.memories),
        "erased_proposals": ids("prop", found.doomed.proposals),
        "held": ids("mem", found.held.memories),
        "held_proposals": ids("prop", found.held.proposals),
        "held_jobs": ids("job", found.held.jobs),
        "held_attempts": ids("att", found.held.attempts),
        "held_submissions": ids("occ", found.held.occurrences),
    }


def ids(prefix: Prefix, rows: Sequence[UUID]) -> list[str]:
    return [format_id(prefix, row) for row in rows]
