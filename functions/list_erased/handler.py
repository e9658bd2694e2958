"""Lists tombstones and legal holds outside the database: what a restored backup must be told."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.listing import step


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{tenant_id}` names a tenant, `{}` takes all; `more` says: again, with what was answered."""
    tenant_id, after = event.get("tenant_id"), event.get("after")
    done = step(
        services(), None if tenant_id is None else UUID(tenant_id), None if after is None else UUID(after)
    )
    return {"tenant_id": tenant_id, **done}
