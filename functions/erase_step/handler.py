"""One step of a long erasure, or of a data subject's request."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.erase_work import step


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{tenant_id, job_id}` names a job, `{}` takes the oldest that nobody works on; `more` says: again."""
    tenant_id, job_id = event.get("tenant_id"), event.get("job_id")
    return step(
        services(),
        None if tenant_id is None else UUID(tenant_id),
        None if job_id is None else UUID(job_id),
    )
