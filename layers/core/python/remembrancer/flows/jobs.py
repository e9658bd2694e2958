"""Long work as its caller sees it: the answer that it is taken on, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import Action, Principal, authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.instants import instant
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.tenants import Walk
from remembrancer.store import jobs
from remembrancer.store.database import Row, Unit

LINK_S = 300
"""How long a link to a bundle works."""
_NEEDS: Mapping[str, Action] = {"export": "review", "dsar": "admin"}
"""What fetching a bundle takes, beside having asked for it."""


def accepted(unit: Unit, start: Keyed, call: Call, job_id: UUID, shown: Mapping[str, Any]) -> Answer:
    """202: the last step of the write that made the job."""
    public = format_id("job", job_id)
    body = {
        "job_id": public,
        "location": f"/v1/jobs/{public}",
        "status": "working",
        **shown,
        "correlation_id": call.correlation_id,
    }
    return start.answer(unit, 202, body, [job_id])


def claim(
    services: Services, tenant_id: UUID | None, job_id: UUID | None, kinds: Sequence[str] = jobs.WORKED_ON
) -> Row | None:
    """The named job, or the oldest of any tenant that nobody works on."""
    tenants = [tenant_id] if tenant_id is not None else [t for t, _ in services.database.tenants()]
    walk = Walk()
    for tenant in tenants:
        with walk.part(tenant):
            row = services.database.job(tenant, lambda unit: jobs.claim(unit, job_id, kinds), audited=False)
            if row is not None:
                return row
    walk.end()
    return None


def job_status(services: Services, call: Call, job: str) -> dict[str, Any]:
    """How far the caller's job is, and what became of it; a bundle's link is made anew and audited each time."""

    def look(unit: Unit) -> dict[str, Any]:
        row = jobs.get(unit, public_id("job", job))
        if row is None or row["principal_id"] != unit.principal.principal_id:
            raise Problem("not_found")
        if row["state"] == "erased":
            raise Problem("result_erased")
        over = row["expires_at"] <= unit.now
        link = None
        if row["object_key"] is not None and not over:
            _may_fetch(unit.principal, row)
            if services.objects is None:
                raise Problem("configuration_invalid")
            link = services.objects.link(row["object_key"], LINK_S)
            unit.audit("bundle_linked", format_id("job", row["job_id"]), correlation_id=call.correlation_id)
        return {
            "job_id": format_id("job", row["job_id"]),
            "kind": row["kind"],
            "status": "failed" if over and row["state"] == "working" else row["state"],
            "failure": "expired" if over and row["state"] == "working" else row["failure"],
            "done": row["done"],
            "total": row["total"],
            "created_at": instant(row["created_at"]),
            "finished_at": instant(row["finished_at"]),
            "expires_at": instant(row["expires_at"]),
            "result": row["result"],
            "link": link,
            "link_expires_in_s": None if link is None else LINK_S,
        }

    return services.database.operate(call.credential, look)


def _may_fetch(principal: Principal, row: Row) -> None:
    """Raises Problem forbidden for who may not read any more what lies in the bundle."""
    authorize(principal, _NEEDS[row["kind"]])
    if row["kind"] != "export":
        return
    for space in row["result"]["spaces"]:
        space_id = principal.private_space if space == "private" else principal.team_space
        authorize(principal, "read", space=space_id)
    if row["result"]["pii"] and not principal.sees_pii:
        raise Problem("forbidden", [FieldError("", "pii", "holds personal data that is masked for you")])
