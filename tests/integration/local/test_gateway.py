"""The gateway: proxy events, tokens that are really verified, and API Gateway's own answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from functions.manifest import Function, Route
from local.directory import AGENT_CLIENT, ISSUER, Directory
from local.gateway import MAX_BODY, Gateway, proxy_response, refuse
from local.http import HttpServer, Request, Response
from local.issuer import Issuer
from local.runtime import Runtime
from local.tokens import InvalidToken, TokenVerifier, authorizer_claims
from tests.integration.local.loops import STUBS, Loop

FUNCTIONS = (
    Function(
        "echo",
        "stub",
        timeout_s=9,
        routes=(
            Route("GET", "/v1/things/{id}", ("read",)),
            Route("POST", "/v1/things", ("write", "review")),
            Route("POST", "/v1/things/decide", ("review",)),
            Route("POST", "/v1/things/{id}/parts/{part}", ("write",)),
            Route("GET", "/v1/me", ()),
        ),
    ),
    Function("broken", "stub", routes=(Route("GET", "/v1/broken", ()),)),
)
PROBLEM_MEMBERS = {"type", "title", "status", "code", "retryable", "next_action", "errors", "correlation_id"}


@dataclass
class Api:
    base: str
    issuer: Issuer
    directory: Directory
    log: list[str]
    client: httpx.Client

    def token(self, *scopes: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.issuer.agent_token(AGENT_CLIENT, scopes)}"}

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        options.setdefault("headers", self.token())
        return self.client.request(method, path, **options)

    def event(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        response = self.call(method, path, **options)
        assert response.status_code == 200, response.text
        event: dict[str, Any] = response.json()
        return event


@pytest.fixture(scope="module")
def api(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder: Path = tmp_path_factory.mktemp("local")
    directory = Directory.load(folder)
    issuer = Issuer(directory, time.time)
    runtime = Runtime(FUNCTIONS, lambda _: {}, folder, instances=4, handler="{name}.handler", code=(STUBS,))
    verifier = TokenVerifier(lambda: issuer.public_keys, ISSUER, issuer.known_clients, time.time)
    log: list[str] = []
    gateway = Gateway(FUNCTIONS, runtime.invoke, verifier, log=log.append, timeout_s=4, in_flight=8)
    server = HttpServer(gateway.handle, max_body=MAX_BODY, max_head=10_240, refuse=refuse)

    async def start() -> None:
        await runtime.start()
        await server.start()

    async def stop() -> None:
        await server.stop()
        await runtime.stop()

    loop.run(start())
    base = f"http://127.0.0.1:{server.port}"
    with httpx.Client(base_url=base, timeout=30) as client:
        yield Api(base, issuer, directory, log, client)
    loop.run(stop())


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document.keys() == PROBLEM_MEMBERS
    assert (document["status"], document["code"]) == (status, code)
    assert document["correlation_id"]
    return document


# Events


def test_a_request_becomes_a_proxy_event(api: Api) -> None:
    event = api.event(
        "GET",
        "/v1/things/mem_%C3%BC%2F1?q=a+b&q=%26&empty=",
        headers=[*api.token("memory/read").items(), ("X-Twice", "1"), ("X-Twice", "2")],
    )
    assert event["resource"] == "/v1/things/{id}"
    assert event["pathParameters"] == {"id": "mem_ü/1"}
    assert event["queryStringParameters"] == {"q": "&", "empty": ""}
    assert event["multiValueQueryStringParameters"] == {"q": ["a b", "&"], "empty": [""]}
    assert event["headers"]["X-Twice"] == "2" and event["multiValueHeaders"]["X-Twice"] == ["1", "2"]
    assert event["body"] is None and event["isBase64Encoded"] is False
    assert "version" not in event
    context = event["requestContext"]
    assert context["resourcePath"] == event["resource"]
    claims = context["authorizer"]["claims"]
    assert claims["sub"] == claims["client_id"] == AGENT_CLIENT
    assert claims["scope"] == "memory/read"
    assert all(isinstance(value, str) for value in claims.values())


def test_claims_are_strings_as_cognito_shows_them() -> None:
    claims = {"exp": 1469818373, "auth_time": 1469814773, "cognito:groups": ["reviewer", "pii"], "version": 2}
    assert authorizer_claims(claims) == {
        "exp": "Fri Jul 29 18:52:53 UTC 2016",
        "auth_time": "1469814773",
        "cognito:groups": "reviewer,pii",
        "version": "2",
    }


def test_a_body_is_text_whatever_its_bytes(api: Api) -> None:
    sent = b'{"a": "\xff\xfe \xc3\xbc \x00"}'
    assert api.event("POST", "/v1/things", content=sent)["body"] == '{"a": "\ufffd\ufffd ü \0"}'


def test_answers_carry_all_values_of_a_header(api: Api) -> None:
    response = api.call("GET", "/v1/me")
    assert response.headers.get_list("x-twice") == ["a", "b"]
    assert response.headers["x-amzn-requestid"] == response.json()["requestContext"]["requestId"]


def test_a_fixed_segment_wins_over_a_parameter(api: Api) -> None:
    problem(api.call("POST", "/v1/things/decide", json={}), 403, "forbidden")
    problem(api.call("GET", "/v1/things/decide"), 404, "not_found")


# Unknown things, health


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/nothing"),
        ("GET", "/v1/me/"),
        ("GET", "/v1//me"),
        ("GET", "/V1/me"),
        ("DELETE", "/v1/me"),
        ("OPTIONS", "/v1/me"),
        ("GET", "/v1/things/"),
        ("GET", "/v1/things/{id}/parts/x"),
        ("GET", "/v1/me/methods%2F/GET"),
        ("GET", "/v1/%00"),
    ],
)
def test_an_unknown_path_or_method_is_not_found(api: Api, method: str, path: str) -> None:
    document = problem(api.call(method, path, headers={}), 404, "not_found")
    assert document["next_action"] == "none" and document["retryable"] is False


def test_health_needs_no_token(api: Api) -> None:
    assert api.call("GET", "/v1/health", headers={}).json() == {"status": "ok"}


# Tokens


@pytest.fixture
def claims() -> dict[str, Any]:
    now = int(time.time())
    return {
        "sub": "s",
        "iss": ISSUER,
        "client_id": AGENT_CLIENT,
        "token_use": "access",
        "scope": "memory/read",
        "iat": now,
        "exp": now + 60,
    }


def signed(api: Api, claims: dict[str, Any], key: Any = None, **header: Any) -> str:
    key = key or next(iter(api.directory.keys))
    return jwt.encode({"alg": "RS256", "kid": key.kid, **header}, claims, key, algorithms=["RS256"])


def test_a_valid_token_passes_with_and_without_bearer(api: Api, claims: dict[str, Any]) -> None:
    token = signed(api, claims)
    for value in (f"Bearer {token}", f"bearer {token}", token):
        assert api.call("GET", "/v1/me", headers={"Authorization": value}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"exp": 0},
        {"exp": int(time.time()) - 1},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"nbf": int(time.time()) + 3600},
        {"nbf": "soon"},
        {"iss": ISSUER + "/"},
        {"iss": [ISSUER]},
        {"token_use": "id"},
        {"token_use": "refresh"},
        {"token_use": None},
        {"client_id": "somebody-else"},
        {"client_id": None},
        {"sub": None},
        {"scope": ["memory/read"]},
    ],
    ids=lambda change: "-".join(f"{name}-{type(value).__name__}" for name, value in change.items()),
)
def test_a_wrong_claim_is_unauthenticated(api: Api, claims: dict[str, Any], change: dict[str, Any]) -> None:
    token = signed(api, {name: value for name, value in {**claims, **change}.items() if value is not None})
    document = problem(
        api.call("GET", "/v1/me", headers={"Authorization": f"Bearer {token}"}), 401, "unauthenticated"
    )
    assert document["next_action"] == "reauthenticate"


def _foreign_key(api: Api, claims: dict[str, Any]) -> str:
    kid = next(iter(api.directory.keys)).kid
    return signed(api, claims, RSAKey.generate_key(2048), kid=kid)


def _unsigned(api: Api, claims: dict[str, Any]) -> str:
    _, body, _ = signed(api, claims).split(".")
    head = _b64(json.dumps({"alg": "none"}))
    return f"{head}.{body}."


def _public_key_as_secret(api: Api, claims: dict[str, Any]) -> str:
    key = next(iter(api.directory.keys))
    head = _b64(json.dumps({"alg": "HS256", "kid": key.kid}))
    text = f"{head}.{_b64(json.dumps(claims))}"
    mac = hmac.new(key.as_pem(private=False), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def _altered(api: Api, claims: dict[str, Any]) -> str:
    head, _, signature = signed(api, claims).split(".")
    return f"{head}.{_b64(json.dumps({**claims, 'scope': 'memory/admin'}))}.{signature}"


def _b64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("forge", [_foreign_key, _unsigned, _public_key_as_secret, _altered])
def test_a_forged_token_is_unauthenticated(
    api: Api, claims: dict[str, Any], forge: Callable[[Api, dict[str, Any]], str]
) -> None:
    problem(
        api.call("GET", "/v1/me", headers={"Authorization": f"Bearer {forge(api, claims)}"}),
        401,
        "unauthenticated",
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer x",
        "Basic eDp5",
        "a.b.c",
        "....",
        "Bearer " + "a" * 5000,
        "Bearer \xff.\xff.\xff",
    ],
)
def test_what_is_no_token_is_unauthenticated(api: Api, value: str) -> None:
    header = {b"Authorization": value.encode("latin-1")}
    problem(api.client.get("/v1/me", headers=header), 401, "unauthenticated")


def test_es256_is_verified_too(claims: dict[str, Any]) -> None:
    key = ECKey.generate_key("P-256", auto_kid=True)
    verifier = TokenVerifier(lambda: KeySet([key]), ISSUER, lambda: {AGENT_CLIENT}, time.time)
    token = jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key)
    assert verifier.verify(token)["sub"] == "s"
    head, body, signature = token.split(".")
    with pytest.raises(InvalidToken):
        verifier.verify(f"{head}.{body}.{signature[::-1]}")


def test_a_scope_of_the_route_is_needed(api: Api) -> None:
    assert api.call("POST", "/v1/things", headers=api.token("memory/write"), json={}).status_code == 200
    assert api.call("POST", "/v1/things", headers=api.token("memory/review"), json={}).status_code == 200
    for other in ("memory/read", "write", "memory/writer", "openid"):
        problem(api.call("POST", "/v1/things", headers=api.token(other), json={}), 403, "forbidden")
    # A route without scopes of its own takes any of ours.
    assert api.call("GET", "/v1/me", headers=api.token("memory/audit")).status_code == 200
    problem(api.call("GET", "/v1/me", headers=api.token("openid")), 403, "forbidden")


# Limits and failures


def test_a_body_above_ten_megabytes_is_refused_before_anything_else(api: Api) -> None:
    problem(api.call("POST", "/v1/nothing", content=b"x" * (MAX_BODY + 1)), 413, "input_budget_exceeded")

    def chunks() -> Iterator[bytes]:
        for _ in range(11):
            yield b"x" * 1_000_000

    problem(api.call("POST", "/v1/things", content=chunks()), 413, "input_budget_exceeded")


def test_an_event_above_six_megabytes_is_refused(api: Api) -> None:
    problem(api.call("POST", "/v1/things", content=b"x" * 6_291_556), 413, "input_budget_exceeded")
    # Line feeds are two bytes each in the event's JSON.
    problem(api.call("POST", "/v1/things", content=b"\n" * 3_200_000), 413, "input_budget_exceeded")


def test_headers_above_ten_kilobytes_are_refused(api: Api) -> None:
    problem(api.call("GET", "/v1/me", headers={"X": "x" * 10_240}), 400, "malformed_request")


def test_what_is_not_http_is_refused(api: Api) -> None:
    host, port = api.base.removeprefix("http://").split(":")
    for garbage in (
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            assert b" 400 " in connection.makefile("rb").read().split(b"\r\n")[0]


def test_an_answer_without_a_body_keeps_the_connection(loop: Loop) -> None:
    async def nothing(request: Request) -> Response:
        return Response(int(request.path[1:]), b"ignored", (("X", "y"),))

    server = HttpServer(nothing)
    loop.run(server.start())
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as client:
        for status in (204, 304, 200):
            assert client.get(f"/{status}").content == (b"ignored" if status == 200 else b"")
        assert client.head("/200").headers["content-length"] == "7"
        assert client.get("/200").content == b"ignored"
    loop.run(server.stop())


def test_a_slow_function_is_a_gateway_timeout_and_runs_on(api: Api) -> None:
    began = time.monotonic()
    response = api.call("POST", "/v1/things", json={"x": 1}, headers={**api.token(), "X-Sleep": "5"})
    document = problem(response, 504, "request_timeout")
    assert document["retryable"] is True
    assert 3.9 < time.monotonic() - began < 8


@pytest.mark.parametrize("path", ["/v1/broken"])
def test_a_failing_function_is_an_internal_failure_without_its_words(api: Api, path: str) -> None:
    response = api.call("GET", path)
    problem(response, 500, "internal_failure")
    assert "no import" not in response.text


@pytest.mark.parametrize(
    "answer",
    [
        b"null",
        b'"text"',
        b"[1]",
        b'{"statusCode": 99}',
        b'{"statusCode": "ok"}',
        b'{"statusCode": true}',
        b'{"statusCode": 200, "body": {}}',
        b'{"statusCode": 200, "extra": 1}',
        b'{"statusCode": 200, "headers": []}',
        b'{"statusCode": 200, "headers": {"X": {}}}',
        b'{"statusCode": 200, "headers": {"X": "a\\r\\nSet-Cookie: b"}}',
        b'{"statusCode": 200, "headers": {"X Y": "a"}}',
        b'{"statusCode": 200, "multiValueHeaders": {"X": "a"}}',
    ],
)
def test_a_malformed_answer_is_told(answer: bytes) -> None:
    with pytest.raises(ValueError):
        proxy_response(answer)


def test_an_answer_is_mapped_as_api_gateway_does() -> None:
    response = proxy_response(
        json.dumps(
            {
                "statusCode": "201",
                "headers": {"A": 1, "B": "single", "WWW-Authenticate": "Bearer", "Content-Length": "9"},
                "multiValueHeaders": {"b": ["1", "2"]},
                "body": "aGk=",
                "isBase64Encoded": True,
            }
        ).encode()
    )
    assert (response.status, response.body) == (201, b"aGk=")
    assert list(response.headers) == [
        ("A", "1"),
        ("x-amzn-Remapped-WWW-Authenticate", "Bearer"),
        ("b", "1"),
        ("b", "2"),
        ("Content-Type", "application/json"),
    ]


def test_many_at_once_are_served_and_too_many_are_throttled(api: Api) -> None:
    slow = {**api.token(), "X-Sleep": "1"}
    with ThreadPoolExecutor(24) as threads:
        held = [threads.submit(api.call, "POST", "/v1/things", json={}, headers=slow) for _ in range(16)]
        answers = [job.result() for job in held]
    throttled = [answer for answer in answers if answer.status_code == 429]
    assert throttled and len(throttled) < len(answers)
    document = problem(throttled[0], 429, "rate_limited")
    assert document["retryable"] is True and document["next_action"] == "wait_and_retry"
    with ThreadPoolExecutor(8) as threads:
        assert {r.status_code for r in threads.map(lambda _: api.call("GET", "/v1/me"), range(64))} == {200}


def test_the_log_holds_no_token(api: Api) -> None:
    token = api.token()["Authorization"].split()[1]
    api.call("GET", "/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert any("GET /v1/me 200" in line for line in api.log)
    assert not any(token.split(".")[1] in line for line in api.log)
