"""Hostile bodies and parameters on every route: the right problem, nothing stored, nothing repeated."""

from __future__ import annotations

import base64
import importlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from functions import manifest
from remembrancer.domain.problems import CATALOGUE
from remembrancer.domain.requests import MAX_CONTENT
from tests.integration.probe import (
    Place,
    QuickEmbedder,
    changed,
    counts,
    get,
    logged,
    put,
    request_model,
    routes,
    scratch_world,
    walk,
)
from tests.integration.samples import SAMPLES, path_with
from tests.integration.world import (
    ADMIN,
    AGENT,
    AUDITOR,
    READER,
    REVIEWER,
    LambdaContext,
    Person,
    Reply,
    World,
    proxy_event,
    wired,
)

WRITES = [
    (f, r)
    for f, r in routes()
    if r.method in ("POST", "PATCH", "PUT")
    and r.path != "/v1/ingest/ump"  # free-form records: tests/integration/admission
]
NAMES = [f"{r.method} {r.path}" for _, r in WRITES]
PEOPLE = {"review": REVIEWER, "audit": AUDITOR, "admin": ADMIN}
CANARY = "zq9-canary-7731"


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("bad")) as made:
        yield made


def caller(route: manifest.Route) -> Person:
    return PEOPLE.get(route.scopes[0], AGENT) if route.scopes else READER


def send(world: World, route: manifest.Route, raw: str, **more: Any) -> Reply:
    """The raw body with the caller's and, where the route is signed, a true signature."""
    return world.call(
        caller(route),
        route.method,
        path_with(route.path),
        raw=raw,
        signed=route.signed and raw.isascii(),
        **more,
    )


def check(reply: Reply, log: str, *codes: str) -> None:
    """A problem document of one of these codes that repeats nothing of what was sent."""
    assert reply.headers["Content-Type"] == "application/problem+json", reply.text[:500]
    document = reply.json
    assert document["code"] in codes, reply.text[:500]
    assert reply.status == document["status"] == CATALOGUE[document["code"]].status
    assert document["correlation_id"] == reply.headers["X-Correlation-Id"]
    assert CANARY not in reply.text
    assert CANARY not in log


