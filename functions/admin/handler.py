"""Principals, keys, settings."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from functions.manifest import function
from remembrancer.adapters.signatures import one_spelling
from remembrancer.api.app import Api, answer, shown
from remembrancer.api.wiring import services, settings
from remembrancer.domain.import_requests import RetentionRequest
from remembrancer.domain.requests import KeyRequest, PrincipalPatch, PrincipalRequest, SettingsPatch
from remembrancer.flows import administer, retention

app = Api(function("admin"), settings().public_bases)


@app.route("GET", "/v1/settings", summary="The tenant's settings.")
def get_settings() -> Response[str]:
    return shown(administer.get_settings(services(), app.call()))


@app.route("PATCH", "/v1/settings", summary="Change the tenant's settings; signed.")
def patch_settings(body: Annotated[SettingsPatch, Body()]) -> Response[str]:
    return shown(administer.patch_settings(services(), app.call(), body))


@app.route("GET", "/v1/retention", summary="Days that memories of each kind live.")
def get_retention() -> Response[str]:
    return shown(retention.get_retention(services(), app.call()))


@app.route("PUT", "/v1/retention", summary="Set the days that memories of each kind live; signed.")
def put_retention(body: Annotated[RetentionRequest, Body()]) -> Response[str]:
    return shown(retention.put_retention(services(), app.call(), body))


@app.route("GET", "/v1/principals", summary="Who may act in this tenant.")
def get_principals() -> Response[str]:
    return shown(administer.list_principals(services(), app.call()))


@app.route("POST", "/v1/principals", summary="Register a principal; signed.")
def post_principal(body: Annotated[PrincipalRequest, Body()]) -> Response[str]:
    return answer(administer.create_principal(services(), app.call(), body))


@app.route("PATCH", "/v1/principals/{id}", summary="Change, stop or rotate a principal; signed.")
def patch_principal(id: Annotated[str, Path()], body: Annotated[PrincipalPatch, Body()]) -> Response[str]:
    return shown(administer.change_principal(services(), app.call(), id, body))


@app.route("POST", "/v1/principals/{id}/keys", summary="Register a person's signing key; signed.")
def post_key(id: Annotated[str, Path()], body: Annotated[KeyRequest, Body()]) -> Response[str]:
    pem = one_spelling(body.algorithm, body.public_key)
    return answer(administer.register_key(services(), app.call(), id, body, pem))


handler = app.handler
