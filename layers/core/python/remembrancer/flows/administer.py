"""Principals, signing keys and settings: every act that weakens a control is signed and audited."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import KeyRequest, PrincipalPatch, PrincipalRequest, SettingsPatch
from remembrancer.domain.screen_policy import effective, faults
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.instants import instant
from remembrancer.flows.keyed import Answer
from remembrancer.flows.signed import Reply, SignedUnit, signed_act, signed_change
from remembrancer.store import identity
from remembrancer.store.database import Row, Unit

KEY_WAIT = timedelta(hours=24)
"""A later key works only after this, so that a stolen session cannot use one at once."""

_BY_MEMBER = {"retention", "screen", "pii"}
"""Settings that are objects: changed by member."""


def get_settings(services: Services, call: Call) -> dict[str, Any]:
    """The settings, and as `effective` what they come to at the gate of this deployment."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        return _shown(services, unit.principal.settings)

    return services.database.read(call.credential, read)


def patch_settings(services: Services, call: Call, request: SettingsPatch) -> dict[str, Any]:
    """`get_settings` after the change. Absent members stay as they are.

    Raises Problem invalid_input for a screen that would be weaker than the deployment's.
    """

    def change(signed: SignedUnit) -> dict[str, Any]:
        unit = signed.unit
        stored = identity.lock_settings(unit)
        before = stored.model_dump(mode="json")
        after = _merged(services, before, request)
        settings = after.model_dump(mode="json")
        identity.save_settings(unit, settings)
        signed.audit(
            "settings_changed",
            before=_witnessed(services, unit, before),
            after=_witnessed(services, unit, settings),
            policy_before=effective(services.screen_policy, stored).version,
            policy_after=effective(services.screen_policy, after).version,
        )
        unit.alert("settings_changed", call.correlation_id)
        return _shown(services, after)

    return signed_change(services, call, change)


def _witnessed(services: Services, unit: Unit, settings: dict[str, Any]) -> dict[str, Any]:
    """For the chain, which keeps no words of anybody: of those in the settings a keyed digest."""
    words = canonical_json(settings["skip_prefixes"]).encode()
    return {**settings, "skip_prefixes": services.macs.mac("audit", unit.tenant_id, words).hex()}


def _merged(services: Services, before: dict[str, Any], request: SettingsPatch) -> TenantSettings:
    asked = request.model_dump(mode="json", exclude_unset=True)
    patch = {name: value for name, value in asked.items() if value is not None}
    for group in _BY_MEMBER & patch.keys():
        # Within the screen null says something: the deployment's own.
        own = {k: v for k, v in patch[group].items() if v is not None or group == "screen"}
        patch[group] = {**before[group], **own}
    after = TenantSettings.model_validate({**before, **patch})
    errors = faults(services.screen_policy, asked.get("screen") or {}, after.screen)
    if errors:
        raise Problem("invalid_input", errors)
    return after


def _shown(services: Services, settings: TenantSettings) -> dict[str, Any]:
    return {
        **settings.model_dump(mode="json"),
        "effective": effective(services.screen_policy, settings).to_dict(),
    }


def list_principals(services: Services, call: Call) -> dict[str, Any]:
    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        return {
            "principals": [
                {
                    "principal_id": format_id("prin", row["principal_id"]),
                    "kind": row["kind"],
                    "name": row["name"],
                    "capabilities": row["capabilities"],
                    "team_grant": row["team_grant"],
                    "active": row["active"],
                    "created_at": instant(row["created_at"]),
                    "key_ids": row["key_ids"],
                }
                for row in identity.list_principals(unit)
            ]
        }

    return services.database.read(call.credential, read)


def create_principal(services: Services, call: Call, request: PrincipalRequest) -> Answer:
    """201. The credential must exist at the identity provider; here it is only registered."""

    def act(signed: SignedUnit) -> Reply:
        principal_id = identity.create_principal(
            signed.unit,
            kind=request.kind,
            name=request.name,
            capabilities=request.capabilities,
            team_grant=request.team_grant,
            issuer=request.issuer,
            subject=request.subject,
        )
        shown = format_id("prin", principal_id)
        signed.audit(
            "principal_created",
            shown,
            kind=request.kind,
            capabilities=sorted(set(request.capabilities)),
            team_grant=request.team_grant,
        )
        signed.unit.alert("principal_created", shown)
        return 201, {"principal_id": shown}, []

    return signed_act(services, call, request.model_dump(mode="json"), act)


