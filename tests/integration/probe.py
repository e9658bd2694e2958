"""What the tests of the whole slice share: a search of every column, counted statements, walks of the contract."""

from __future__ import annotations

import copy
import hashlib
import importlib
import io
import itertools
import json
import logging
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg.rows import dict_row
from pydantic import BaseModel

from functions import manifest
from local.postgres import Server
from remembrancer import observability
from remembrancer.api import wiring
from remembrancer.api.app import credential_of
from remembrancer.domain.ports import Embedder
from remembrancer.domain.requests import PurgeRequest
from remembrancer.flows.context import Call, SignedParts
from remembrancer.flows.erase import purge
from remembrancer.store.database import Database
from tests.integration.conftest import TEMPLATE
from tests.integration.conftest import Database as TestDatabase
from tests.integration.world import ADMIN, BASE, Person, World, new_world

_numbers = itertools.count(1)


@contextmanager
def scratch_world(postgres: Server, embedder: Embedder, folder: Path) -> Iterator[World]:
    """A world for all the tests of a module; they must not depend on each other's rows."""
    database = TestDatabase(postgres, f"probe_{id(folder)}_{next(_numbers)}")
    postgres.ensure_database(database.name, template=TEMPLATE)
    world = new_world(database, embedder, folder)
    try:
        yield world
    finally:
        world.close()
        postgres.drop_database(database.name)


# Every byte of the database ------------------------------------------------------------------------------
def everywhere(world: World, needle: str) -> list[str]:
    """`table.column` of every column that holds the needle, in any case, whatever the column's type."""
    found = []
    columns = world.sql(
        "select c.relname, a.attname, format_type(a.atttypid, null) as kind from pg_class c"
        " join pg_attribute a on a.attrelid = c.oid where c.relnamespace = 'public'::regnamespace"
        " and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped order by 1, 2"
    )
    assert len(columns) > 100
    with world.database.superuser() as connection:
        for column in columns:
            name = f'"{column["attname"]}"'
            text = f"encode({name}, 'escape')" if column["kind"] == "bytea" else f"{name}::text"
            query = (
                f'select exists (select from "{column["relname"]}" where position(%s in lower({text})) > 0)'
            )
            row = connection.execute(query.encode(), [needle.lower()]).fetchone()
            if row is not None and row[0]:
                found.append(f"{column['relname']}.{column['attname']}")
    return found


def counts(world: World) -> dict[str, int]:
    """Rows by table, but for the buckets of rates: every request fills those, a refused one too."""
    tables = world.sql(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"
        " and relname <> 'rate_bucket'"
    )
    union = " union all ".join(
        f"select '{t['relname']}' as t, count(*) as n from \"{t['relname']}\"" for t in tables
    )
    return {row["t"]: row["n"] for row in world.sql(union)}


