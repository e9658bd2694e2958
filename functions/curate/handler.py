"""Curation of memories and entities."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from functions.manifest import function
from remembrancer.api.app import Api, answer
from remembrancer.api.wiring import services
from remembrancer.domain.import_requests import MergeRequest, RenewRequest, RetractRequest
from remembrancer.flows import curate

app = Api(function("curate"))


@app.route("POST", "/v1/memories/{id}/retract", summary="Stop believing a memory; its bytes stay.")
def post_retract(id: Annotated[str, Path()], body: Annotated[RetractRequest, Body()]) -> Response[str]:
    return answer(curate.retract(services(), app.call(), id, body))


@app.route("POST", "/v1/memories/{id}/renew", summary="Keep a memory longer.")
def post_renew(id: Annotated[str, Path()], body: Annotated[RenewRequest, Body()]) -> Response[str]:
    return answer(curate.renew(services(), app.call(), id, body))


@app.route("POST", "/v1/entities/{id}/merge", summary="Make one entity a part of another.")
def post_merge(id: Annotated[str, Path()], body: Annotated[MergeRequest, Body()]) -> Response[str]:
    return answer(curate.merge(services(), app.call(), id, body))


handler = app.handler
