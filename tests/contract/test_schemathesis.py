"""Requests that schemathesis makes up from the OpenAPI document: no operation answers 5xx or an undeclared shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from functions.manifest import FUNCTIONS, Route
from local import openapi
from local.postgres import Server
from remembrancer.adapters.embedding import OnnxEmbedder
from tests.integration.conftest import TEMPLATE, Database
from tests.integration.world import ADMIN, AGENT, AUDITOR, REVIEWER, Person, World, new_world

SCHEMA = schemathesis.openapi.from_dict(json.loads(openapi.PATH.read_text(encoding="utf-8")))
ROUTES = [route for function in FUNCTIONS for route in function.routes]
_WHO = {"review": REVIEWER, "audit": AUDITOR, "admin": ADMIN}


@pytest.fixture(scope="module")
def tenant(
    postgres: Server, embedder: OnnxEmbedder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One tenant for all made-up requests: what one of them left behind is the next one's surprise."""
    database = Database(postgres, "schemathesis")
    postgres.ensure_database(database.name, template=TEMPLATE)
    folder: Path = tmp_path_factory.mktemp("schemathesis")
    made = new_world(database, embedder, folder)
    yield made
    made.close()
    postgres.drop_database(database.name)


def person_for(route: Route) -> Person:
    """Somebody whom the route admits."""
    return next((_WHO[scope] for scope in route.scopes if scope in _WHO), AGENT)


def _can_be_invalid(route: Route) -> bool:
    """Whether the document bounds anything of the request: a body, or a query parameter."""
    operation = SCHEMA[route.path][route.method].definition.raw
    asked = [p for p in operation.get("parameters", []) if p["in"] == "query"]
    return "requestBody" in operation or bool(asked)


CASES = [(route, GenerationMode.POSITIVE) for route in ROUTES] + [
    (route, GenerationMode.NEGATIVE) for route in ROUTES if _can_be_invalid(route)
]


@pytest.mark.parametrize(
    ("route", "mode"),
    CASES,
    ids=lambda v: v.value if isinstance(v, GenerationMode) else f"{v.method} {v.path}",
)
def test_every_operation_answers_what_it_declares(tenant: World, route: Route, mode: GenerationMode) -> None:
    operation = SCHEMA[route.path][route.method]
    person = person_for(route)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        reply = tenant.call(person, route.method, _path(route, case), raw=_body(case), headers=_headers(case))
        assert reply.status < 500, reply.text
        declared = operation.definition.raw["responses"]
        assert str(reply.status) in declared, reply.status
        problem = reply.headers["Content-Type"].startswith("application/problem+json")
        assert problem == (reply.status >= 400)
        lines = (
            reply.text.splitlines()
            if reply.headers["Content-Type"] == "application/x-ndjson"
            else [reply.text]
        )
        assert all(isinstance(json.loads(line), dict) for line in lines)

    check()


def _path(route: Route, case: Any) -> str:
    path = route.path
    for name, value in (case.path_parameters or {}).items():
        # A slash in an id would be another route: the gateway never sends it here.
        path = path.replace("{" + name + "}", quote(str(value).replace("/", "_"), safe="") or "_")
    query = case.query if isinstance(case.query, dict) else {}
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def _body(case: Any) -> str | None:
    if case.body is schemathesis.core.NOT_SET or case.method == "GET":
        return None
    if isinstance(case.body, bytes):
        # What is no JSON at all; the gateway hands bytes over as text.
        return case.body.decode("utf-8", "replace")
    return json.dumps(case.body)


def _headers(case: Any) -> dict[str, str]:
    key = (case.headers or {}).get("Idempotency-Key")
    return {} if key is None else {"Idempotency-Key": str(key)}
