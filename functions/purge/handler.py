"""Signed erasure."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.manifest import function
from remembrancer.api.app import Api, answer
from remembrancer.api.wiring import services, settings
from remembrancer.domain.requests import PurgeRequest
from remembrancer.flows.erase import purge

app = Api(function("purge"), settings().public_bases)


@app.route("POST", "/v1/purge", summary="Erase memories and every copy of them; signed.")
def post_purge(body: Annotated[PurgeRequest, Body()]) -> Response[str]:
    return answer(purge(services(), app.call(), body))


handler = app.handler
