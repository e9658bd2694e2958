"""Direct admission."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.manifest import function
from remembrancer.api.app import Api, answer
from remembrancer.api.wiring import services
from remembrancer.domain.requests import IngestRequest
from remembrancer.flows.ingest import ingest

app = Api(function("ingest"))


@app.route("POST", "/v1/ingest", summary="Store a text directly, screened.")
def post_ingest(body: Annotated[IngestRequest, Body()]) -> Response[str]:
    return answer(ingest(services(), app.call(), body))


handler = app.handler
