"""Tenants, principals, credentials, signing keys, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.store.database import Row, Unit


def create_tenant(unit: Unit, name: str) -> None:
    """The tenant of the transaction, with its team space (the bootstrap, as the migration role)."""
    unit.run(
        "insert into tenant (tenant_id, name, created_at) values (%(tenant)s, %(name)s, %(now)s)",
        {"tenant": unit.tenant_id, "name": name, "now": unit.now},
    )
    unit.run(
        "insert into space (tenant_id, space_id, kind) values (%(tenant)s, %(id)s, 'team_shared')",
        {"tenant": unit.tenant_id, "id": unit.new_id()},
    )


def create_principal(
    unit: Unit,
    *,
    kind: str,
    name: str,
    capabilities: Sequence[str],
    team_grant: str,
    issuer: str,
    subject: str,
) -> UUID:
    """A principal with its credential and its private space. Raises Problem invalid_input when the
    credential is taken (by whom, it does not say)."""
    principal_id = unit.new_id()
    scope = {"tenant": unit.tenant_id, "id": principal_id, "now": unit.now}
    unit.run(
        """
        insert into principal (tenant_id, principal_id, kind, name, capabilities, team_grant, created_at)
        values (%(tenant)s, %(id)s, %(kind)s, %(name)s, %(capabilities)s, %(grant)s, %(now)s)
        """,
        {
            **scope,
            "kind": kind,
            "name": name,
            "capabilities": sorted(set(capabilities)),
            "grant": team_grant,
        },
    )
    if not add_credential(unit, principal_id, issuer, subject):
        raise Problem("invalid_input")
    unit.run(
        "insert into space (tenant_id, space_id, kind, owner_id) values (%(tenant)s, %(space)s, 'private', %(id)s)",
        {**scope, "space": unit.new_id()},
    )
    return principal_id


def lock_principals(unit: Unit, principal_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """{kind, name, active, capabilities, team_grant} of those that exist, locked until the end in a fixed order."""
    rows = unit.rows(
        "select principal_id, kind, name, active, capabilities, team_grant from principal"
        " where tenant_id = %(tenant)s and principal_id = any (%(ids)s) order by principal_id for no key update",
        {"tenant": unit.tenant_id, "ids": list(principal_ids)},
    )
    return {row.pop("principal_id"): row for row in rows}


def holds(unit: Unit, principal_id: UUID, issuer: str, subject: str, key_id: str) -> bool:
    """Whether the credential and the key are the principal's still."""
    row = unit.row(
        """
        select from credential c join signing_key k on k.tenant_id = c.tenant_id and k.principal_id = c.principal_id
        where c.tenant_id = %(tenant)s and c.principal_id = %(id)s and c.issuer = %(issuer)s
          and c.subject = %(subject)s and k.key_id = %(key)s and k.revoked_at is null
        """,
        {"tenant": unit.tenant_id, "id": principal_id, "issuer": issuer, "subject": subject, "key": key_id},
    )
    return row is not None


def save_principal(unit: Unit, principal_id: UUID, values: Mapping[str, Any]) -> None:
    """`values` as `lock_principals` gives them."""
    unit.run(
        """
        update principal set name = %(name)s, active = %(active)s, capabilities = %(capabilities)s,
          team_grant = %(team_grant)s
        where tenant_id = %(tenant)s and principal_id = %(id)s
        """,
        {**values, "tenant": unit.tenant_id, "id": principal_id},
    )


def add_credential(unit: Unit, principal_id: UUID, issuer: str, subject: str) -> bool:
    """Whether it is this principal's now; false when it is another's, whose it does not say."""
    scope = {
        "tenant": unit.tenant_id,
        "issuer": issuer,
        "subject": subject,
        "id": principal_id,
        "now": unit.now,
    }
    unit.run(
        """
        insert into credential (tenant_id, issuer, subject, principal_id, created_at)
        values (%(tenant)s, %(issuer)s, %(subject)s, %(id)s, %(now)s) on conflict do nothing
        """,
        scope,
    )
    own = unit.row(
        "select from credential where tenant_id = %(tenant)s and issuer = %(issuer)s and subject = %(subject)s"
        " and principal_id = %(id)s",
        scope,
    )
    return own is not None


def remove_credential(unit: Unit, principal_id: UUID, issuer: str, subject: str) -> None:
    unit.run(
        "delete from credential where tenant_id = %(tenant)s and issuer = %(issuer)s and subject = %(subject)s"
        " and principal_id = %(id)s",
        {"tenant": unit.tenant_id, "issuer": issuer, "subject": subject, "id": principal_id},
    )


