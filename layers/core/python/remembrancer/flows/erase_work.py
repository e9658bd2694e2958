"""The worker of long erasures and of subjects' requests: a bundle, then erasing batch by batch, then the certificate.

A batch is one transaction: nothing of it or all of it, with the items that named it. Whoever dies is followed by
another that finds what is left.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows import removal
from remembrancer.flows.context import Services
from remembrancer.flows.dsar_certificate import certify
from remembrancer.flows.jobs import claim
from remembrancer.flows.selectors import MOST, Selected
from remembrancer.flows.subject_bundle import write_bundle
from remembrancer.flows.tenants import Walk
from remembrancer.store import dsar, erasure, erasure_work, jobs, selection, spaces
from remembrancer.store.database import Row, Unit

BUDGET = timedelta(seconds=60)
"""How long one step goes on before it hands over to the next; a batch may take longer."""
HELD_LISTED = 1_000


def step(
    services: Services, tenant_id: UUID | None, job_id: UUID | None, *, budget: timedelta = BUDGET
) -> dict[str, Any]:
    """One step of the named job, or of the oldest that nobody works on: {tenant_id, job_id, more}.

    A problem that no retry can cure fails the job; any other is raised and the job goes on where it was.
    """
    row = claim(services, tenant_id, job_id, erasure_work.KINDS)
    if row is None:
        _give_up(services, tenant_id)
        return {"more": False}
    named = {"tenant_id": str(row["tenant_id"]), "job_id": str(row["job_id"])}
    try:
        more = _go_on(services, row, budget)
    except Problem as problem:
        if problem.entry.retryable:
            raise
        code = problem.code
        services.database.job(row["tenant_id"], lambda unit: _fail(unit, row, code))
        more = False
    return {**named, "more": more}


def _give_up(services: Services, tenant_id: UUID | None) -> None:
    """Jobs whose time is over have failed: somebody is told, and a subject's request may be answered by another."""

    def work(unit: Unit) -> None:
        for row in jobs.lapsed(unit, erasure_work.KINDS):
            _fail(unit, row, "expired")

    tenants = [tenant_id] if tenant_id is not None else [one for one, _ in services.database.tenants()]
    walk = Walk()
    for tenant in tenants:
        with walk.part(tenant):
            services.database.job(tenant, work, audited=False)
    walk.end()


def _fail(unit: Unit, row: Row, code: str) -> None:
    jobs.fail(unit, row["job_id"], code)
    public = format_id("job", row["job_id"])
    request_id = dsar.fail(unit, row["job_id"])
    unit.audit("job_failed", public, code=code, correlation_id=row["correlation_id"])
    unit.alert("job_failed", public if request_id is None else format_id("dsr", request_id))


def _go_on(services: Services, row: Row, budget: timedelta) -> bool:
    """Whether there is more to do."""
    credential, job_id = jobs.credential_of(row), row["job_id"]
    if row["request"].get("export") and "bundle" not in (row["result"] or {}):
        write_bundle(services, row)
    over = services.clock() + budget
    while services.database.write(credential, lambda unit: _batch(services, unit, job_id)):
        if services.clock() >= over:
            services.database.operate(credential, lambda unit: jobs.release(unit, job_id))
            return True
    return False


def _batch(services: Services, unit: Unit, job_id: UUID) -> bool:
    """The next MOST rows, or else the end. Whether there may be more."""
    erasure.lock_imports(unit)
    row = jobs.lock(unit, job_id)
    public = format_id("job", job_id)
    if row is None:
        unit.audit("job_already_finished", public)
        return False
    authorize(unit.principal, "admin")
    if not row["request"]["purge"]:
        erasure_work.clear(unit, job_id)
    items = erasure_work.next_items(unit, job_id, MOST)
    if not items:
        _finish(services, unit, row)
        return False
    wanted = Selected(
        *(items.get(kind, []) for kind in ("memory", "proposal", "job", "occurrence", "attempt"))
    )
    removal.lock_for_ids(unit, wanted)
    wanted = _with_approved(unit, row, wanted)
    found = removal.judge(services, unit, wanted)
    counts = removal.delete(unit, found.doomed, found.along)
    removal.bury(services, unit, found, row["request"]["reason"], job_id)
    erasure_work.done(unit, job_id, items, _added(row["result"] or {}, found, counts))
    jobs.renew(unit, job_id)
    shown = removal.shown(found)
    unit.audit(
        "purged",
        public,
        selector=row["request"]["selector"],
        counts=counts,
        reason=row["request"]["reason"],
        **shown,
        **row["request"]["evidence"],
    )
    for memory in shown["erased"]:
        unit.alert("erased", memory)
    return True


def _with_approved(unit: Unit, row: Row, wanted: Selected) -> Selected:
    """What became a memory after it was written down as a capture goes as that memory; ids mean themselves alone."""
    if "proposal_ids" in row["request"]["selector"]:
        return wanted
    approved = selection.memories_from(unit, wanted.proposals)
    return replace(wanted, memories=sorted({*wanted.memories, *approved}))


def _added(result: dict[str, Any], found: removal.Found, counts: dict[str, int]) -> dict[str, Any]:
    """What the job has done so far, with this batch."""
    before = result.get("erased", {})
    held = result.get("held", {})
    shown = removal.shown(found)
    doomed = found.doomed
    return {
        **result,
        "erased": {
            "memories": before.get("memories", 0) + len(doomed.memories),
            "proposals": before.get("proposals", 0) + len(doomed.proposals),
            "imports": before.get("imports", 0) + len(doomed.jobs),
            "submissions": before.get("submissions", 0) + len(doomed.occurrences),
            "rows": {table: before.get("rows", {}).get(table, 0) + n for table, n in counts.items()},
        },
        "held": {
            "total": held.get("total", 0) + len(found.held),
            **{
                name: (held.get(name, []) + shown[key])[:HELD_LISTED]
                for name, key in (
                    ("memories", "held"),
                    ("proposals", "held_proposals"),
                    ("imports", "held_jobs"),
                    ("attempts", "held_attempts"),
                    ("submissions", "held_submissions"),
                )
            },
        },
    }


def _finish(services: Services, unit: Unit, row: Row) -> None:
    """The generations rise once more: what began after the work was taken on may have read what went since, and so
    may a mean or a count that was computed since."""
    if row["request"]["purge"]:
        removal.lock_everywhere(unit)
        erasure.raise_generation(unit, spaces.every(unit))
    erasure_work.finish(unit, row["job_id"])
    public = format_id("job", row["job_id"])
    if row["kind"] == "dsar":
        certify(services, unit, row)
    else:
        erased = (row["result"] or {}).get("erased", {})
        unit.audit("erasure_completed", public, erased=erased, **row["request"]["evidence"])
        unit.alert("erasure_completed", public)
