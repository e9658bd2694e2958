"""A tenant on a temporary server, for measurements: services as each function's own database role."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from local.postgres import MIGRATOR, Server, temporary_server
from remembrancer.adapters.keys import FileMacKeys
from remembrancer.adapters.signatures import verify_signed_request
from remembrancer.api import wiring
from remembrancer.domain.principal import Credential
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.flows.context import Services
from remembrancer.store.database import Database, connect
from remembrancer.store.migrate import migrate

ISSUER = "https://issuer.test/pool"
NAME = "bench"


@dataclass
class Tenant:
    server: Server
    macs: FileMacKeys
    key_id: str
    key: Ed25519PrivateKey
    tenant_id: str

    def services(self, role: str) -> Services:
        """On a connection of its own."""
        return Services(
            database=Database(connect(self.server.url(role, NAME)), wiring.new_id),
            embedder=wiring._NoEmbedder(),
            macs=self.macs,
            clock=wiring.now,
            new_id=wiring.new_id,
            verify_signature=verify_signed_request,
        )

    def as_owner(self, user: str = MIGRATOR, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.url(user, NAME), autocommit=True, **options)


def agent() -> Credential:
    """A new object for every request, as the handlers make it."""
    return Credential(ISSUER, "agent", frozenset({"read", "write"}), frozenset())


def admin() -> Credential:
    return Credential(ISSUER, "admin", frozenset({"admin"}), frozenset({"admin"}))


def auditor() -> Credential:
    return Credential(ISSUER, "admin", frozenset({"audit"}), frozenset({"auditor"}))


@contextmanager
def tenant() -> Iterator[Tenant]:
    """On a durable server: a commit is on the disk, as in production. Rates are raised out of the way."""
    key = Ed25519PrivateKey.generate()
    pem = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    people = [
        {"name": "agent", "kind": "agent", "issuer": ISSUER, "subject": "agent", "team_grant": "write"},
        {
            "name": "admin",
            "kind": "human",
            "issuer": ISSUER,
            "subject": "admin",
            "capabilities": ["admin", "auditor"],
            "keys": [{"algorithm": "ed25519", "public_key": pem.decode()}],
        },
    ]
    with temporary_server(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        server.ensure_database(NAME)
        with psycopg.connect(server.url(MIGRATOR, NAME), autocommit=True) as connection:
            migrate(connection)
        made = Tenant(server, FileMacKeys(Path(folder) / "mac.key"), "", key, "")
        services = made.services(MIGRATOR)
        done = bootstrap(services, BootstrapRequest.model_validate({"tenant": NAME, "principals": people}))
        services.database.close()
        made.tenant_id, made.key_id = done["tenant_id"], done["principals"][1]["key_ids"][0]
        with made.as_owner() as owner:
            owner.execute(
                'update tenant set settings = \'{"principal_rate": 100000, "tenant_rate": 100000}\''
            )
        yield made
