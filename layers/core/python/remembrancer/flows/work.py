"""The worker of long jobs: judges, reads and embeds what is staged batch by batch, then publishes it at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import Credential
from remembrancer.domain.problems import Problem
from remembrancer.flows import gate
from remembrancer.flows.batch import Item, Published, outcome, publish
from remembrancer.flows.bundle import write_bundle
from remembrancer.flows.context import Services
from remembrancer.flows.index import cut_text
from remembrancer.flows.jobs import claim
from remembrancer.flows.records import audit_refused
from remembrancer.flows.staged import prepare, told
from remembrancer.store import jobs
from remembrancer.store.database import Row, Unit

BATCH = 64
"""Passages embedded between two commits: what an interruption costs at most."""
BUDGET = timedelta(seconds=60)
"""How long one step goes on before it hands over to the next; publishing may take longer."""


def step(
    services: Services, tenant_id: UUID | None, job_id: UUID | None, *, budget: timedelta = BUDGET
) -> dict[str, Any]:
    """One step of the named job, or of the oldest that nobody works on: {tenant_id, job_id, more}.

    A problem that no retry can cure fails the job; any other is raised and the job goes on where it was.
    """
    row = claim(services, tenant_id, job_id)
    if row is None:
        return {"more": False}
    named = {"tenant_id": str(row["tenant_id"]), "job_id": str(row["job_id"])}
    try:
        more = _export(services, row) if row["kind"] == "export" else _import(services, row, budget)
    except Problem as problem:
        if problem.entry.retryable:
            raise
        code = problem.code
        # Those whose text is staged; the principal may be one who can no longer ask for anything.
        spaces = tuple(map(UUID, row["request"].get("generations", ())))
        services.database.job(row["tenant_id"], lambda unit: _fail(unit, row, code), spaces=spaces)
        more = False
    return {**named, "more": more}


def _fail(unit: Unit, row: Row, code: str) -> None:
    jobs.empty(unit, row["job_id"])
    jobs.fail(unit, row["job_id"], code)
    unit.audit("job_failed", format_id("job", row["job_id"]), code=code, correlation_id=row["correlation_id"])
    unit.alert("job_failed", format_id("job", row["job_id"]))


def _export(services: Services, row: Row) -> bool:
    write_bundle(services, row)
    return False


def _import(services: Services, row: Row, budget: timedelta) -> bool:
    """Whether there is more to do."""
    credential = jobs.credential_of(row)
    over = services.clock() + budget
    while _embed(services, row, credential):
        if services.clock() >= over:
            services.database.operate(credential, lambda unit: jobs.release(unit, row["job_id"]))
            return True
    services.database.write(credential, lambda unit: _publish(unit, row["job_id"]))
    return False


def _embed(services: Services, job: Row, credential: Credential) -> bool:
    """Judge, read, cut and embed the next batch, between transactions; False when nothing is left."""
    job_id = job["job_id"]
    rows = _cut(services, job, credential)
    if not rows:
        return services.database.operate(credential, lambda unit: bool(jobs.uncut(unit, job_id, 1)))
    vectors = services.embedder.embed([row["rendered"] for row in rows])

    def keep(unit: Unit) -> None:
        jobs.set_vectors(unit, job_id, rows, vectors, services.embedder.contract)
        jobs.progress(unit, job_id)
        jobs.renew(unit, job_id)

    services.database.operate(credential, keep)
    return True


def _cut(services: Services, job: Row, credential: Credential) -> list[Row]:
    """What is to be embedded next: {item, ordinal, rendered}; none also where a whole batch was refused."""
    job_id = job["job_id"]
    settings, uncut = services.database.operate(
        credential, lambda unit: (unit.principal.settings, jobs.uncut(unit, job_id, BATCH))
    )
    prepared = prepare(services, settings, uncut, job["created_at"])
    cuts = {ordinal: cut_text(services.embedder, item.text) for ordinal, item in prepared.items.items()}

    def keep(unit: Unit) -> list[Row]:
        gate.same_policy(unit, settings)
        # What another worker has made ready meanwhile is left as it is.
        kept = jobs.ready(unit, job_id, prepared.bodies)
        refused = [entry for ordinal, entry in prepared.refused.items() if ordinal in kept]
        audit_refused(unit, refused, job["correlation_id"])
        mine = [row for row in uncut if row["ordinal"] in kept & cuts.keys()]
        jobs.add_passages(unit, job_id, [(row, cuts[row["ordinal"]]) for row in mine])
        jobs.renew(unit, job_id)
        return jobs.unembedded(unit, job_id, BATCH)

    return services.database.operate(credential, keep)


def _publish(unit: Unit, job_id: UUID) -> None:
    """Everything at once, or nothing. A job that another worker finished meanwhile is left alone."""
    row = jobs.lock(unit, job_id)
    public = format_id("job", job_id)
    if row is None:
        unit.audit("job_already_finished", public)
        return
    try:
        passages = jobs.passages(unit, job_id)
    except ValueError:  # the model was replaced meanwhile
        raise Problem("stale_input") from None
    bodies = jobs.items(unit, job_id)
    if len(bodies) != row["total"]:
        raise Problem("forbidden")  # the principal no longer sees the space that the rest is for
    staged = [entry for entry in bodies if jobs.REFUSED not in entry["body"]]
    items = [Item.from_dict(entry["body"]) for entry in staged]
    shown = row["request"]["shown"]
    if row["request"]["records"]:
        shown = told(shown, [entry["body"] for entry in bodies])
    generations = {UUID(space_id): n for space_id, n in row["request"]["generations"].items()}
    found = [passages[entry["ordinal"]] for entry in staged]
    began = replace(unit.principal, generations=generations)
    try:
        published = (
            publish(unit, items, found, row["correlation_id"], began, row["created_at"])
            if items
            else Published([])
        )
    except Problem as problem:
        if problem.code == "commit_conflict":
            raise Problem("stale_input") from None  # no retry brings the time before the erasure back
        raise
    jobs.finish(unit, job_id, result={**shown, **outcome(items, published)})
    unit.audit(
        "import_published",
        public,
        items=len(items),
        new=len(published.fresh),
        retired=len(published.retired),
        correlation_id=row["correlation_id"],
    )
