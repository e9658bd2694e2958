"""Who asks, and whether the service can answer."""

from __future__ import annotations

from typing import Any

from remembrancer.domain.ids import format_id
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Call, Services
from remembrancer.store.database import Unit
from remembrancer.store.migrate import applied, migrations


def me(services: Services, call: Call) -> dict[str, Any]:
    """The principal behind the token: what it may do is what its row and its token both say."""

    def read(unit: Unit) -> dict[str, Any]:
        who = unit.principal
        return {
            "principal_id": format_id("prin", who.principal_id),
            "tenant_id": str(who.tenant_id),
            "kind": who.kind,
            "scopes": sorted(who.scopes),
            "capabilities": sorted(who.capabilities),
            "team_grant": who.team_grant,
        }

    return services.database.read(call.credential, read)


def ready(services: Services, call: Call) -> dict[str, Any]:
    """Raises Problem configuration_invalid when the schema is older than this code."""

    def read(unit: Unit) -> dict[str, Any]:
        schema, expected = applied(unit.connection), migrations()[-1].version
        if schema < expected:
            raise Problem("configuration_invalid")
        return {"status": "ready", "schema": schema}

    return services.database.read(call.credential, read)
