"""Who am I, is it ready, what is the contract."""

from __future__ import annotations

from importlib import resources
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Path

from functions.manifest import function
from remembrancer.api.app import JSON, Api, shown
from remembrancer.api.wiring import services
from remembrancer.flows import jobs, status

app = Api(function("system"))


@app.route("GET", "/v1/me", summary="The caller, as the service knows it.")
def get_me() -> Response[str]:
    return shown(status.me(services(), app.call()))


@app.route("GET", "/v1/jobs/{id}", summary="How far a job is, and what became of it.")
def get_job(id: Annotated[str, Path()]) -> Response[str]:
    return shown(jobs.job_status(services(), app.call(), id))


@app.route("GET", "/v1/ready", summary="Whether the database answers under the schema this code expects.")
def get_ready() -> Response[str]:
    return shown(status.ready(services(), app.call()))


@app.route("GET", "/v1/openapi.json", summary="This contract.")
def get_openapi() -> Response[str]:
    app.call()
    text = (resources.files("remembrancer.api") / "openapi.json").read_text(encoding="utf-8")
    return Response(200, JSON, text)


handler = app.handler
