"""The checkpoint machine, first step: heads of audit chains that no checkpoint holds yet."""

from __future__ import annotations

from typing import Any

from remembrancer.api.tasks import task
from remembrancer.api.wiring import services
from remembrancer.flows.audit import heads


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"after": tenant id or null}` -> `{"heads": [{tenant_id, sequence, head, at}], "next": tenant id or null}`."""
    found, following = heads(services(), event.get("after"))
    return {"heads": found, "next": following}
