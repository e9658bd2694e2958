"""Who can sign in locally: the demo people, the app clients and the issuer's key, kept in `.local/`.

Subjects are the same on every machine, so that a database is seeded once; secrets are made on first use.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from joserfc.jwk import ECKey, KeySet, RSAKey

ISSUER: Final = "https://issuer.remembrancer.invalid"
"""A name, as Cognito's is, not an address: the same for every port, so that runs can share a database."""

PAGE_CLIENT: Final = "review-page"
AGENT_CLIENT: Final = "demo-agent"

_SUBJECTS: Final = uuid.UUID("6f1c6d0e-0c57-4a58-9e0a-5a2b0c9f7e11")


@dataclass(frozen=True)
class Person:
    """A user of the pool; `groups` are Cognito groups."""

    username: str
    name: str
    groups: tuple[str, ...]

    @property
    def subject(self) -> str:
        return str(uuid.uuid5(_SUBJECTS, self.username))


@dataclass(frozen=True)
class Client:
    """An app client. With a secret it is an agent's (client credentials), without one it is a page's or a
    command line's (code and PKCE). `redirect_paths` may follow any loopback address and port (RFC 8252)."""

    client_id: str
    scopes: tuple[str, ...]
    secret: str | None = None
    redirect_paths: tuple[str, ...] = ()


PEOPLE: Final = (
    Person("rita", "Rita Reviewer", ("reviewer",)),
    Person("robin", "Robin Reviewer", ("reviewer", "pii")),
    Person("avery", "Avery Auditor", ("auditor",)),
    Person("ada", "Ada Admin", ("admin",)),
)


@dataclass(frozen=True)
class Directory:
    """`keys` are private; only their public part is published."""

    keys: KeySet
    clients: Mapping[str, Client]
    people: Mapping[str, Person]

    @classmethod
    def load(cls, folder: Path) -> Directory:
        """Reads `identity.json` of the folder, making it (mode 0600) the first time."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "identity.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = folder / "identity.json"
            if not path.exists():
                _write_private(path, json.dumps(_fresh_identity(), indent=1))
            identity = json.loads(path.read_text())
        return cls(
            KeySet([_import_key(key) for key in identity["keys"]]),
            {client.client_id: client for client in _clients(identity["agent_secret"])},
            {person.username: person for person in PEOPLE},
        )


def _clients(agent_secret: str) -> tuple[Client, ...]:
    return (
        # As deployed the page's client is allowed no custom scope: the sign-in adds a person's own.
        Client(PAGE_CLIENT, ("openid",), redirect_paths=("/review/", "/callback")),
        Client(AGENT_CLIENT, ("memory/propose", "memory/read", "memory/write"), secret=agent_secret),
    )


def _fresh_identity() -> dict[str, Any]:
    key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
    return {"keys": [key.as_dict(private=True)], "agent_secret": secrets.token_urlsafe(32)}


def _import_key(key: dict[str, Any]) -> RSAKey | ECKey:
    return RSAKey.import_key(key) if key["kty"] == "RSA" else ECKey.import_key(key)


def _write_private(path: Path, text: str) -> None:
    aside = path.with_suffix(".new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    aside.rename(path)
