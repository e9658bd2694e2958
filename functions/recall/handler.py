"""Reading."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer import observability
from remembrancer.api.app import Api, shown
from remembrancer.api.wiring import services
from remembrancer.domain.requests import Instant, RecallRequest
from remembrancer.flows import recall as reading

app = Api(function("recall"))


@app.route("POST", "/v1/recall", summary="What is remembered about a query, cited.")
def post_recall(body: Annotated[RecallRequest, Body()]) -> Response[str]:
    found = reading.recall(services(), app.call(), body)
    if reading.suspicious(body.query):
        observability.logger.warning("suspicious_query")
    return shown(found)


@app.route("GET", "/v1/memories", summary="Live memories, newest first.")
def get_memories(
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response[str]:
    return shown(reading.list_memories(services(), app.call(), cursor, limit))


@app.route("GET", "/v1/memories/{id}", summary="One memory, as of the asked times.")
def get_memory(
    id: Annotated[str, Path()],
    at: Annotated[Instant | None, Query()] = None,
    known_at: Annotated[Instant | None, Query()] = None,
) -> Response[str]:
    return shown(reading.get_memory(services(), app.call(), id, at, known_at))


@app.route("GET", "/v1/memories/{id}/history", summary="Every version of a memory.")
def get_history(id: Annotated[str, Path()]) -> Response[str]:
    return shown(reading.history(services(), app.call(), id))


handler = app.handler
