"""What every handler is made of: manifest routes, strict bodies, the caller, problem documents.

A handler module says `app = Api(function("ingest"))`, decorates one function a route, and exports `app.handler`. A
route that the manifest does not give this function cannot be registered.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, get_type_hints
from uuid import UUID

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.event_handler.openapi.params import Query

from remembrancer import observability
from remembrancer.api.body import check_media_type, parse_body
from remembrancer.domain import import_requests as _import_requests  # noqa: F401 - names its fields
from remembrancer.domain import remember_requests as _remember_requests  # noqa: F401 - names its fields
from remembrancer.domain import requests
from remembrancer.domain import trust_requests as _trust_requests  # noqa: F401 - names its fields
from remembrancer.domain.ports import EmbeddingUnavailable
from remembrancer.domain.principal import Credential
from remembrancer.domain.problems import FieldError, Problem, to_document
from remembrancer.flows.context import Call, SignedParts
from remembrancer.flows.keyed import Answer
from remembrancer.settings import SettingsError

F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
MAX_PATH = 256
"""Ids of ours are 39 characters at most: a longer path names nothing."""
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_PARAMETER = re.compile(r"\{(\w+)\}")


def _names(model: type[requests.Closed]) -> set[str]:
    found = set(model.model_fields)
    for child in model.__subclasses__():
        found |= _names(child)
    return found


FIELD_NAMES = frozenset(_names(requests.Closed))
"""The names of our own contract: a pointer in an error shows no other."""


class RouteEntry(Protocol):
    """A route of the manifest."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...
    @property
    def signed(self) -> bool: ...
    @property
    def text(self) -> bool: ...
    @property
    def idempotent(self) -> bool: ...


class FunctionEntry(Protocol):
    """A function of the manifest. The layer does not import the manifest: the handlers hand it in."""

    @property
    def name(self) -> str: ...
    @property
    def routes(self) -> Sequence[RouteEntry]: ...


