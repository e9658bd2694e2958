"""Capture for review, and what captors and reviewers see of it."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer.api.app import Api, answer, shown
from remembrancer.api.wiring import services
from remembrancer.domain.requests import ProposalRequest
from remembrancer.flows.propose import capture
from remembrancer.flows.review import Status, get_proposal, list_proposals

app = Api(function("proposal"))


@app.route("POST", "/v1/ingest/proposal", summary="Propose a memory; a person decides.")
def post_proposal(body: Annotated[ProposalRequest, Body()]) -> Response[str]:
    return answer(capture(services(), app.call(), body))


@app.route("GET", "/v1/proposals", summary="The review queue; one's own captures without the review scope.")
def get_proposals(
    status: Annotated[Status, Query()] = "pending",
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response[str]:
    return shown(list_proposals(services(), app.call(), status, cursor, limit))


@app.route("GET", "/v1/proposals/{id}", summary="One proposal in its review form.")
def get_one(id: Annotated[str, Path()]) -> Response[str]:
    return shown(get_proposal(services(), app.call(), id))


handler = app.handler
