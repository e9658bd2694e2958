"""The end of a tenant: a signed request of its admin erases everything that is not held, and stops everybody else."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.trust_requests import OffboardRequest
from remembrancer.flows import removal
from remembrancer.flows.context import Call, Services
from remembrancer.flows.erase import stage
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, Keyed
from remembrancer.flows.selectors import everything
from remembrancer.flows.signed import signed, spent
from remembrancer.store import erasure, identity, spaces
from remembrancer.store.database import Unit


def offboard(services: Services, call: Call, request: OffboardRequest) -> Answer:
    """202 with the job that erases; 200 with what there is for a dry run. Raises Problem invalid_input for a name that
    is not the tenant's.

    Agents, and people who are neither admin nor auditor, are stopped at once; those stay to see it through. The rest
    is an operator's (flows/recover.close_tenant).
    """
    with signed(services, call, request.model_dump(mode="json")) as start:
        if start.replay is not None:
            return start.replay
        answer, job_id = services.database.write(
            call.credential, lambda unit: _offboard(services, call, start, request, unit)
        )
        if job_id is not None:
            services.start_job(start.principal.tenant_id, job_id)
        return answer


def _offboard(
    services: Services, call: Call, start: Keyed, request: OffboardRequest, unit: Unit
) -> tuple[Answer, UUID | None]:
    start.fence(unit)
    by = spent(services, unit, call)
    if identity.tenant_name(unit) != request.tenant:
        raise Problem("invalid_input", [FieldError("/tenant", "name", "is not the tenant's name")])
    removal.lock_everywhere(unit)
    wanted = everything(unit)
    found = removal.judge(services, unit, wanted)
    size: dict[str, Any] = {
        "memories": len(wanted.memories),
        "proposals": len(wanted.proposals),
        "held": len(found.held),
    }
    if request.dry_run:
        by.audit("tenant_offboarding_dry_run", None, **size)
        return start.answer(
            unit, 200, {"dry_run": True, **size, "correlation_id": call.correlation_id}, []
        ), None
    stopped = identity.stop_all_but_overseers(unit)
    work = {"purge": True, "reason": "other", "selector": {"tenant": True}, "evidence": by.evidence}
    job_id = stage(unit, call, "erase", work, wanted)
    erasure.raise_generation(unit, spaces.every(unit))
    by.audit("tenant_offboarding", format_id("job", job_id), stopped=stopped, reason=request.reason, **size)
    unit.alert("tenant_offboarding", format_id("job", job_id))
    return accepted(unit, start, call, job_id, {"dry_run": False, "stopped": stopped, **size}), job_id
