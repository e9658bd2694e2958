"""Human decisions: proposals, the quarantine, conflicts."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer.api.app import Api, answer, shown
from remembrancer.api.wiring import services
from remembrancer.domain.requests import (
    ApproveRequest,
    DecideRequest,
    EditRequest,
    QuarantineRejectRequest,
    RejectRequest,
    ReleaseRequest,
    ResolveRequest,
)
from remembrancer.flows import decide, quarantine, review

app = Api(function("approve"))

Cursor = Annotated[str | None, Query(max_length=4096)]
Limit = Annotated[int, Query(ge=1, le=200)]


@app.route("POST", "/v1/proposals/{id}/approve", summary="Admit a proposal, on the digest that was shown.")
def post_approve(id: Annotated[str, Path()], body: Annotated[ApproveRequest, Body()]) -> Response[str]:
    return answer(decide.approve(services(), app.call(), id, body))


@app.route("POST", "/v1/proposals/{id}/reject", summary="Turn a proposal down.")
def post_reject(id: Annotated[str, Path()], body: Annotated[RejectRequest, Body()]) -> Response[str]:
    return answer(decide.reject(services(), app.call(), id, body))


@app.route("POST", "/v1/proposals/{id}/edit", summary="Replace the text of a pending proposal.")
def post_edit(id: Annotated[str, Path()], body: Annotated[EditRequest, Body()]) -> Response[str]:
    return answer(decide.edit(services(), app.call(), id, body))


@app.route("POST", "/v1/proposals/decide", summary="Up to a hundred decisions, each with its outcome.")
def post_decide(body: Annotated[DecideRequest, Body()]) -> Response[str]:
    return answer(decide.decide(services(), app.call(), body))


@app.route("GET", "/v1/quarantine", summary="Held memories.")
def get_quarantine(cursor: Cursor = None, limit: Limit = 50) -> Response[str]:
    return shown(review.list_quarantine(services(), app.call(), cursor, limit))


@app.route("POST", "/v1/quarantine/{id}/release", summary="Release one held memory, on the digest shown.")
def post_release(id: Annotated[str, Path()], body: Annotated[ReleaseRequest, Body()]) -> Response[str]:
    return answer(quarantine.release(services(), app.call(), id, body))


@app.route("POST", "/v1/quarantine/{id}/reject", summary="Keep a held memory out for good.")
def post_quarantine_reject(
    id: Annotated[str, Path()], body: Annotated[QuarantineRejectRequest, Body()]
) -> Response[str]:
    return answer(quarantine.reject(services(), app.call(), id, body))


@app.route("GET", "/v1/conflicts", summary="Open contradictions, both sides.")
def get_conflicts(cursor: Cursor = None, limit: Limit = 50) -> Response[str]:
    return shown(review.list_conflicts(services(), app.call(), cursor, limit))


@app.route("POST", "/v1/conflicts/{id}/resolve", summary="Close a contradiction.")
def post_resolve(id: Annotated[str, Path()], body: Annotated[ResolveRequest, Body()]) -> Response[str]:
    return answer(quarantine.resolve(services(), app.call(), id, body))


@app.route("GET", "/v1/stats/review", summary="The reviewers' own habits, last seven days.")
def get_statistics() -> Response[str]:
    return shown(review.statistics(services(), app.call()))


handler = app.handler