def broken_bodies(sample: Any) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(what, raw body, codes) of everything that fails before a contract is looked at."""
    text = json.dumps(sample)
    first = next(iter(sample))
    yield "empty", "", ("malformed_request",)
    yield "blank", "   ", ("malformed_request",)
    yield "not JSON", "{" + CANARY, ("malformed_request",)
    yield "trailing", text + CANARY, ("malformed_request",)
    yield "a list", f'["{CANARY}"]', ("malformed_request",)
    yield "a string", f'"{CANARY}"', ("malformed_request",)
    yield "null", "null", ("malformed_request",)
    yield "deep", text[:-1] + f', "{CANARY}": ' + "[" * 5_000 + "]" * 5_000 + "}", ("malformed_request",)
    yield "duplicate name", text[:-1] + f', "{first}": "{CANARY}"' + "}", ("malformed_request",)
    yield (
        "duplicate unknown name",
        text[:-1] + f', "{CANARY}": 1, "{CANARY}": 2' + "}",
        ("malformed_request",),
    )
    yield "NaN", text[:-1] + f', "{CANARY}": NaN' + "}", ("malformed_request",)
    yield "infinity", text[:-1] + f', "{CANARY}": -Infinity' + "}", ("malformed_request",)
    yield "huge integer", text[:-1] + f', "{CANARY}": ' + "9" * 5_000 + "}", ("malformed_request",)
    yield "huge exponent", text[:-1] + f', "{CANARY}": 1e999' + "}", ("malformed_request",)
    yield "escaped NUL", text[:-1] + f', "{CANARY}": "a\\u0000{CANARY}"' + "}", ("malformed_request",)
    yield "NUL in a name", text[:-1] + f', "a\\u0000{CANARY}": 1' + "}", ("malformed_request",)
    yield "lone surrogate", text[:-1] + f', "{CANARY}": "\\ud800{CANARY}"' + "}", ("malformed_request",)
    yield "lone surrogate name", text[:-1] + f', "\\udfff{CANARY}": 1' + "}", ("malformed_request",)
    yield (
        "ten megabytes",
        text[:-1] + f', "x": "{CANARY}' + "a" * 10_000_000 + '"}',
        ("input_budget_exceeded",),
    )
    yield "many values", text[:-1] + ', "x": [' + "1," * 300_000 + "1]}", ("input_budget_exceeded",)
    yield "unknown member", text[:-1] + f', "{CANARY}": "{CANARY}"' + "}", ("invalid_input",)
    yield "no member", "{}", ("invalid_input", "not_found")


@pytest.mark.parametrize(("function", "route"), WRITES, ids=NAMES)
def test_a_broken_body_is_a_problem_and_leaves_nothing(
    world: World, function: manifest.Function, route: manifest.Route
) -> None:
    before = counts(world)
    sample = SAMPLES[f"{route.method} {route.path}"]
    for what, raw, codes in broken_bodies(sample):
        if what == "no member" and not [
            p for p in walk_of(function, route) if p.required and len(p.path) == 1
        ]:
            continue  # nothing is required of it
        with logged() as log:
            reply = send(world, route, raw, key="k-1" if route.idempotent else None)
        check(reply, log.getvalue(), *codes)
        if what == "unknown member":
            assert [e["code"] for e in reply.json["errors"]] == ["unknown_field"], reply.text
    assert changed(before, counts(world)) == {}


@pytest.mark.parametrize(("function", "route"), WRITES, ids=NAMES)
def test_bytes_and_media_types(world: World, function: manifest.Function, route: manifest.Route) -> None:
    before = counts(world)
    text = json.dumps(SAMPLES[f"{route.method} {route.path}"])
    for media_type in (
        "text/plain",
        "application/xml",
        "application/json; charset=utf-16",
        "",
        "multipart/form-data",
    ):
        with logged() as log:
            headers = {"Content-Type": media_type}
            reply = world.call(caller(route), route.method, path_with(route.path), raw=text, headers=headers)
        check(reply, log.getvalue(), "unsupported_media_type")
    encoded = [
        (b'{"x": "' + CANARY.encode() + b'\xff\xfe"}', "malformed_request"),
        (b"\xef\xbb\xbf{}", "malformed_request"),
        (json.dumps({"x": CANARY}).encode("utf-16"), "malformed_request"),
        (b"{" + CANARY.encode(), "malformed_request"),
        (b"x" * 6_000_000, "input_budget_exceeded"),
    ]
    for body, code in encoded:
        with logged() as log:
            reply = send_base64(world, function, route, base64.b64encode(body).decode())
        check(reply, log.getvalue(), code)
    with logged() as log:
        reply = send_base64(world, function, route, "not base64 " + CANARY)
    check(reply, log.getvalue(), "malformed_request")
    assert changed(before, counts(world)) == {}


def send_base64(world: World, function: manifest.Function, route: manifest.Route, body: str) -> Reply:
    path = path_with(route.path)
    headers = {"Content-Type": "application/json"}
    event = proxy_event(caller(route), route.method, path, route.path, body, headers)
    event["isBase64Encoded"] = True
    with wired(world, function.name):
        handler = importlib.import_module(f"functions.{function.name}.handler").handler
        response = handler(event, LambdaContext(function.name))
    flat = {name: values[0] for name, values in response["multiValueHeaders"].items()}
    return Reply(response["statusCode"], flat, response["body"])


def walk_of(function: manifest.Function, route: manifest.Route) -> list[Place]:
    model = request_model(function.name, route)
    assert model is not None
    return walk(model, SAMPLES[f"{route.method} {route.path}"])


def breaches(place: Place, value: Any) -> Iterator[tuple[str, Any]]:
    """Values just outside of what the contract allows in this place, each with a canary where one fits."""
    schema = place.schema
    kinds = {option.get("type") for option in schema.get("anyOf", [schema])}
    yield "an object", {CANARY: CANARY}
    if "string" not in kinds:
        yield "a string", CANARY
    if "array" not in kinds:
        yield "a list", [CANARY]
    if "integer" not in kinds and "number" not in kinds and kinds != {"boolean"}:
        yield "a number", 77_317_731
    if place.required:
        yield "null", None
    if schema.get("enum") or schema.get("const"):
        yield "no such choice", CANARY
    if "pattern" in schema:
        yield "against the pattern", CANARY + " \u2028!"
    if "maxLength" in schema:
        yield "too long", CANARY + "a" * (schema["maxLength"] + 1 - len(CANARY))
    if schema.get("minLength"):
        yield "too short", ""
    if "maximum" in schema:
        yield "too large", schema["maximum"] + 1
        yield "larger than 64 bits", 2**63 - 1
    if "minimum" in schema:
        yield "too small", schema["minimum"] - 1
        if "integer" in kinds:
            yield "a fraction", schema["minimum"] + 0.5
    if "integer" in kinds and "boolean" not in kinds:
        yield "a boolean", True
    if "maxItems" in schema:
        yield "too many", value * (schema["maxItems"] + 1)
    if schema.get("minItems"):
        yield "too few", []


@pytest.mark.parametrize(("function", "route"), WRITES, ids=NAMES)
def test_every_bound_by_one_and_every_type(
    world: World, function: manifest.Function, route: manifest.Route
) -> None:
    before = counts(world)
    sample = SAMPLES[f"{route.method} {route.path}"]
    tried = 0
    for place in walk_of(function, route):
        if place.path[-1:] == ("metadata",):
            continue  # names of the caller's own: tests/integration/attempts
        value = get(sample, place.path)
        for what, bad in breaches(place, value):
            if not place.path and what == "an object":
                continue
            if (
                place.path[-1:] == ("value",)
                and place.path[-2:-1] == ("value",)
                and what in ("a number", "a boolean")
            ):
                continue
            with logged() as log:
                reply = send(world, route, json.dumps(put(sample, place.path, bad)))
            code = "invalid_input" if place.path else "malformed_request"
            if isinstance(bad, str) and len(bad) > MAX_CONTENT:
                code = "input_budget_exceeded"
            check(reply, log.getvalue(), code)
            assert "77317731" not in reply.text, (place.pointer, what)
            if place.path:
                known = "/" + "/".join(map(str, place.path))
                pointers = [error["pointer"] for error in reply.json["errors"]]
                assert any(known.startswith(p) or p.startswith(known) for p in pointers), (known, pointers)
            tried += 1
        if place.schema.get("type") == "object" and place.path:
            with logged() as log:
                reply = send(world, route, json.dumps(put(sample, (*place.path, CANARY), CANARY)))
            check(reply, log.getvalue(), "invalid_input")
            assert reply.json["errors"][0] == {
                "pointer": place.pointer,
                "code": "unknown_field",
                "detail": "has a field that is not known",
            }
    assert tried >= 3
    assert changed(before, counts(world)) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("valid_from", "2024-05-01"),
        ("valid_from", "2024-05-01T12:00:00"),
        ("valid_from", "2024-02-30T12:00:00Z"),
        ("valid_from", "0001-01-01T00:00:00+14:00"),
        ("valid_from", "9999-12-31T23:59:59-14:00"),
        ("valid_from", "2024-05-01T12:00:00.1234567Z"),
        ("valid_from", "2024-05-01T24:30:00Z"),
        ("valid_from", "2024-05-01T12:00:00+99:00"),
        ("valid_from", "+12024-05-01T12:00:00Z"),
        ("valid_from", 1714564800),
        ("valid_from", "now"),
        ("content", "   "),
        ("content", "\u200b\u200b"),
        ("title", "\u2003"),
        ("entities", [{"name": "\u0001"}]),
        ("entities", [{"name": "Ana", "aliases": ["\u200b"]}]),
        ("entities", [{"name": "\ufdfa" * 200}]),
        ("relations", [{"subject": "\u0007", "predicate": "is_in", "object": "x"}]),
        ("relations", [{"subject": "x", "predicate": "is_in"}]),
        (
            "relations",
            [{"subject": "x", "predicate": "is_in", "object": "x", "value": {"type": "number", "value": 1}}],
        ),
        (
            "relations",
            [{"subject": "x", "predicate": "is_in", "value": {"type": "number", "value": "1e9999"}}],
        ),
        (
            "relations",
            [{"subject": "x", "predicate": "is_in", "value": {"type": "date", "value": "2024-13-01"}}],
        ),
        ("relations", [{"subject": "x", "predicate": "is_in", "value": {"type": "boolean", "value": 2}}]),
        ("source", "connector:"),
        ("source", "my connector:x"),
        ("data_subjects", [" "]),
    ],
)
def test_what_the_schema_cannot_say(world: World, name: str, value: Any) -> None:
    before = counts(world)
    for path in ("/v1/ingest", "/v1/ingest/proposal"):
        reply = world.call(AGENT, "POST", path, {"content": "Ana is here.", name: value})
        assert (reply.status, reply.code) == (422, "invalid_input"), reply.text
    assert changed(before, counts(world)) == {}


def test_windows_must_not_be_empty(world: World) -> None:
    same = "2024-05-01T12:00:00Z"
    for body in (
        {"valid_from": same, "valid_to": same},
        {"valid_from": same, "valid_to": "2024-05-01T13:00:00+01:00"},
        {
            "relations": [
                {"subject": "a", "predicate": "b", "object": "c", "valid_from": same, "valid_to": same}
            ]
        },
    ):
        reply = world.call(AGENT, "POST", "/v1/ingest", {"content": "Ana is here.", **body})
        assert (reply.status, reply.code) == (422, "invalid_input"), reply.text


def test_the_ends_of_time_are_stored_and_shown_exactly(world: World) -> None:
    body = {
        "content": "The mountain stands.",
        "observed_at": "0001-01-01T00:00:00Z",
        "valid_from": "0001-01-01T12:00:00.000001+11:30",
        "valid_to": "9999-12-31T23:59:59.999999Z",
        "expires_at": "9999-12-31T09:59:59.999999-14:00",
    }
    made = world.call(AGENT, "POST", "/v1/ingest", body)
    assert made.status == 201, made.text
    shown = world.call(READER, "GET", f"/v1/memories/{made.json['memory_id']}").json
    assert shown["observed_at"] == "0001-01-01T00:00:00Z"
    assert shown["valid_from"] == "0001-01-01T00:30:00.000001Z"
    assert shown["valid_to"] == "9999-12-31T23:59:59.999999Z"
    assert shown["expires_at"] == "9999-12-31T23:59:59.999999Z"
    for at in ("0001-01-01T00:30:00.000001Z", "9999-12-31T23:59:59.999998Z"):
        path = f"/v1/memories/{made.json['memory_id']}?at={at}"
        assert world.call(READER, "GET", path).status == 200, at
    for at in ("0001-01-01T00:30:00Z", "9999-12-31T23:59:59.999999Z"):
        assert world.call(READER, "GET", f"/v1/memories/{made.json['memory_id']}?at={at}").status == 404, at


HOSTILE_QUERIES = [
    "-", '"', "'", ":", "*", "(", ")", "\\", "%", "_", "&", "|", "!", "<->", "a <-> b", "foo:* & !bar", "' or 1=1 --",
    "\\u0000", "$1", "%s", "%(x)s", "{}", "日本語のテキスト", "İstanbul", "ﬀ" * 50, "😀" * 100, "a" * 2000,
    "\u202e", "NULL", ";drop table memory;", "word " * 390, "ก" * 500,
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE_QUERIES, ids=range(len(HOSTILE_QUERIES)))
def test_a_query_is_data(world: World, query: str) -> None:
    before = counts(world)
    with logged() as log:
        reply = world.call(READER, "POST", "/v1/recall", {"query": query})
    assert reply.status == 200, reply.text
    if len(query) > 4:
        assert query not in log.getvalue()
    assert changed(before, counts(world)) == {}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=x", "limit=1e2", "limit=" + "9" * 400, "cursor=x", "cursor=%00",
        "cursor=" + "a" * 5000, "cursor=%F0%9F%98%80", "status=" + CANARY, "status=", "limit=1&limit=x",
    ],
)  # fmt: skip
def test_bad_query_parameters(world: World, query: str) -> None:
    name = query.partition("=")[0]
    for function, route in routes():
        listing = route.method == "GET" and "{id}" not in route.path and function.name != "system"
        takes = route.path == "/v1/proposals" if name == "status" else listing
        if not takes or (query == "limit=201" and route.path == "/v1/audit/export"):  # its pages are longer
            continue
        with logged() as log:
            reply = world.call(caller(route), "GET", f"{route.path}?{query}")
        check(reply, log.getvalue(), "invalid_input")


@pytest.mark.parametrize("name", ["at", "known_at"])
@pytest.mark.parametrize(
    "value", ["yesterday", "2024-05-01", "", "2024-05-01T00:00:00", "0001-01-01T00:00:00%2B14:00"]
)
def test_bad_instants_in_the_query(world: World, name: str, value: str) -> None:
    reply = world.call(READER, "GET", f"/v1/memories/mem_{'0' * 32}?{name}={value}")
    assert (reply.status, reply.code) == (422, "invalid_input"), reply.text


@pytest.mark.parametrize("key", ["", " ", "a" * 129, "a b", "schlüssel", "a\u2028b", CANARY + "\x01"])
def test_bad_idempotency_keys(world: World, key: str) -> None:
    before = counts(world)
    with logged() as log:
        reply = world.call(AGENT, "POST", "/v1/ingest", {"content": "Ana is there."}, key=key)
    check(reply, log.getvalue(), "invalid_input")
    assert changed(before, counts(world)) == {}


def test_a_cursor_is_bound_to_its_listing_and_its_tenant(world: World) -> None:
    for number in range(3):
        world.ingest(f"Row {number}.")
        world.propose(f"Row {number}?")
    cursor = world.call(READER, "GET", "/v1/memories?limit=1").json["next_cursor"]
    assert world.call(READER, "GET", f"/v1/memories?limit=1&cursor={cursor}").status == 200
    for person, path in ((AGENT, "/v1/memories"), (REVIEWER, "/v1/proposals"), (AUDITOR, "/v1/audit")):
        reply = world.call(person, "GET", f"{path}?cursor={cursor}")
        assert (reply.status, reply.code) == (422, "invalid_input"), path
    mine = world.call(REVIEWER, "GET", "/v1/proposals?limit=1").json["next_cursor"]
    assert world.call(REVIEWER, "GET", f"/v1/proposals?limit=1&status=rejected&cursor={mine}").status == 422
    assert world.call(AGENT, "GET", f"/v1/proposals?limit=1&cursor={mine}").status == 422
    for position in range(0, len(mine), 7):
        flipped = mine[:position] + ("A" if mine[position] != "A" else "B") + mine[position + 1 :]
        assert world.call(REVIEWER, "GET", f"/v1/proposals?limit=1&cursor={flipped}").status == 422


def test_an_unknown_path_or_method_is_a_problem(world: World) -> None:
    for method, path in (
        ("GET", "/v1/ingest"),
        ("POST", "/v1/nothing"),
        ("DELETE", "/v1/ingest"),
        ("POST", "/"),
    ):
        event = proxy_event(AGENT, method, path, path, '{"a": 1}', {"Content-Type": "application/json"})
        with wired(world, "ingest"):
            response = importlib.import_module("functions.ingest.handler").handler(
                event, LambdaContext("ingest")
            )
        assert response["statusCode"] == 404
        assert json.loads(response["body"])["code"] == "not_found"


def test_every_answer_has_its_own_correlation_id(world: World) -> None:
    seen = {world.call(READER, "GET", "/v1/me").headers["X-Correlation-Id"] for _ in range(3)}
    assert len(seen) == 3 and all(uuid.UUID(text) for text in seen)
