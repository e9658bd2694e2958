"""Schema migrations, and what only an operator does. Invoked by the deployment and by operators, never by a route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from remembrancer import observability
from remembrancer.api.tasks import awake
from remembrancer.api.wiring import services
from remembrancer.domain.requests import Closed
from remembrancer.flows import recover
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.store.migrate import migrate

_ACTIONS: dict[str, tuple[type[Closed], Callable[..., dict[str, Any]]]] = {
    "bootstrap": (BootstrapRequest, bootstrap),
    "reapply": (recover.ReapplyRequest, recover.reapply),
    "recover_admin": (recover.RecoverAdminRequest, recover.recover_admin),
    "close_tenant": (recover.CloseTenantRequest, recover.close_tenant),
}


class OperatorRefused(Exception):
    """The event is not a request of its action; the text names the members at fault, never their values."""


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"action": "bootstrap" | "reapply" | "recover_admin" | "close_tenant", ...}`; anything else migrates.

    A CDK Trigger invokes it with an event of its own, whether the cluster pauses or not.
    """
    return awake(lambda: _done(event), context)


def _done(event: dict[str, Any]) -> dict[str, Any]:
    if event.get("action") in _ACTIONS:
        model, act = _ACTIONS[event["action"]]
        try:
            request = model.model_validate({k: v for k, v in event.items() if k != "action"})
        except ValidationError as error:
            places = sorted({"/" + "/".join(map(str, e["loc"])) for e in error.errors()})
            raise OperatorRefused(", ".join(places)) from None
        return act(services(), request)
    applied = services().database.migrate(migrate)
    observability.logger.info("migrated", extra={"applied": applied})
    return {"applied": applied}
