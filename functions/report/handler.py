"""What has decayed, the decay reports, and exports."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer.api.app import Api, answer, shown
from remembrancer.api.wiring import services
from remembrancer.domain.import_requests import ExportRequest
from remembrancer.domain.requests import Instant
from remembrancer.flows import consistency, reports
from remembrancer.flows.export import export

app = Api(function("report"))


@app.route("GET", "/v1/decayed", summary="Memories that retention has taken from view.")
def get_decayed(
    at: Annotated[Instant | None, Query()] = None,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response[str]:
    return shown(reports.decayed(services(), app.call(), at, cursor, limit))


@app.route("GET", "/v1/decay-reports", summary="The scheduled decay reports, newest first.")
def get_reports(
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response[str]:
    return shown(reports.list_reports(services(), app.call(), cursor, limit))


@app.route("GET", "/v1/decay-reports/{id}", summary="One decay report, with a link to its page.")
def get_report(id: Annotated[str, Path()]) -> Response[str]:
    return shown(reports.get_report(services(), app.call(), id))


@app.route("GET", "/v1/consistency", summary="What may be said twice, contradict, or mean one thing.")
def get_consistency() -> Response[str]:
    return shown(consistency.look(services(), app.call()))


@app.route("POST", "/v1/export", summary="Write a bundle of what you may read; a job.")
def post_export(body: Annotated[ExportRequest, Body()]) -> Response[str]:
    return answer(export(services(), app.call(), body))


handler = app.handler