def revoke_keys(unit: Unit, principal_id: UUID, key_ids: Sequence[str]) -> list[str]:
    """Those of the principal that were good until now."""
    rows = unit.rows(
        """
        update signing_key set revoked_at = %(now)s
        where tenant_id = %(tenant)s and principal_id = %(id)s and key_id = any (%(keys)s) and revoked_at is null
        returning key_id
        """,
        {"tenant": unit.tenant_id, "id": principal_id, "keys": list(key_ids), "now": unit.now},
    )
    return sorted(row["key_id"] for row in rows)


def add_key(
    unit: Unit, principal_id: UUID, key_id: str, algorithm: str, public_key: str, usable_from: datetime
) -> None:
    """Raises Problem invalid_target when the tenant knows that key already, whoever holds or held it: of two people
    with one key nobody could say who signed."""
    added = unit.run(
        """
        insert into signing_key (tenant_id, key_id, principal_id, algorithm, public_key, registered_at, usable_from)
        values (%(tenant)s, %(key)s, %(principal)s, %(algorithm)s, %(public)s, %(now)s, %(usable)s)
        on conflict (tenant_id, public_key) do nothing
        """,
        {
            "tenant": unit.tenant_id,
            "key": key_id,
            "principal": principal_id,
            "algorithm": algorithm,
            "public": public_key,
            "now": unit.now,
            "usable": usable_from,
        },
    )
    if not added:
        raise Problem("invalid_target", [FieldError("/public_key", "taken", "is or was a key of somebody")])


def keys_of(unit: Unit, principal_id: UUID) -> list[Row]:
    """Every key of that principal, usable or not: {key_id, algorithm, public_key, usable_from, revoked_at}."""
    return unit.rows(
        "select key_id, algorithm, public_key, usable_from, revoked_at from signing_key"
        " where tenant_id = %(tenant)s and principal_id = %(principal)s",
        {"tenant": unit.tenant_id, "principal": principal_id},
    )


def spend_nonce(unit: Unit, key_id: str, nonce: str, expires_at: datetime) -> None:
    """Raises Problem signature_replayed when it was spent before. Same transaction as the act."""
    spent = unit.run(
        """
        insert into nonce (tenant_id, key_id, nonce, expires_at)
        values (%(tenant)s, %(key)s, %(nonce)s, %(expires)s) on conflict do nothing
        """,
        {"tenant": unit.tenant_id, "key": key_id, "nonce": nonce, "expires": expires_at},
    )
    if not spent:
        raise Problem("signature_replayed")


def list_principals(unit: Unit) -> list[Row]:
    return unit.rows(
        """
        select p.*, array(select k.key_id from signing_key k where k.tenant_id = p.tenant_id
                          and k.principal_id = p.principal_id and k.revoked_at is null
                          order by k.key_id collate "C") as key_ids
        from principal p where p.tenant_id = %(tenant)s order by p.principal_id
        """,
        {"tenant": unit.tenant_id},
    )


def principal_kind(unit: Unit, principal_id: UUID) -> str | None:
    row = unit.row(
        "select kind from principal where tenant_id = %(tenant)s and principal_id = %(id)s",
        {"tenant": unit.tenant_id, "id": principal_id},
    )
    return None if row is None else row["kind"]


def lock_settings(unit: Unit) -> TenantSettings:
    """As they are, until the commit: of two changes the later one builds on the earlier."""
    row = unit.row(
        "select settings from tenant where tenant_id = %(tenant)s for update", {"tenant": unit.tenant_id}
    )
    assert row is not None
    return TenantSettings.model_validate(row["settings"])


def save_settings(unit: Unit, settings: Mapping[str, Any]) -> None:
    unit.run(
        "update tenant set settings = %(settings)s where tenant_id = %(tenant)s",
        {"settings": Jsonb(dict(settings)), "tenant": unit.tenant_id},
    )


def tenant_name(unit: Unit) -> str | None:
    row = unit.row("select name from tenant where tenant_id = %(tenant)s", {"tenant": unit.tenant_id})
    return None if row is None else row["name"]


def stop_all_but_overseers(unit: Unit) -> int:
    """Agents, and people who are neither admin nor auditor, may do nothing from now on; how many."""
    return unit.run(
        """
        update principal set active = false where tenant_id = %(tenant)s and active
          and (kind = 'agent' or not capabilities && '{admin,auditor}')
        """,
        {"tenant": unit.tenant_id},
    )
