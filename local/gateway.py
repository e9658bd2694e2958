"""API Gateway on one machine: HTTP in, REST proxy events (version 1) out, with its checks and its limits.

In its order: size, route, token, scope, throttle, integration. What it answers itself are the problem
documents that the deployed API's GatewayResponses give. Behaviour copied on purpose:
- An unknown path or method is "missing authentication token", which we map to 404.
- There are no binary media types, so a body is text: bytes that are not UTF-8 arrive at the function as
  U+FFFD and cannot be told from a U+FFFD that was sent. The Content-Digest of a signed request can tell.
- `isBase64Encoded` in an answer is not acted on, for the same reason.
- A route without scopes of its own takes a token with any scope: without scopes the real authorizer would
  ask for an ID token.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from functions.manifest import HEALTH, SCOPES, Function, Route
from infra.problems import CONTENT_TYPE, PROBLEMS
from local.http import Headers, Request, Response, json_response
from local.runtime import ACCOUNT, Invocation, PayloadTooLarge
from local.tokens import Claims, InvalidToken, TokenVerifier, authorizer_claims

MAX_BODY: Final = 10_485_760
"""Bytes of a request's body."""
MAX_HEAD: Final = 10_240
"""Bytes of the request line and all headers."""
TIMEOUT_S: Final = 29.0
_IN_FLIGHT: Final = 256

Invoke = Callable[[str, bytes], Awaitable[Invocation]]

_REMAPPED = frozenset(
    ("authorization", "date", "host", "server", "www-authenticate", "max-forwards", "expect", "warning")
)
_DROPPED = frozenset(
    ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
_PROXY_KEYS = frozenset(("statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded"))


class _Malformed(ValueError):
    """The function's answer is not one of a proxy integration."""


@dataclass(frozen=True)
class _Match:
    function: Function
    route: Route
    parameters: Mapping[str, str]


class Gateway:
    """`handle` answers a request for the API. `log` takes one line a request: no token, no content."""

    def __init__(
        self,
        functions: Iterable[Function],
        invoke: Invoke,
        verifier: TokenVerifier,
        *,
        log: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
        in_flight: int = _IN_FLIGHT,
    ) -> None:
        self._routes = _Routes(functions)
        self._invoke = invoke
        self._verifier = verifier
        self._log = log
        self._timeout_s = timeout_s
        self._free = in_flight

    async def handle(self, request: Request) -> Response:
        request_id = str(uuid.uuid4())
        began = time.monotonic()
        try:
            response = await self._answer(request, request_id)
        except _Refused as refused:
            response = gateway_response(refused.kind, request_id)
        shown = request.path if request.path.isascii() and request.path.isprintable() else "(unprintable)"
        milliseconds = (time.monotonic() - began) * 1000
        self._log(f"{request_id} {request.method} {shown} {response.status} {milliseconds:.0f} ms")
        return Response(response.status, response.body, (*response.headers, ("x-amzn-RequestId", request_id)))

    async def _answer(self, request: Request, request_id: str) -> Response:
        if len(request.body) > MAX_BODY:
            raise _Refused("REQUEST_TOO_LARGE")
        if request.method == HEALTH.method and request.path == HEALTH.path:
            return json_response(200, {"status": "ok"}, (("Cache-Control", "no-store"),))
        match = self._routes.match(request.method, request.path)
        if match is None:
            raise _Refused("MISSING_AUTHENTICATION_TOKEN")
        claims = self._authorize(request, match.route, request_id)
        if self._free <= 0:
            raise _Refused("THROTTLED")
        self._free -= 1
        try:
            event = proxy_event(request, match.route, match.parameters, claims, request_id)
            return await self._integrate(match.function, event, request_id)
        finally:
            self._free += 1

    def _authorize(self, request: Request, route: Route, request_id: str) -> Claims:
        try:
            claims = self._verifier.verify(request.header("Authorization"))
        except InvalidToken as error:
            self._log(f"{request_id} token refused: {error}")
            raise _Refused("UNAUTHORIZED") from None
        wanted = {f"memory/{scope}" for scope in route.scopes or SCOPES}
        if wanted.isdisjoint(str(claims["scope"]).split()):
            raise _Refused("ACCESS_DENIED")
        return claims

    async def _integrate(self, function: Function, event: Mapping[str, object], request_id: str) -> Response:
        payload = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with asyncio.timeout(self._timeout_s):
                done = await self._invoke(function.name, payload)
        except PayloadTooLarge:
            raise _Refused("REQUEST_TOO_LARGE") from None
        except TimeoutError:
            raise _Refused("INTEGRATION_TIMEOUT") from None
        if done.error is not None:
            timed_out = b'"Sandbox.Timedout"' in done.payload
            self._log(f"{request_id} {function.name} failed")
            raise _Refused("INTEGRATION_TIMEOUT") if timed_out else _Refused("DEFAULT_5XX")
        try:
            return proxy_response(done.payload)
        except _Malformed as error:
            self._log(f"{request_id} malformed proxy response of {function.name}: {error}")
            raise _Refused("DEFAULT_5XX") from None


class _Refused(Exception):
    """`kind` is API Gateway's name of the response."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def gateway_response(kind: str, request_id: str) -> Response:
    """What the deployed gateway answers itself: the same table makes its GatewayResponses."""
    problem = next(problem for problem in PROBLEMS if problem.kind == kind)
    headers = (("Content-Type", CONTENT_TYPE), ("Cache-Control", "no-store"))
    return Response(problem.status, json.dumps(problem.document(request_id)).encode(), headers)


def refuse(status: int) -> Response:
    """For the HTTP server: 413 a body above the limit, 431 headers above it, 400 what is not HTTP."""
    return gateway_response("REQUEST_TOO_LARGE" if status == 413 else "DEFAULT_4XX", str(uuid.uuid4()))


def unavailable() -> Response:
    """While the system starts."""
    return gateway_response("INTEGRATION_FAILURE", str(uuid.uuid4()))


@dataclass
class _Resource:
    """One path segment; `parameter` is the child of a segment in braces."""

    children: dict[str, _Resource] = field(default_factory=dict)
    parameter: _Resource | None = None
    methods: dict[str, tuple[Function, Route]] = field(default_factory=dict)

    def child(self, segment: str) -> _Resource:
        if not segment.startswith("{"):
            return self.children.setdefault(segment, _Resource())
        self.parameter = self.parameter or _Resource()
        return self.parameter


class _Routes:
    """The tree of resources. As in API Gateway a fixed segment wins over a parameter, and the resource is
    found before the method."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._root = _Resource()
        for function in functions:
            for route in function.routes:
                resource = self._root
                for segment in route.path.split("/")[1:]:
                    resource = resource.child(segment)
                resource.methods[route.method] = (function, route)

    def match(self, method: str, path: str) -> _Match | None:
        values: list[str] = []
        resource = self._root
        for segment in map(unquote, path.split("/")[1:]):
            if segment in resource.children:
                resource = resource.children[segment]
            elif segment and resource.parameter is not None:
                resource = resource.parameter
                values.append(segment)
            else:
                return None
        if method not in resource.methods:
            return None
        function, route = resource.methods[method]
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
        return _Match(function, route, dict(zip(names, values, strict=True)))


def proxy_event(
    request: Request, route: Route, parameters: Mapping[str, str], claims: Claims, request_id: str
) -> dict[str, object]:
    """The event of a Lambda proxy integration, payload format 1.0."""
    query = parse_qsl(request.query, keep_blank_values=True, errors="replace")
    headers = [*request.headers, ("X-Forwarded-Proto", "http")]
    now = datetime.now(UTC)
    path = unquote(request.path)
    return {
        "resource": route.path,
        "path": path,
        "httpMethod": request.method,
        "headers": dict(headers),
        "multiValueHeaders": _grouped(headers),
        "queryStringParameters": dict(query) or None,
        "multiValueQueryStringParameters": _grouped(query) or None,
        "pathParameters": dict(parameters) or None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "authorizer": {"claims": authorizer_claims(claims)},
            "domainName": request.header("Host") or "localhost",
            "domainPrefix": "local",
            "extendedRequestId": request_id,
            "httpMethod": request.method,
            "identity": {"sourceIp": "127.0.0.1", "userAgent": request.header("User-Agent")},
            "path": path,
            "protocol": "HTTP/1.1",
            "requestId": request_id,
            "requestTime": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "requestTimeEpoch": int(now.timestamp() * 1000),
            "resourceId": "local",
            "resourcePath": route.path,
            "stage": "local",
        },
        "body": request.body.decode("utf-8", "replace") if request.body else None,
        "isBase64Encoded": False,
    }


