"""Reading."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer import observability
from remembrancer.api.app import Api, shown
from remembrancer.api.wiring import services
from remembrancer.domain.requests import Instant, RecallRequest, VerifyRequest
from remembrancer.flows import know
from remembrancer.flows import recall as reading
from remembrancer.flows.verify import verify

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


@app.route("POST", "/v1/verify", summary="Whether a claim is said by what is remembered, and where.")
def post_verify(body: Annotated[VerifyRequest, Body()]) -> Response[str]:
    return shown(verify(services(), app.call(), body))


@app.route("GET", "/v1/entities", summary="Entities that bear a name, as of the asked times.")
def get_entities(
    name: Annotated[str, Query(min_length=1, max_length=200)],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    at: Annotated[Instant | None, Query()] = None,
    known_at: Annotated[Instant | None, Query()] = None,
) -> Response[str]:
    return shown(know.entities(services(), app.call(), name, limit, at, known_at))


@app.route("GET", "/v1/entities/{id}", summary="One entity with its relationships, as of the asked times.")
def get_entity(
    id: Annotated[str, Path()],
    at: Annotated[Instant | None, Query()] = None,
    known_at: Annotated[Instant | None, Query()] = None,
) -> Response[str]:
    return shown(know.entity(services(), app.call(), id, at, known_at))


@app.route("GET", "/v1/relationships/{id}/history", summary="Every version of a relationship.")
def get_relationship_history(id: Annotated[str, Path()]) -> Response[str]:
    return shown(know.relationship_history(services(), app.call(), id))


@app.route("GET", "/v1/predicates", summary="The registered predicates.")
def get_predicates() -> Response[str]:
    return shown(know.predicates(services(), app.call()))


handler = app.handler