def changed(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {table: n - before[table] for table, n in after.items() if n != before[table]}


# Statements ----------------------------------------------------------------------------------------------
def with_cursor(world: World, function: str, before: Callable[[str], None], **options: Any) -> Database:
    """The function's services get a database whose every statement is first shown to `before`."""

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            before(query if isinstance(query, str) else str(query))
            return super().execute(query, *args, **kwargs)

        def executemany(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            before(query if isinstance(query, str) else str(query))
            return super().executemany(query, *args, **kwargs)

    role = manifest.function(function).db_role
    assert role is not None

    def connect() -> Any:
        return psycopg.connect(
            world.database.url(role),
            autocommit=True,
            prepare_threshold=None,
            row_factory=dict_row,
            cursor_factory=Cursor,
        )

    database = Database(connect, wiring.new_id, clock=world.clock, **options)
    world.services(function).database.close()
    world._open[function] = replace(world.services(function), database=database)
    return database


# The contract --------------------------------------------------------------------------------------------
def routes() -> list[tuple[manifest.Function, manifest.Route]]:
    return [(function, route) for function in manifest.FUNCTIONS for route in function.routes]


def request_model(function: str, route: manifest.Route) -> type[BaseModel] | None:
    """The model of the route's body, from the signature of the function that is registered for it."""
    resolver = importlib.import_module(f"functions.{function}.handler").app.resolver
    pattern = route.path.replace("{", "<").replace("}", ">")
    for registered in (*resolver._static_routes, *resolver._dynamic_routes):
        if registered.path == pattern and registered.method == route.method:
            hint = typing.get_type_hints(registered.func, include_extras=True).get("body")
            return None if hint is None else typing.get_args(hint)[0]
    raise LookupError(route.path)


@dataclass(frozen=True)
class Place:
    """One value of a sample body, with what the contract says of it."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]
    required: bool

    @property
    def pointer(self) -> str:
        return "".join(f"/{part}" for part in self.path)


def walk(model: type[BaseModel], sample: Any) -> list[Place]:
    """Every value of the sample. Raises AssertionError when the sample leaves out a member of the contract."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            part = definitions[part["$ref"].rsplit("/", 1)[1]]
        return part

    def visit(
        part: dict[str, Any], value: Any, path: tuple[str | int, ...], required: bool
    ) -> Iterator[Place]:
        part = resolved(part)
        options = [resolved(o) for o in part.get("anyOf", []) if o.get("type") != "null"]
        if len(options) == 1:
            part = options[0]
        yield Place(path, part, required)
        if part.get("type") == "object" and "properties" in part:  # free-form records have their own test
            missing = part["properties"].keys() - value.keys() - {"object", "value"}
            assert not missing, f"the sample leaves out {sorted(missing)} at {path}"
            for name, item in value.items():
                yield from visit(
                    part["properties"][name], item, (*path, name), name in part.get("required", ())
                )
        elif part.get("type") == "array":
            assert value, f"the sample has no item at {path}"
            for index, item in enumerate(value):
                yield from visit(part["items"], item, (*path, index), True)

    return list(visit(schema, sample, (), True))


def put(body: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy of the body with another value in that place."""
    changed_body = copy.deepcopy(body)
    if not path:
        return value
    target = changed_body
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    return changed_body


def get(body: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        body = body[part]
    return body


# Keys ----------------------------------------------------------------------------------------------------
def public_pem(key: Any) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def register_key(
    world: World, person: Person, *, usable: str = "now() - interval '1 hour'"
) -> tuple[str, Any]:
    """A key put into the table itself, usable from that SQL expression on."""
    key = Ed25519PrivateKey.generate()
    key_id = f"key_{wiring.new_id().hex}"
    world.sql(
        "insert into signing_key (tenant_id, key_id, principal_id, algorithm, public_key, registered_at, usable_from)"
        f" values (%s, %s, %s, 'ed25519', %s, now() - interval '2 days', {usable})",
        world.tenant_id,
        key_id,
        world.principals[person.name].removeprefix("prin_"),
        public_pem(key),
    )
    return key_id, key


def patch_settings(world: World, **settings: Any) -> None:
    reply = world.call(ADMIN, "PATCH", "/v1/settings", settings, signed=True)
    assert reply.status == 200, reply.text


# A quick embedder, for tests that are not about nearness --------------------------------------------------
class QuickEmbedder:
    """Equal texts get equal unit vectors, others unrelated ones; no model is run."""

    contract = "quick-384-v1"

    def embed(self, texts: Sequence[str]) -> Any:
        vectors = np.empty((len(texts), 384), np.float32)
        for row, text in enumerate(texts):
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            vectors[row] = np.random.default_rng(seed).standard_normal(384)
            vectors[row] /= np.linalg.norm(vectors[row])
        return vectors

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1


# What is logged ------------------------------------------------------------------------------------------
@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Everything that the functions' logger and any other logger write meanwhile."""
    written = io.StringIO()
    other = logging.StreamHandler(written)
    root = logging.getLogger()
    root.addHandler(other)
    ours = [
        handler for handler in observability.logger.handlers if isinstance(handler, logging.StreamHandler)
    ]
    assert ours
    before = [handler.setStream(written) for handler in ours]
    try:
        yield written
    finally:
        root.removeHandler(other)
        for handler, stream in zip(ours, before, strict=True):
            if stream is not None:
                handler.setStream(stream)


def erase_of(world: World, **body: Any) -> Any:
    """A signed erasure through the flow: several at once need no handler, which has one set of services."""
    request = {"dry_run": False, "reason": "data_subject_request", **body}
    text = json.dumps(request)
    headers = {"Content-Type": "application/json"} | world.sign("POST", "/v1/purge", text)
    lower = {name.lower(): value for name, value in headers.items()}
    parts = SignedParts("POST", (BASE + "/v1/purge",), lower, text.encode())
    call = replace(call_of(ADMIN, "POST /v1/purge"), signed=parts)
    return json.loads(purge(world.services("purge"), call, PurgeRequest.model_validate(request)).body)


def call_of(person: Person, operation: str, key: str | None = None) -> Call:
    """What the handlers make of a request, for tests that run flows in threads of their own."""
    claims = person.claims()
    credential = credential_of({"requestContext": {"authorizer": {"claims": claims}}})
    return Call(credential, str(wiring.new_id()), operation, operation, key)


def kill(world: World, role: str, application: str = "%") -> None:
    """Ends the connections of a role, from outside; of those, the ones that call themselves so."""
    world.sql(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where usename = %s and datname = %s and application_name like %s",
        role,
        world.database.name,
        application,
    )


class Killer:
    """Ends a function's connection before the n-th of its statements, counted from when it is armed."""

    def __init__(self, world: World, function: str, application: str = "%") -> None:
        role = manifest.function(function).db_role
        assert role is not None
        self._kill = partial(kill, world, role, application)
        self._at: int | None = None
        self._seen = 0
        with_cursor(world, function, self._before)

    def arm(self, position: int) -> None:
        self._at, self._seen = position, 0

    def disarm(self) -> bool:
        """Whether it came to the n-th statement."""
        fired = self._at is not None and self._seen > self._at
        self._at = None
        return fired

    def _before(self, _: str) -> None:
        if self._at == self._seen:
            self._kill()
        self._seen += 1
