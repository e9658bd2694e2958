"""The last step of an attempt: everything that was prepared and judged becomes knowledge at once, or nothing does."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from remembrancer.domain.assessment import Assessment
from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.problems import Problem
from remembrancer.domain.remember_plan import Context
from remembrancer.flows.attempt import Opened, failing, in_time, open_attempt
from remembrancer.flows.context import Services
from remembrancer.flows.remember_commit import Work, commit
from remembrancer.store import attempts
from remembrancer.store.database import Unit


def finish(services: Services, attempt_id: UUID) -> None:
    """One transaction: the attempt's fence, the commit, the terminal result, read back, the audit row last."""
    opened = open_attempt(services, attempt_id)
    with failing(services, opened):
        begun = services.clock()
        until = opened.deadlines.commit(begun)
        in_time(services.clock, until)
        if opened.row["assessment"] is None or opened.row["context"] is None:
            raise Problem("internal_failure")
        work = _work(services, opened)
        services.database.write(opened.credential, lambda unit: _write(services, unit, opened, work, until))


def _work(services: Services, opened: Opened) -> Work:
    """What the attempt knows."""
    row = opened.row
    context = Context.from_json(row["context"]["found"])
    contract = services.embedder.contract
    kept = services.database.operate(
        opened.credential, lambda unit: attempts.vectors(unit, opened.attempt_id, contract)
    )
    return Work(
        attempt_id=opened.attempt_id,
        request=opened.request,
        context=context,
        assessment=Assessment.from_json(row["assessment"]["verdicts"]),
        vectors=kept,
        contract=contract,
        screened=row["screened"],
        correlation_id=row["correlation_id"],
    )


def _write(services: Services, unit: Unit, opened: Opened, work: Work, until: datetime) -> None:
    row = opened.row
    attempts.fence(unit, opened.attempt_id, row["token"], bytes(row["request_hash"]))
    committed = commit(unit, work)
    assessed = row["assessment"]
    document = {
        **committed.document,
        "assessor": {"model": assessed["model"], "turns": assessed["turns"]},
    }
    result = canonical_json(document)
    attempts.finish(
        unit, opened.attempt_id, state="completed", status=200, result=result, refs=committed.refs
    )
    stored = attempts.outcome(unit, opened.attempt_id)
    if stored is None or (stored["state"], stored["result"]) != ("completed", result):
        raise Problem("internal_failure")
    in_time(services.clock, until)
