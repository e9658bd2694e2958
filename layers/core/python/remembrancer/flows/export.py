"""Export: a reviewer asks for a bundle of what they may read. Apart from `bundle`, which sanitizes: a job does it."""

from __future__ import annotations

from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.import_requests import ExportRequest
from remembrancer.domain.principal import Principal, authorize
from remembrancer.flows.context import Call, Services
from remembrancer.flows.jobs import accepted
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.store import jobs
from remembrancer.store.database import Unit


def export(services: Services, call: Call, request: ExportRequest) -> Answer:
    """202 with the job's location."""

    def allowed(unit: Unit) -> None:
        authorize(unit.principal, "review")
        for space_id in asked_spaces(unit.principal, request):
            authorize(unit.principal, "read", space=space_id)

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay

        def commit(unit: Unit) -> tuple[Answer, UUID]:
            start.fence(unit)
            allowed(unit)
            asked = request.model_dump(mode="json")
            job_id = jobs.create(unit, "export", call.credential, asked, call.correlation_id, 0)
            unit.audit(
                "export_asked",
                format_id("job", job_id),
                format=request.format,
                correlation_id=call.correlation_id,
            )
            return accepted(unit, start, call, job_id, {}), job_id

        answer, job_id = services.database.write(call.credential, commit)
        services.start_job(start.principal.tenant_id, job_id)
        return answer


def asked_spaces(principal: Principal, request: ExportRequest) -> list[UUID]:
    """Those that were named, else all that the principal sees."""
    named = {"private": principal.private_space, "team_shared": principal.team_space}
    return [named[space] for space in request.spaces] if request.spaces else list(principal.visible_spaces)
