"""One step of a long erasure, or of a data subject's request."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import named_job, task
from remembrancer.api.wiring import services
from remembrancer.flows.erase_work import step


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{tenant_id, job_id}` names a job, `{}` takes the oldest that nobody works on; `more` says: again."""
    return step(services(), *named_job(event))
