"""Signed erasure; requests of data subjects; legal holds."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from functions.manifest import function
from remembrancer.api.app import Api, answer, shown
from remembrancer.api.wiring import services, settings
from remembrancer.domain.requests import PurgeRequest
from remembrancer.domain.trust_requests import (
    DsarRequest,
    LegalHoldReleaseRequest,
    LegalHoldRequest,
    OffboardRequest,
)
from remembrancer.flows import dsar, legal_holds
from remembrancer.flows.dsar_certificate import get_certificate
from remembrancer.flows.erase import purge
from remembrancer.flows.offboard import offboard
from remembrancer.flows.private_read import read_private

app = Api(function("purge"), settings().public_bases)

Cursor = Annotated[str | None, Query(max_length=4096)]
Limit = Annotated[int, Query(ge=1, le=50)]


@app.route("POST", "/v1/purge", summary="Erase memories and every copy of them; signed.")
def post_purge(body: Annotated[PurgeRequest, Body()]) -> Response[str]:
    return answer(purge(services(), app.call(), body))


@app.route("POST", "/v1/offboard", summary="Erase everything of the tenant and stop everybody; signed.")
def post_offboard(body: Annotated[OffboardRequest, Body()]) -> Response[str]:
    return answer(offboard(services(), app.call(), body))


@app.route("POST", "/v1/dsar", summary="Register or answer a data subject's request; signed.")
def post_dsar(body: Annotated[DsarRequest, Body()]) -> Response[str]:
    return answer(dsar.request_dsar(services(), app.call(), body))


@app.route("GET", "/v1/dsar", summary="Requests of data subjects, newest first.")
def get_dsars(cursor: Cursor = None, limit: Limit = 20) -> Response[str]:
    return shown(dsar.list_dsars(services(), app.call(), cursor, limit))


@app.route("GET", "/v1/dsar/{id}", summary="How far a request is; the link to its bundle.")
def get_dsar(id: Annotated[str, Path()]) -> Response[str]:
    return shown(dsar.get_dsar(services(), app.call(), id))


@app.route(
    "GET", "/v1/dsar/{id}/certificate", summary="What was given and erased, and whether it still agrees."
)
def get_dsar_certificate(id: Annotated[str, Path()]) -> Response[str]:
    return shown(get_certificate(services(), app.call(), id))


@app.route("GET", "/v1/private-memories/{id}", summary="Somebody's private memory; the read is audited.")
def get_private_memory(id: Annotated[str, Path()]) -> Response[str]:
    return shown(read_private(services(), app.call(), id))


@app.route("GET", "/v1/legal-holds", summary="Legal holds, newest first.")
def get_legal_holds(cursor: Cursor = None, limit: Limit = 20) -> Response[str]:
    return shown(legal_holds.list_holds(services(), app.call(), cursor, limit))


@app.route("POST", "/v1/legal-holds", summary="Keep memories, or all of a data subject, from erasure.")
def post_legal_hold(body: Annotated[LegalHoldRequest, Body()]) -> Response[str]:
    return answer(legal_holds.place(services(), app.call(), body))


@app.route("POST", "/v1/legal-holds/{id}/release", summary="Release a legal hold; signed.")
def post_release(
    id: Annotated[str, Path()], body: Annotated[LegalHoldReleaseRequest, Body()]
) -> Response[str]:
    return answer(legal_holds.release(services(), app.call(), id, body))


handler = app.handler