class Api:
    """The routes of one function of the manifest."""

    def __init__(self, entry: FunctionEntry, public_bases: tuple[str, ...] = ()) -> None:
        self.function = entry
        self.public_bases = public_bases
        self.registered: set[tuple[str, str]] = set()
        self._handles: dict[tuple[str, str], Callable[..., Any]] = {}
        self.resolver = APIGatewayRestResolver(
            enable_validation=True,
            response_validation_error_http_code=500,
            serializer=to_json,
            json_body_deserializer=lambda text: parse_body(text, is_base64=False, names=FIELD_NAMES),
        )
        self.resolver.exception_handler(Problem)(self._problem)
        self.resolver.exception_handler(RequestValidationError)(self._invalid)
        self.resolver.exception_handler(EmbeddingUnavailable)(self._unavailable)
        self.resolver.exception_handler(SettingsError)(self._misconfigured)
        # Powertools would log the exception with its message, which may hold values.
        self.resolver.exception_handler(Exception)(self._failed)
        self.resolver.not_found(self._not_found)

    def route(self, method: str, path: str, **openapi: Any) -> Callable[[F], F]:
        """Register the function behind a manifest route. Raises LookupError when the manifest has none."""
        self._entry(method, path)
        self.registered.add((method, path))
        pattern = _PARAMETER.sub(r"<\1>", path)
        register = self.resolver.route(pattern, method=[method], **_documented(openapi))

        def decorate(handle: F) -> F:
            register(handle)
            self._handles[(method, path)] = handle
            return handle

        return decorate

    def handler(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """The Lambda entry: one proxy event in, one proxy response out, whatever happens."""
        correlation_id = _correlation_id(event)
        observability.logger.set_correlation_id(correlation_id)
        try:
            response: dict[str, Any] = self.resolver.resolve(_readable(event), context)
        except Problem as problem:
            response = _proxied(problem, correlation_id)
        except Exception as error:  # noqa: BLE001 - the last line: logged by class, answered by code
            observability.failure(error, correlation_id=correlation_id)
            response = _proxied(Problem("internal_failure"), correlation_id)
        _stamp(response, correlation_id)
        observability.flush()
        observability.logger.info(
            "request",
            extra={
                "route": f"{event.get('httpMethod')} {event.get('resource')}",
                "status": response["statusCode"],
            },
        )
        return response

    def call(self) -> Call:
        """The request in progress, as the flows know it. Raises Problem unauthenticated or invalid_input."""
        event = self.resolver.current_event.raw_event
        credential = credential_of(event)
        method, path = event["httpMethod"], event["path"]
        if len(path) > MAX_PATH:
            raise Problem("not_found")
        route = self._current(event)
        if not route.signed:  # a signed request has no query at all: its signature says so
            self._check_query(event, route)
        if route.text:
            credential = replace(credential, text_bytes=len((event.get("body") or "").encode()))
        return Call(
            credential=credential,
            correlation_id=_correlation_id(event),
            operation=f"{method} {path}",
            route=f"{method} {route.path}",
            idempotency_key=_idempotency_key(event) if route.idempotent else None,
            signed=_signed_parts(event, self.public_bases) if route.signed else None,
            received_at=_received_at(event),
        )

    def header(self, name: str) -> str | None:
        """A header of the request in progress; its lines joined."""
        return _headers(self.resolver.current_event.raw_event).get(name.lower())

    def _check_query(self, event: Mapping[str, Any], route: RouteEntry) -> None:
        """Unknown parameters are errors, as unknown fields of a body are."""
        given = event.get("multiValueQueryStringParameters") or {}
        if not given.keys() <= _query_names(self._handles[(route.method, route.path)]):
            error = FieldError("/query", "unknown_field", "has a parameter that is not known")
            raise Problem("invalid_input", [error])

    def _entry(self, method: str, path: str) -> RouteEntry:
        for entry in self.function.routes:
            if (entry.method, entry.path) == (method, path):
                return entry
        raise LookupError(f"{method} {path} is not a route of {self.function.name} in the manifest")

    def _current(self, event: Mapping[str, Any]) -> RouteEntry:
        for entry in self.function.routes:
            pattern = _PARAMETER.sub("[^/]+", entry.path)
            if entry.method == event["httpMethod"] and re.fullmatch(pattern, event["path"]):
                return entry
        raise Problem("not_found")

    def _problem(self, problem: Problem) -> Response[str]:
        if problem.code == "rate_limited":
            observability.count("RateLimited")
        return _response(problem, _correlation_id(self.resolver.current_event.raw_event))

    def _invalid(self, error: RequestValidationError) -> Response[str]:
        errors = error.errors()
        told = [_field_error(e) for e in errors][:50]
        if any(map(_over_budget, errors)):
            return self._problem(Problem("input_budget_exceeded", told))
        return self._problem(Problem("invalid_input", told))

    def _unavailable(self, error: EmbeddingUnavailable) -> Response[str]:
        observability.failure(error)
        return self._problem(Problem("embedding_unavailable"))

    def _misconfigured(self, error: SettingsError) -> Response[str]:
        observability.failure(error)
        return self._problem(Problem("configuration_invalid"))

    def _failed(self, error: Exception) -> Response[str]:
        observability.failure(error)
        return self._problem(Problem("internal_failure"))

    def _not_found(self, _: NotFoundError) -> Response[str]:
        return self._problem(Problem("not_found"))


@functools.cache
def _query_names(handle: Callable[..., Any]) -> frozenset[str]:
    """The query parameters that a handler declares, under the names they have on the wire."""
    found = set()
    for name, hint in get_type_hints(handle, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, Query):
                found.add(mark.alias or name)
    return frozenset(found)


def answer(given: Answer) -> Response[str]:
    """A flow's answer as it was, or is, stored: the bytes are final."""
    headers = {"Idempotent-Replayed": "true"} if given.replayed else {}
    if given.status == 202:
        headers["Location"] = json.loads(given.body)["location"]
    return Response(given.status, JSON, given.body, headers={"Cache-Control": "no-store", **headers})


def shown(body: Mapping[str, Any]) -> Response[str]:
    """200 with a body that nothing stores."""
    return Response(200, JSON, to_json(body), headers={"Cache-Control": "no-store"})


def to_json(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def credential_of(event: Mapping[str, Any]) -> Credential:
    """The verified token's claims as the authorizer passed them. Raises Problem unauthenticated."""
    claims = ((event.get("requestContext") or {}).get("authorizer") or {}).get("claims")
    if not claims or not claims.get("iss") or not claims.get("sub"):
        raise Problem("unauthenticated")
    scopes = (claims.get("scope") or "").split()
    return Credential(
        issuer=claims["iss"],
        subject=claims["sub"],
        scopes=frozenset(s.removeprefix("memory/") for s in scopes if s.startswith("memory/")),
        groups=frozenset(re.split(r"[,\s\[\]]+", claims.get("cognito:groups") or "")) - {""},
    )


@dataclass(frozen=True)
class _Location:
    pointer: str

    @classmethod
    def of(cls, location: tuple[Any, ...]) -> _Location:
        """A pointer made of our own names and indexes; an unknown name is charged to its parent."""
        kind, *rest = location
        parts = []
        for part in rest:
            if isinstance(part, int) or part in FIELD_NAMES or kind in ("query", "path", "header"):
                parts.append(str(part))
        prefix = "" if kind == "body" else f"/{kind}"
        return cls(prefix + "".join(f"/{part}" for part in parts))


def _over_budget(error: Mapping[str, Any]) -> bool:
    """A content of more characters, or a list of more records, than a request may bring: 413, as one of more bytes."""
    most = {"string_too_long": requests.MAX_CONTENT, "too_long": requests.MAX_RECORDS}.get(error["type"])
    return most is not None and bool(error.get("ctx", {}).get("max_length") == most)


def _field_error(error: Mapping[str, Any]) -> FieldError:
    """A pydantic error without its input: location, type, and the rule in words."""
    kind = error["type"]
    if kind == "extra_forbidden":
        location = error["loc"][:-1]
        return FieldError(_Location.of(location).pointer, "unknown_field", "has a field that is not known")
    return FieldError(_Location.of(error["loc"]).pointer, kind, _message(error))


# Pydantic's messages of these types quote only our own bounds; of the others some quote the input.
_SAFE = ("missing", "string_too_long", "string_too_short", "too_long", "too_short", "greater_than_equal")
_OWN = ("instant", "blank", "source", "window", "value", "one_object", "one_selector", "refusal")

_OF_REMEMBER = (
    "key", "number", "unique", "source_revision", "one_name", "one_key", "unique_ref", "evidence_index", "coverage",
)  # fmt: skip


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] in (
        *_SAFE,
        *_OWN,
        *_OF_REMEMBER,
        "less_than_equal",
        "literal_error",
        "string_pattern_mismatch",
    ):
        return str(error["msg"])
    return "is not of the type or form that is asked for"


def _readable(event: dict[str, Any]) -> dict[str, Any]:
    """The event with a body that is text. Raises Problem for a body of another type or encoding."""
    body = event.get("body")
    if event.get("httpMethod") in ("POST", "PUT", "PATCH"):
        headers = _headers(event)
        check_media_type(headers.get("content-type"), headers.get("content-encoding"))
        if not body:
            raise Problem("malformed_request", [FieldError("", "missing", "A JSON body is required.")])
    if not event.get("isBase64Encoded"):
        return event
    # Parsed twice, on the rare path of a client behind something that encodes: once here for its bytes, which stay as
    # they are, since they may be signed.
    parse_body(body or "", is_base64=True, names=FIELD_NAMES)
    return {**event, "body": base64.b64decode(body or "").decode(), "isBase64Encoded": False}


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    """Lower-case names; the lines of one name joined as RFC 9110 says."""
    many = event.get("multiValueHeaders") or {}
    joined = {name.lower(): ", ".join(values) for name, values in many.items()}
    return joined or {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def _idempotency_key(event: Mapping[str, Any]) -> str | None:
    key = _headers(event).get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        error = FieldError("/header/Idempotency-Key", "pattern", "1 to 128 visible ASCII characters")
        raise Problem("invalid_input", [error])
    return key


def _signed_parts(event: Mapping[str, Any], bases: tuple[str, ...]) -> SignedParts:
    return SignedParts(
        method=event["httpMethod"],
        target_uris=tuple(base + event["path"] for base in bases),
        headers=_headers(event),
        body=(event.get("body") or "").encode(),
        query=bool(event.get("queryStringParameters") or event.get("multiValueQueryStringParameters")),
    )


def _received_at(event: Mapping[str, Any]) -> datetime | None:
    """When the gateway took the request, on its own clock."""
    epoch_ms = (event.get("requestContext") or {}).get("requestTimeEpoch")
    return None if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC)


def _correlation_id(event: Mapping[str, Any]) -> str:
    """The gateway's request id: unique, and in its access log too."""
    return str((event.get("requestContext") or {}).get("requestId") or UUID(int=0))


def _response(problem: Problem, correlation_id: str) -> Response[str]:
    headers = dict(problem.headers)
    media_type = headers.pop("Content-Type")
    return Response(
        problem.status, media_type, to_json(to_document(problem, correlation_id)), headers=headers
    )


def _proxied(problem: Problem, correlation_id: str) -> dict[str, Any]:
    return {
        "statusCode": problem.status,
        "multiValueHeaders": {name: [value] for name, value in problem.headers.items()},
        "body": to_json(to_document(problem, correlation_id)),
        "isBase64Encoded": False,
    }


def _stamp(response: dict[str, Any], correlation_id: str) -> None:
    headers = response.setdefault("multiValueHeaders", {})
    headers["X-Correlation-Id"] = [correlation_id]
    headers["X-Content-Type-Options"] = ["nosniff"]


_PROBLEMS: Mapping[int, Any] = {
    status: {"description": "A problem document (RFC 9457)."}
    for status in (400, 401, 403, 404, 409, 410, 413, 415, 422, 429, 500, 503, 504)
}
"""What the OpenAPI document says of every route alike."""


def _documented(openapi: Mapping[str, Any]) -> dict[str, Any]:
    done = {200: {"description": "Done."}, 201: {"description": "Created."}, 202: {"description": "A job."}}
    return {"responses": {**done, **_PROBLEMS}, **openapi}
