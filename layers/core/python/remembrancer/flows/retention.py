"""How long memories of each kind live: read by admins, changed by a signed request, obeyed by every view."""

from __future__ import annotations

from typing import Any

from remembrancer.domain.import_requests import RetentionRequest
from remembrancer.domain.principal import authorize
from remembrancer.flows.context import Call, Services
from remembrancer.flows.signed import SignedUnit, signed_change
from remembrancer.store import identity
from remembrancer.store.database import Unit


def get_retention(services: Services, call: Call) -> dict[str, Any]:
    """Days by kind."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        return unit.principal.settings.retention.model_dump()

    return services.database.read(call.credential, read)


def put_retention(services: Services, call: Call, request: RetentionRequest) -> dict[str, Any]:
    """Days by kind after the change. It applies at once, to what is stored already too."""

    def change(signed: SignedUnit) -> dict[str, Any]:
        settings = identity.lock_settings(signed.unit).model_dump(mode="json")
        before, after = settings["retention"], request.model_dump()
        identity.save_settings(signed.unit, {**settings, "retention": after})
        signed.audit("retention_changed", before=before, after=after)
        signed.unit.alert("retention_changed", call.correlation_id)
        return after

    return signed_change(services, call, change)