def _grouped(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped


def proxy_response(payload: bytes) -> Response:
    """The HTTP answer of a proxy integration's result. Raises _Malformed, which the caller answers by 502."""
    try:
        answer = json.loads(payload)
    except (ValueError, RecursionError):
        raise _Malformed("not JSON") from None
    if not isinstance(answer, dict) or not answer.keys() <= _PROXY_KEYS:
        raise _Malformed("not an object of the known keys")
    status = answer.get("statusCode", 200)
    if isinstance(status, str) and status.isascii() and status.isdigit():
        status = int(status)
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        raise _Malformed("statusCode is no final HTTP status")
    body = answer.get("body")
    if body is not None and not isinstance(body, str):
        raise _Malformed("body is no string")
    return Response(status, (body or "").encode("utf-8", "replace"), _response_headers(answer))


def _response_headers(answer: Mapping[str, Any]) -> Headers:
    single, multi = ({} if answer.get(k) is None else answer[k] for k in ("headers", "multiValueHeaders"))
    if not isinstance(single, dict) or not isinstance(multi, dict):
        raise _Malformed("headers are no object")
    # Where both name a header, API Gateway takes the list.
    listed = {name.lower() for name in multi}
    pairs = [(name, value) for name, value in single.items() if name.lower() not in listed]
    for name, values in multi.items():
        if not isinstance(values, list):
            raise _Malformed("multiValueHeaders are no lists")
        pairs += [(name, value) for value in values]
    headers: list[tuple[str, str]] = []
    for name, value in pairs:
        if isinstance(value, dict | list) or value is None:
            raise _Malformed("a header is no scalar")
        text = str(value).strip()
        if not _is_token(name) or not (text.isprintable() and _is_latin1(text)):
            raise _Malformed("a header cannot be sent")
        if name.lower() in _REMAPPED:
            headers.append((f"x-amzn-Remapped-{name}", text))
        elif name.lower() not in _DROPPED:
            headers.append((name, text))
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", "application/json"))
    return headers


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name)


def _is_latin1(text: str) -> bool:
    return all(ord(c) < 256 for c in text)
