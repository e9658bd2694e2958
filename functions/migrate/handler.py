"""Schema migrations, and the bootstrap of a first tenant. Invoked by the deployment and by operators only."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from remembrancer import observability
from remembrancer.api.wiring import services
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.store.migrate import migrate


class BootstrapRefused(Exception):
    """The event is not a bootstrap request; the text names the members at fault, never their values."""


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"action": "bootstrap", "tenant", "principals"}` creates a tenant; anything else migrates.

    A CDK Trigger invokes it with an event of its own.
    """
    if event.get("action") == "bootstrap":
        try:
            request = BootstrapRequest.model_validate({k: v for k, v in event.items() if k != "action"})
        except ValidationError as error:
            places = sorted({"/" + "/".join(map(str, e["loc"])) for e in error.errors()})
            raise BootstrapRefused(", ".join(places)) from None
        return bootstrap(services(), request)
    applied = services().database.migrate(migrate)
    observability.logger.info("migrated", extra={"applied": applied})
    return {"applied": applied}
