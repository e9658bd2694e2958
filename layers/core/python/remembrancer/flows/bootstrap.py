"""The first tenant, its first people and agents, the first signing key: an operator's act, before any API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from remembrancer.adapters.signatures import one_spelling
from remembrancer.domain.ids import format_id
from remembrancer.domain.requests import Closed, KeyRequest, Name, PrincipalRequest
from remembrancer.flows.context import Services
from remembrancer.store import identity
from remembrancer.store.database import Unit


class BootstrapPrincipal(PrincipalRequest):
    keys: Annotated[tuple[KeyRequest, ...], Field(max_length=5, strict=False)] = ()


class BootstrapRequest(Closed):
    tenant: Name
    principals: Annotated[list[BootstrapPrincipal], Field(min_length=1, max_length=50)]


def bootstrap(services: Services, request: BootstrapRequest) -> dict[str, Any]:
    """Create a tenant with its principals; keys registered here work at once.

    Raises Problem invalid_input when one of the credentials is registered already or a key is none of its algorithm.
    """
    tenant_id = services.new_id()

    def work(unit: Unit) -> dict[str, Any]:
        identity.create_tenant(unit, request.tenant)
        created = [_principal(unit, entry) for entry in request.principals]
        unit.audit("tenant_created", str(tenant_id), principals=[entry["principal_id"] for entry in created])
        return {"tenant_id": str(tenant_id), "principals": created}

    return services.database.job(tenant_id, work)


def _principal(unit: Unit, entry: BootstrapPrincipal) -> Mapping[str, Any]:
    principal_id: UUID = identity.create_principal(
        unit,
        kind=entry.kind,
        name=entry.name,
        capabilities=entry.capabilities,
        team_grant=entry.team_grant,
        issuer=entry.issuer,
        subject=entry.subject,
    )
    key_ids = []
    for key in entry.keys:
        key_id = f"key_{unit.new_id().hex}"
        pem = one_spelling(key.algorithm, key.public_key)
        identity.add_key(unit, principal_id, key_id, key.algorithm, pem, unit.now)
        key_ids.append(key_id)
    return {"principal_id": format_id("prin", principal_id), "name": entry.name, "key_ids": key_ids}
