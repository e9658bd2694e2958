"""A route exists once: what the manifest lists is what the handlers register, and the other way round."""

from __future__ import annotations

import importlib

import pytest

from functions import manifest
from remembrancer.api.app import Api

SERVING = [function for function in manifest.FUNCTIONS if function.routes]


@pytest.mark.parametrize("function", SERVING, ids=lambda f: f.name)
def test_a_handler_registers_exactly_its_routes(function: manifest.Function) -> None:
    app = importlib.import_module(f"functions.{function.name}.handler").app
    assert app.registered == {(route.method, route.path) for route in function.routes}
    assert len(app.resolver._static_routes) + len(app.resolver._dynamic_routes) == len(function.routes)


@pytest.mark.parametrize("function", manifest.FUNCTIONS, ids=lambda f: f.name)
def test_every_function_has_a_handler(function: manifest.Function) -> None:
    assert callable(importlib.import_module(f"functions.{function.name}.handler").handler)


def test_no_route_is_listed_twice() -> None:
    listed = [(route.method, route.path) for function in SERVING for route in function.routes]
    assert len(listed) == len(set(listed))


def test_a_route_outside_the_manifest_cannot_be_registered() -> None:
    app = Api(manifest.function("ingest"))
    with pytest.raises(LookupError):
        app.route("POST", "/v1/back-door")
    with pytest.raises(LookupError):
        app.route("GET", "/v1/ingest")


def test_reach_and_a_database_role_never_meet() -> None:
    for function in manifest.FUNCTIONS:
        assert (function.db_role is not None) == (function.network == "vpc"), function.name


def test_scopes_and_humans_are_consistent() -> None:
    for function in SERVING:
        for route in function.routes:
            assert set(route.scopes) <= set(manifest.SCOPES)
            assert not route.signed or (route.human and route.scopes == ("admin",))
            assert not route.text or route.idempotent
            if set(route.scopes) & {"audit", "admin"} or route.scopes == ("review",):
                assert route.human, route.path
