"""The audit chain and the tombstones."""

from __future__ import annotations

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from functions.manifest import function
from remembrancer.api.app import Api, shown
from remembrancer.api.wiring import services
from remembrancer.flows import audit
from remembrancer.flows.diagnostics import diagnostics

app = Api(function("audit"))

Cursor = Annotated[str | None, Query(max_length=4096)]
Limit = Annotated[int, Query(ge=1, le=200)]
From = Annotated[Literal["start", "checkpoint"], Query(alias="from")]
After = Annotated[int, Query(ge=0, le=2**63 - 1)]
Day = Annotated[str | None, Query(max_length=10)]
Rows = Annotated[int, Query(ge=1, le=5000)]


@app.route("GET", "/v1/audit", summary="What happened, newest first.")
def get_audit(cursor: Cursor = None, limit: Limit = 50) -> Response[str]:
    return shown(audit.list_events(services(), app.call(), cursor, limit))


@app.route("GET", "/v1/audit/verify", summary="Whether the chain is whole, and where it is not.")
def get_verify(begin: From = "start") -> Response[str]:
    return shown(audit.verify_chain(services(), app.call(), begin))


@app.route("GET", "/v1/audit/export", summary="The chain as JSON lines, oldest first, behind a number.")
def get_export(after: After = 0, limit: Rows = 1000) -> Response[str]:
    text = audit.export_chain(services(), app.call(), after, limit)
    return Response(200, "application/x-ndjson", text, headers={"Cache-Control": "no-store"})


@app.route("GET", "/v1/pii-reads", summary="Who was shown personal data on a day.")
def get_pii_reads(day: Day = None, cursor: Cursor = None, limit: Limit = 50) -> Response[str]:
    return shown(audit.list_pii_reads(services(), app.call(), day, cursor, limit))


@app.route("GET", "/v1/tombstones", summary="What was erased, as keyed digests.")
def get_tombstones(cursor: Cursor = None, limit: Limit = 50) -> Response[str]:
    return shown(audit.list_tombstones(services(), app.call(), cursor, limit))


@app.route(
    "GET", "/v1/attempts/{id}/diagnostics", summary="What the assessor was asked and what it answered."
)
def get_diagnostics(id: str) -> Response[str]:
    return shown(diagnostics(services(), app.call(), id))


handler = app.handler