_CHANGED = ("name", "active", "capabilities", "team_grant")


def change_principal(
    services: Services, call: Call, principal: str, request: PrincipalPatch
) -> dict[str, Any]:
    """{principal_id, name, active, capabilities, team_grant, revoked_keys} after the change, which holds at once.

    Nobody takes from themselves what this request is made with, so that an admin who can act is left. Raises Problem
    not_found, invalid_target, invalid_input when the credential is another's.
    """

    def change(signed: SignedUnit) -> dict[str, Any]:
        unit = signed.unit
        principal_id = public_id("prin", principal)
        locked = identity.lock_principals(unit, [principal_id, unit.principal.principal_id])
        _still_acts(call, signed, locked[unit.principal.principal_id])
        before = locked.get(principal_id)
        if before is None:
            raise Problem("not_found")
        after = {**before, **request.model_dump(include=set(_CHANGED), exclude_none=True)}
        after["capabilities"] = sorted(set(after["capabilities"]))
        if principal_id == unit.principal.principal_id:
            _keep_the_actor(call, signed, request, after)
        identity.save_principal(unit, principal_id, after)
        added, removed = request.add_credential, request.remove_credential
        if removed is not None:
            identity.remove_credential(unit, principal_id, removed.issuer, removed.subject)
        if added is not None and not identity.add_credential(unit, principal_id, added.issuer, added.subject):
            raise Problem("invalid_input", [FieldError("/add_credential", "taken", "cannot be registered")])
        revoked = identity.revoke_keys(unit, principal_id, request.revoke_keys)
        shown = format_id("prin", principal_id)
        # A name may be a person's: the chain says that it was changed, not into what.
        signed.audit(
            "principal_changed",
            shown,
            before={name: before[name] for name in _CHANGED[1:]},
            after={name: after[name] for name in _CHANGED[1:]},
            renamed=before["name"] != after["name"],
            credential_added=added is not None,
            credential_removed=removed is not None,
            revoked_keys=revoked,
        )
        unit.alert("principal_changed", shown)
        return {
            "principal_id": shown,
            **{name: after[name] for name in _CHANGED},
            "revoked_keys": revoked,
        }

    return signed_change(services, call, change)


def _still_acts(call: Call, signed: SignedUnit, actor: Row) -> None:
    """Under the lock: two admins who stop each other at the same time would leave none. Raises Problem forbidden."""
    unit, used = signed.unit, call.credential
    admin = actor["active"] and "admin" in actor["capabilities"]
    if not admin or not identity.holds(
        unit, unit.principal.principal_id, used.issuer, used.subject, signed.evidence["key_id"]
    ):
        raise Problem("forbidden")


def _keep_the_actor(call: Call, signed: SignedUnit, request: PrincipalPatch, after: dict[str, Any]) -> None:
    used = call.credential
    removed = request.remove_credential
    taken = {
        "/active": not after["active"],
        "/capabilities": "admin" not in after["capabilities"],
        "/remove_credential": removed is not None
        and (removed.issuer, removed.subject) == (used.issuer, used.subject),
        "/revoke_keys": signed.evidence["key_id"] in request.revoke_keys,
    }
    errors = [
        FieldError(pointer, "in_use", "is what this request is made with")
        for pointer, at in taken.items()
        if at
    ]
    if errors:
        raise Problem("invalid_target", errors)


def register_key(services: Services, call: Call, principal: str, request: KeyRequest, pem: str) -> Answer:
    """201 with the key id and the time from which it works. Only people hold keys, each their own: Raises Problem
    invalid_target for one that is or was registered. `pem` is the request's key in its one spelling."""

    def act(signed: SignedUnit) -> Reply:
        unit = signed.unit
        principal_id = public_id("prin", principal)
        if identity.principal_kind(unit, principal_id) != "human":
            raise Problem("not_found")
        key_id = f"key_{unit.new_id().hex}"
        usable_from = unit.now + KEY_WAIT
        identity.add_key(unit, principal_id, key_id, request.algorithm, pem, usable_from)
        signed.audit(
            "key_registered", format_id("prin", principal_id), new_key=key_id, algorithm=request.algorithm
        )
        unit.alert("key_registered", key_id)
        return 201, {"key_id": key_id, "usable_from": instant(usable_from)}, []

    return signed_act(services, call, request.model_dump(mode="json"), act)
