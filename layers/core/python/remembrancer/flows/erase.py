"""Erasure: a human admin's signed request, dry run first, nothing left but tombstones and the chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from remembrancer.domain.ids import format_id
from remembrancer.domain.problems import Problem
from remembrancer.domain.requests import PurgeRequest
from remembrancer.domain.subjects import subject_key
from remembrancer.flows.context import Call, Services
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.selectors import Selected, Selector, select, selector, unnamed, witness
from remembrancer.flows.signed import signed, spend
from remembrancer.store import erasure, jobs, legal, locks, selection, spaces
from remembrancer.store.database import Row, Unit


class _DryRun(Exception):
    """Carries the counts out of a transaction that must not commit."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body


@dataclass(frozen=True)
class _Found:
    """Under the locks: what is there, what a legal hold keeps, what goes."""

    rows: list[Row]
    doomed: Selected
    held: Selected


def purge(services: Services, call: Call, request: PurgeRequest) -> Answer:
    """200 with the counts by table, the ids on legal hold and the ids that were not found."""
    named = selector(request.memory_ids, request.data_subject, request.owner)
    asked = {**request.model_dump(mode="json"), "data_subject": unnamed(services.macs, named.subject)}
    with signed(services, call, asked) as start:
        if start.replay is not None:
            return start.replay

        def work(unit: Unit) -> Answer:
            start.fence(unit)
            verified = spend(services, unit, call)
            found = _lock(services, unit, named)
            counts = erasure.erase(unit, found.doomed.memories, found.doomed.proposals, found.doomed.jobs)
            body = _body(call, request, named, found, counts)
            if request.dry_run:
                raise _DryRun(body)
            _fence(unit, named, found)
            if found.doomed.memories:
                _erase_bundles(services, unit)
            tombstones = erasure.bury(
                unit,
                found.doomed.memories,
                lambda memory_id: services.macs.mac("tombstone", unit.tenant_id, memory_id.bytes),
                request.reason,
            )
            body["tombstones"] = [format_id("tomb", tombstone_id) for tombstone_id in tombstones]
            body["remains"] = REMAINS
            unit.audit(
                "purged",
                None,
                selector=_selector_detail(services, unit, named),
                erased=body["erased"],
                held=body["held"],
                held_proposals=body["held_proposals"],
                held_jobs=body["held_jobs"],
                counts=counts,
                reason=request.reason,
                key_id=verified.key_id,
                signature_base=verified.base_digest.hex(),
                correlation_id=call.correlation_id,
            )
            for shown in body["erased"]:
                unit.alert("erased", shown)
            return start.answer(unit, 200, body, [])

        try:
            return services.database.write(call.credential, work)
        except _DryRun as dry:
            return _dry_answer(services, call, start, dry.body, request, named)


REMAINS = (
    "Backups and point-in-time recovery keep the bytes until their retention ends; a restored database replays "
    "the tombstones before it opens. The tombstones and the audit rows stay and hold no content."
)


def _body(
    call: Call, request: PurgeRequest, named: Selector, found: _Found, counts: dict[str, int]
) -> dict[str, Any]:
    present = {row["memory_id"] for row in found.rows}
    return {
        "dry_run": request.dry_run,
        "selector": named.kind,
        "erased": [format_id("mem", memory_id) for memory_id in found.doomed.memories],
        "held": [format_id("mem", memory_id) for memory_id in found.held.memories],
        "held_proposals": [format_id("prop", proposal_id) for proposal_id in found.held.proposals],
        "held_jobs": [format_id("job", job_id) for job_id in found.held.jobs],
        "not_found": [format_id("mem", memory_id) for memory_id in named.ids if memory_id not in present],
        "counts": counts,
        "correlation_id": call.correlation_id,
    }


def _selector_detail(services: Services, unit: Unit, named: Selector) -> dict[str, Any]:
    """For the chain: the subject as a keyed digest."""
    if named.subject is not None:
        return {"data_subject": witness(services.macs, unit.tenant_id, named.subject).hex()}
    return (
        {"memory_ids": len(named.ids)} if named.owner is None else {"owner": format_id("prin", named.owner)}
    )


def _dry_answer(
    services: Services, call: Call, start: Keyed, body: dict[str, Any], request: PurgeRequest, named: Selector
) -> Answer:
    """Nothing was erased; that somebody looked is audited, and the nonce is spent."""

    def record(unit: Unit) -> Answer:
        start.fence(unit)
        verified = spend(services, unit, call)
        unit.audit(
            "purge_dry_run",
            None,
            selector=_selector_detail(services, unit, named),
            memories=len(body["erased"]),
            held=body["held"],
            reason=request.reason,
            key_id=verified.key_id,
            correlation_id=call.correlation_id,
        )
        return start.answer(unit, 200, body, [])

    return services.database.write(call.credential, record)


def _lock(services: Services, unit: Unit, named: Selector) -> _Found:
    """Wait until no write is in flight in the spaces concerned, keep new ones out, and look.

    A subject may be in any space, also in one where its first memory is just being written.
    """
    erasure.lock_imports(unit)
    concerned = (
        [row["space_id"] for row in erasure.find(unit, named.ids)]
        if named.kind == "memory_ids"
        else spaces.every(unit)
    )
    locks.lock(unit, "space", [space_id.bytes for space_id in concerned])
    selected = select(unit, named)
    rows = erasure.find(unit, selected.memories)
    held = _on_hold(services, unit)
    kept = {row["memory_id"] for row in rows if row["on_legal_hold"] or held(row["data_subjects"])}
    gone = [row["memory_id"] for row in rows if row["memory_id"] not in kept]
    staged = sorted({*selected.jobs, *selection.jobs_with_texts_of(unit, gone)})
    proposed_for = selection.subjects_of_proposals(unit, selected.proposals)
    staged_for = selection.subjects_of_jobs(unit, staged)
    kept_proposals = [one for one in selected.proposals if held(proposed_for.get(one, []))]
    kept_jobs = [one for one in staged if held(staged_for.get(one, []))]
    return _Found(
        rows,
        doomed=Selected(
            gone,
            [one for one in selected.proposals if one not in set(kept_proposals)],
            [one for one in staged if one not in set(kept_jobs)],
        ),
        held=Selected(sorted(kept), kept_proposals, kept_jobs),
    )


def _on_hold(services: Services, unit: Unit) -> Callable[[list[str]], bool]:
    """Whether one of these subjects is held by an order."""
    digests = legal.held_subjects(unit)

    def held(subjects: list[str]) -> bool:
        return bool(digests) and any(
            witness(services.macs, unit.tenant_id, subject_key(subject)) in digests for subject in subjects
        )

    return held


def _fence(unit: Unit, named: Selector, found: _Found) -> None:
    """What was prepared before this erasure may not commit where it would bring the erased back."""
    doomed = set(found.doomed.memories)
    touched = sorted({row["space_id"] for row in found.rows if row["memory_id"] in doomed})
    erasure.raise_generation(unit, touched if named.kind == "memory_ids" else spaces.every(unit))


def _erase_bundles(services: Services, unit: Unit) -> None:
    """Any bundle of the last day may hold the bytes. Its object goes first: a purge that fails then is repeated."""
    keys = jobs.erase_bundles(unit)
    if keys:
        if services.objects is None:
            raise Problem("configuration_invalid")
        services.objects.delete(keys)
