"""The demo tenant: one agent, two reviewers, an auditor and an admin with a signing key."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from local.directory import AGENT_CLIENT, ISSUER, PEOPLE
from local.runtime import Invocation

TENANT: Final = "Demo"
ADMIN: Final = "ada"

Invoke = Callable[[str, bytes], Awaitable[Invocation]]


class SeedFailed(Exception):
    """The migrate function refused; the text is its error, one line."""


async def migrate(invoke: Invoke) -> Any:
    """Applies what is missing; the function's answer. Raises SeedFailed."""
    try:
        return await _call(invoke, {})
    except SeedFailed as failed:
        if str(failed).startswith("MigrationChanged"):
            raise SeedFailed(
                f"the data are of another version ({failed}): `make clean` removes them"
            ) from None
        if str(failed) == "Problem: database_resuming":
            raise SeedFailed("the database does not answer") from None
        raise


async def seed(invoke: Invoke, admin_key: Path) -> bool:
    """Registers the demo tenant; False when its credentials are registered already. Raises SeedFailed."""
    request = {"action": "bootstrap", "tenant": TENANT, "principals": principals(public_key(admin_key))}
    try:
        await _call(invoke, request)
    except SeedFailed as failed:
        if str(failed) != "Problem: invalid_input":
            raise
        return False
    return True


def principals(admin_public_key: str) -> list[dict[str, Any]]:
    """The principals of the bootstrap request: the issuer's demo people and the agent's client."""
    people = [
        {
            "issuer": ISSUER,
            "subject": person.subject,
            "kind": "human",
            "name": person.name,
            "capabilities": list(person.groups),
            "team_grant": "write",
            "keys": [{"algorithm": "ed25519", "public_key": admin_public_key}]
            if person.username == ADMIN
            else [],
        }
        for person in PEOPLE
    ]
    agent = {
        "issuer": ISSUER,
        "subject": AGENT_CLIENT,
        "kind": "agent",
        "name": "Demo agent",
        "team_grant": "write",
    }
    return [agent, *people]


def public_key(path: Path) -> str:
    """The public PEM of the admin's private key, which is made (mode 0600) the first time."""
    if not path.exists():
        made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(made)
    key = load_pem_private_key(path.read_bytes(), password=None)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


async def _call(invoke: Invoke, event: dict[str, Any]) -> Any:
    done = await invoke("migrate", json.dumps(event).encode())
    answer = json.loads(done.payload)
    if done.error is not None:
        raise SeedFailed(f"{answer.get('errorType')}: {answer.get('errorMessage')}".split("\n", 1)[0])
    return answer
