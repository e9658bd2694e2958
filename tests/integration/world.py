"""A tenant with people and agents on a real database, and its API called in this process.

`World` wires the same services as the handlers do, and calls the handlers with the proxy events that the
gateway makes; nothing but the gateway's own checks is left out.
"""

from __future__ import annotations

import importlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg.rows import dict_row

from functions import manifest
from remembrancer.adapters.keys import FileMacKeys
from remembrancer.adapters.signatures import sign_request, verify_signed_request
from remembrancer.api import wiring
from remembrancer.domain.ports import Embedder
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.flows.context import Services
from remembrancer.store.database import Database, connect
from tests.integration.conftest import Database as TestDatabase

BASE = "https://memory.test/prod"
ISSUER = "https://issuer.test/pool"


@dataclass(frozen=True)
class Person:
    """A principal of the tenant and the claims of its token."""

    name: str
    subject: str
    kind: str
    scopes: tuple[str, ...]
    groups: tuple[str, ...] = ()
    team_grant: str = "write"
    issuer: str = ISSUER

    def claims(self) -> dict[str, str]:
        return {
            "iss": self.issuer,
            "sub": self.subject,
            "token_use": "access",
            "scope": " ".join(f"memory/{scope}" for scope in self.scopes),
            "cognito:groups": ",".join(self.groups),
        }

    def with_scopes(self, *scopes: str) -> Person:
        return replace(self, scopes=scopes)


AGENT = Person("capture-agent", "agent-1", "agent", ("propose", "read", "write"))
OTHER_AGENT = Person("other-agent", "agent-2", "agent", ("propose", "read", "write"))
READER = Person("reading-agent", "agent-3", "agent", ("read",), team_grant="read")
OUTSIDER = Person("agent-without-grant", "agent-4", "agent", ("propose", "read", "write"), team_grant="none")
REVIEWER = Person(
    "Rita Reviewer", "human-1", "human", ("read", "write", "propose", "review"), ("reviewer", "pii")
)
SECOND_REVIEWER = Person(
    "Sam Second", "human-2", "human", ("read", "write", "propose", "review"), ("reviewer",)
)
ADMIN = Person("Ada Admin", "human-3", "human", ("read", "admin"), ("admin",))
AUDITOR = Person("Otto Auditor", "human-4", "human", ("read", "audit"), ("auditor",))
EVERYBODY = (AGENT, OTHER_AGENT, READER, OUTSIDER, REVIEWER, SECOND_REVIEWER, ADMIN, AUDITOR)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        return str(self.json["code"])


