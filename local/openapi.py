"""The OpenAPI document, generated from the handlers: `python -m local.openapi` writes it, a test compares it."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any, Final

from functions.manifest import FUNCTIONS, HEALTH, SCOPES, Route

PATH: Final = Path(__file__).resolve().parents[1] / "layers/core/python/remembrancer/api/openapi.json"
VERSION: Final = "1.0.0"

_POWERTOOLS_OWN: Final = ("HTTPValidationError", "ResponseValidationError", "ValidationError")

_IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A retry with the same key and body replays the first answer.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
}

_WAITING: Final = [
    {
        "name": "Prefer",
        "in": "header",
        "required": False,
        "description": "`wait=N` (RFC 7240): seconds to wait for the result, 25 at most. All else is ignored.",
        "schema": {"type": "string"},
    },
    {
        "name": "Request-Deadline",
        "in": "header",
        "required": False,
        "description": "When the result stops being of use: the attempt ends by then.",
        "schema": {"type": "string", "format": "date-time"},
    },
]

_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "code", "retryable", "next_action", "errors", "correlation_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "retryable": {"type": "boolean"},
        "next_action": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "A JSON Pointer into the request."},
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
            },
        },
        "correlation_id": {"type": "string"},
    },
}


def document() -> dict[str, Any]:
    """One document for all routes of the manifest."""
    os.environ.setdefault("POWERTOOLS_TRACE_DISABLED", "true")
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    for function in FUNCTIONS:
        if not function.routes:
            continue
        app = importlib.import_module(f"functions.{function.name}.handler").app
        part = json.loads(app.resolver.get_openapi_json_schema(title="Remembrancer", version=VERSION))
        schemas |= part.get("components", {}).get("schemas", {})
        for route in function.routes:
            operation = part["paths"][route.path][route.method.lower()]
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, operation)
    paths[HEALTH.path] = {
        "get": {
            "operationId": "get_health",
            "summary": "Whether the process answers; needs no token.",
            "security": [],
            "responses": {"200": {"description": "It does."}},
        }
    }
    scopes = {f"memory/{scope}": scope for scope in SCOPES}
    flow = {"authorizationUrl": "/oauth2/authorize", "tokenUrl": "/oauth2/token", "scopes": scopes}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Remembrancer",
            "version": VERSION,
            "description": "A governed long-term memory for AI agents.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {n: schemas[n] for n in sorted(schemas) if n not in _POWERTOOLS_OWN},
            "responses": {
                "Problem": {
                    "description": "A problem document (RFC 9457).",
                    "content": {
                        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                    },
                }
            },
            "securitySchemes": {
                "oauth": {
                    "type": "oauth2",
                    "flows": {
                        "authorizationCode": flow,
                        "clientCredentials": {"tokenUrl": flow["tokenUrl"], "scopes": scopes},
                    },
                }
            },
        },
    }


def _operation(route: Route, operation: dict[str, Any]) -> dict[str, Any]:
    """Names and scopes from the manifest; every error is a problem document, never Powertools' own."""
    words = [word.strip("{}") for word in route.path.removeprefix("/v1/").split("/")]
    operation["operationId"] = "_".join([route.method.lower(), *words]).replace(".", "_")
    operation["security"] = [{"oauth": [f"memory/{scope}"]} for scope in route.scopes] or [{"oauth": []}]
    if route.idempotent:
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    if (route.method, route.path) == ("POST", "/v1/remember"):
        operation["parameters"].extend(_WAITING)
    if route.signed:
        operation["description"] = "Needs an RFC 9421 signature by a key registered to the caller."
    operation["responses"] = {
        status: {"$ref": "#/components/responses/Problem"}
        if int(status) >= 400
        else {**response, "content": {"application/json": {"schema": {"type": "object"}}}}
        for status, response in sorted(operation["responses"].items())
    }
    return operation


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=False, sort_keys=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH.name}")
