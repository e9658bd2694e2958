"""Direct admission."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.manifest import function
from remembrancer.api.app import Api, answer
from remembrancer.api.wiring import services
from remembrancer.domain.import_requests import BlocksRequest, MarkdownRequest, UmpRequest
from remembrancer.domain.requests import IngestRequest
from remembrancer.flows.import_blocks import import_blocks
from remembrancer.flows.import_markdown import import_markdown
from remembrancer.flows.import_ump import import_ump
from remembrancer.flows.ingest import ingest

app = Api(function("ingest"))


@app.route("POST", "/v1/ingest", summary="Store a text directly, screened.")
def post_ingest(body: Annotated[IngestRequest, Body()]) -> Response[str]:
    return answer(ingest(services(), app.call(), body))


@app.route("POST", "/v1/ingest/markdown", summary="Import a Markdown document; a new revision is a diff.")
def post_markdown(body: Annotated[MarkdownRequest, Body()]) -> Response[str]:
    return answer(import_markdown(services(), app.call(), body))


@app.route(
    "POST", "/v1/ingest/memory", summary="Import a text of `## [ … ]` entries, each judged on its own."
)
def post_blocks(body: Annotated[BlocksRequest, Body()]) -> Response[str]:
    return answer(import_blocks(services(), app.call(), body))


@app.route("POST", "/v1/ingest/ump", summary="Import Universal Memory Protocol records, a status for each.")
def post_ump(body: Annotated[UmpRequest, Body()]) -> Response[str]:
    return answer(import_ump(services(), app.call(), body))


handler = app.handler