@dataclass
class World:
    database: TestDatabase
    embedder: Embedder
    macs: FileMacKeys
    tenant_id: str = ""
    principals: dict[str, str] = field(default_factory=dict)
    signing: tuple[str, Ed25519PrivateKey] | None = None
    clock: Callable[[], datetime] | None = None
    subject_suffix: str = ""
    _open: dict[str, Services] = field(default_factory=dict)

    def services(self, function: str) -> Services:
        """The services of one function, connected as its own database role."""
        if function not in self._open:
            entry = manifest.function(function)
            role = "rem_migrate" if function == "migrate" else entry.db_role
            assert role is not None
            self._open[function] = Services(
                database=Database(connect(self.database.url(role)), wiring.new_id, clock=self.clock),
                embedder=self.embedder,
                macs=self.macs,
                clock=self.clock or wiring.now,
                new_id=wiring.new_id,
                verify_signature=verify_signed_request,
                start_attempt=_left_alone,
            )
        return self._open[function]

    def close(self) -> None:
        for services in self._open.values():
            services.database.close()
        self._open.clear()

    def bootstrap(self, name: str = "acme") -> None:
        key = Ed25519PrivateKey.generate()
        pem = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        request = BootstrapRequest.model_validate(
            {
                "tenant": name,
                "principals": [
                    {
                        "name": person.name,
                        "kind": person.kind,
                        "issuer": ISSUER,
                        "subject": person.subject + self.subject_suffix,
                        "capabilities": list(person.groups),
                        "team_grant": person.team_grant,
                        "keys": [{"algorithm": "ed25519", "public_key": pem.decode()}]
                        if person is ADMIN
                        else [],
                    }
                    for person in EVERYBODY
                ],
            }
        )
        made = bootstrap(self.services("migrate"), request)
        self.tenant_id = made["tenant_id"]
        for entry in made["principals"]:
            self.principals[entry["name"]] = entry["principal_id"]
            if entry["key_ids"]:
                self.signing = (entry["key_ids"][0], key)

    def call(
        self,
        person: Person | None,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        raw: str | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = False,
    ) -> Reply:
        """One request through the handler that the manifest names for it."""
        url = urlsplit(path)
        function, resource = find_route(method, url.path)
        text = raw if raw is not None else (None if body is None else json.dumps(body, ensure_ascii=False))
        sent = {"Content-Type": "application/json", **(headers or {})}
        if key is not None:
            sent["Idempotency-Key"] = key
        if url.path == "/v1/remember":
            sent.setdefault("Prefer", "wait=0")
        if signed:
            sent |= self.sign(method, url.path, text or "")
        event = proxy_event(person, method, url.path, resource, text, sent, url.query, self.subject_suffix)
        with wired(self, function):
            module = importlib.import_module(f"functions.{function}.handler")
            response = module.handler(event, LambdaContext(function))
        flat = {name: values[0] for name, values in response["multiValueHeaders"].items()}
        return Reply(response["statusCode"], flat, response["body"])

    def sign(self, method: str, path: str, body: str) -> dict[str, str]:
        assert self.signing is not None
        key_id, private = self.signing
        return sign_request(
            method=method,
            target_uri=BASE + path,
            body=body.encode(),
            key_id=key_id,
            algorithm="ed25519",
            private_key=private,
            now=(self.clock or wiring.now)(),
        )

    def sql(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """As the superuser, past every policy."""
        with self.database.superuser(row_factory=dict_row) as connection:
            cursor = connection.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    # What most tests begin with.

    def propose(self, content: str, person: Person = AGENT, **more: Any) -> dict[str, Any]:
        reply = self.call(person, "POST", "/v1/ingest/proposal", {"content": content, **more})
        assert reply.status in (200, 201), reply.text
        return reply.json

    def shown(self, proposal_id: str, person: Person = REVIEWER) -> dict[str, Any]:
        reply = self.call(person, "GET", f"/v1/proposals/{proposal_id}")
        assert reply.status == 200, reply.text
        return reply.json

    def approve(self, proposal_id: str, person: Person = REVIEWER, **more: Any) -> Reply:
        digest = self.shown(proposal_id, person)["content_digest"]
        return self.call(
            person, "POST", f"/v1/proposals/{proposal_id}/approve", {"content_digest": digest, **more}
        )

    def remember(self, content: str, **more: Any) -> str:
        """Propose and approve; the memory's id."""
        reply = self.approve(self.propose(content, **more)["proposal_id"])
        assert reply.status == 200, reply.text
        return str(reply.json["memory_id"])

    def ingest(self, content: str, person: Person = AGENT, **more: Any) -> dict[str, Any]:
        reply = self.call(person, "POST", "/v1/ingest", {"content": content, **more})
        assert reply.status in (200, 201), reply.text
        return reply.json

    def recall(self, query: str, person: Person = READER, **more: Any) -> dict[str, Any]:
        reply = self.call(person, "POST", "/v1/recall", {"query": query, **more})
        assert reply.status == 200, reply.text
        return reply.json

    def audit(self) -> list[dict[str, Any]]:
        reply = self.call(AUDITOR, "GET", "/v1/audit?limit=200")
        assert reply.status == 200, reply.text
        return list(reply.json["events"])


class LambdaContext:
    """What Powertools asks of a context."""

    def __init__(self, function: str) -> None:
        self.function_name = function
        self.memory_limit_in_mb = 512
        self.invoked_function_arn = f"arn:aws:lambda:eu-west-1:000000000000:function:{function}"
        self.aws_request_id = str(uuid.uuid4())

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


def _left_alone(attempt_id: uuid.UUID) -> None:
    """Nobody works on attempts here (tests/integration/attempts/harness.py does)."""


def find_route(method: str, path: str) -> tuple[str, str]:
    """(function, resource) as the gateway would route it. Raises LookupError."""
    for function in manifest.FUNCTIONS:
        for route in function.routes:
            wanted, given = route.path.split("/"), path.split("/")
            if route.method == method and len(wanted) == len(given):
                pairs = zip(wanted, given, strict=True)
                if all(w == g or (w.startswith("{") and g) for w, g in pairs):
                    # A literal segment wins over a parameter, as in API Gateway.
                    literal = "/".join(wanted) == path
                    if literal or not _literal_exists(method, path):
                        return function.name, route.path
    raise LookupError(f"{method} {path}")


def _literal_exists(method: str, path: str) -> bool:
    return any((r.method, r.path) == (method, path) for f in manifest.FUNCTIONS for r in f.routes)


def proxy_event(
    person: Person | None,
    method: str,
    path: str,
    resource: str,
    body: str | None,
    headers: Mapping[str, str],
    query: str = "",
    subject_suffix: str = "",
) -> dict[str, Any]:
    """A REST proxy event (version 1), as API Gateway and the local gateway make it."""
    many = parse_qs(query, keep_blank_values=True)
    claims = None
    if person is not None:
        claims = person.claims()
        claims["sub"] += subject_suffix
    return {
        "resource": resource,
        "path": path,
        "httpMethod": method,
        "headers": dict(headers),
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in many.items()} or None,
        "multiValueQueryStringParameters": many or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "resourcePath": resource,
            "httpMethod": method,
            "path": "/prod" + path,
            "stage": "prod",
            "requestTimeEpoch": int(datetime.now(UTC).timestamp() * 1000),
            "identity": {"sourceIp": "127.0.0.1"},
            "authorizer": {"claims": claims} if claims else {},
        },
        "body": body,
        "isBase64Encoded": False,
    }


@contextmanager
def wired(world: World, function: str) -> Iterator[None]:
    """The handler's `services()` answers this world's."""
    module = importlib.import_module(f"functions.{function}.handler")
    before = module.services
    bases = module.app.public_bases if hasattr(module, "app") else ()
    module.services = lambda: world.services(function)
    if hasattr(module, "app"):
        module.app.public_bases = (BASE,)
    try:
        yield
    finally:
        module.services = before
        if hasattr(module, "app"):
            module.app.public_bases = bases


def new_world(
    database: TestDatabase, embedder: Embedder, folder: Path, *, suffix: str = "", name: str = "acme"
) -> World:
    world = World(database, embedder, FileMacKeys(folder / "mac.key"), subject_suffix=suffix)
    world.bootstrap(name)
    return world


def connect_as(database: TestDatabase, role: str) -> psycopg.Connection[Any]:
    return psycopg.connect(database.url(role), autocommit=True, row_factory=dict_row)
