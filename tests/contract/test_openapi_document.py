"""The committed OpenAPI document is what the handlers say, and covers the manifest."""

from __future__ import annotations

import json

from functions.manifest import FUNCTIONS, HEALTH
from local import openapi


def test_the_committed_document_is_what_the_handlers_say() -> None:
    assert openapi.PATH.read_text(encoding="utf-8") == openapi.text(), "run `make openapi`"


def test_every_route_of_the_manifest_is_documented_with_its_scopes() -> None:
    document = json.loads(openapi.PATH.read_text(encoding="utf-8"))
    documented = {(m.upper(), path) for path, operations in document["paths"].items() for m in operations}
    routes = {(r.method, r.path): r for f in FUNCTIONS for r in f.routes}
    assert documented == {*routes, (HEALTH.method, HEALTH.path)}
    for (method, path), route in routes.items():
        security = document["paths"][path][method.lower()]["security"]
        assert security == ([{"oauth": [f"memory/{s}"]} for s in route.scopes] or [{"oauth": []}])
