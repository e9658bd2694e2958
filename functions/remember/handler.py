"""Remember: takes a request on, and answers with its one terminal result or where to wait for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.manifest import function
from remembrancer.api.app import JSON, Api
from remembrancer.api.preferences import request_deadline, wait_of
from remembrancer.api.wiring import services, settings
from remembrancer.domain.problems import MEDIA_TYPE
from remembrancer.domain.remember_requests import CancelRequest, RememberRequest
from remembrancer.flows.remember import RETRY_AFTER_S, Outcome, Waiting, cancel, remember, result

DEFAULT_WAIT = timedelta(seconds=10)
DEV_WAIT = timedelta(seconds=3)

app = Api(function("remember"))


@app.route(
    "POST",
    "/v1/remember",
    summary="Remember evidence and relationships: assessed, then committed as a whole or not at all.",
)
def post_remember(body: Annotated[RememberRequest, Body()]) -> Response[str]:
    default = DEV_WAIT if settings().profile == "dev" else DEFAULT_WAIT
    waiting = Waiting(
        wait_of(app.header("Prefer"), default), request_deadline(app.header("Request-Deadline"))
    )
    return _answered(remember(services(), app.call(), body, waiting))


@app.route("POST", "/v1/remember/{id}/cancel", summary="Call an attempt off before its commit starts.")
def post_cancel(id: str, body: Annotated[CancelRequest, Body()]) -> Response[str]:
    return _shown(cancel(services(), app.call(), id, body))


@app.route(
    "GET", "/v1/remember/{id}", summary="The terminal result of one's own attempt, or that it is at work."
)
def get_remember(id: str) -> Response[str]:
    return _shown(result(services(), app.call(), id))


def _answered(outcome: Outcome) -> Response[str]:
    """The submission's own answer: with the status of its outcome."""
    return _response(outcome, outcome.status)


def _shown(outcome: Outcome) -> Response[str]:
    """The same document, looked at: that was done, whatever it says."""
    return _response(outcome, 202 if outcome.status == 202 else 200)


def _response(outcome: Outcome, status: int) -> Response[str]:
    headers = {"Cache-Control": "no-store"}
    if outcome.status == 202:
        headers |= {"Location": outcome.location, "Retry-After": str(RETRY_AFTER_S)}
    if outcome.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(status, MEDIA_TYPE if status >= 400 else JSON, outcome.body, headers=headers)


handler = app.handler
