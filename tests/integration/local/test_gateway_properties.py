"""Whatever arrives at the gateway, it answers: hostile tokens, paths and function answers."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from functions.manifest import FUNCTIONS, SCOPES
from local.gateway import _Routes, proxy_event, proxy_response
from local.http import Request
from local.issuer import _form, _is_loopback, _Refused
from local.tokens import InvalidToken, TokenVerifier

KEY = ECKey.generate_key("P-256", auto_kid=True)
VERIFIER = TokenVerifier(lambda: KeySet([KEY]), "iss", lambda: {"client"}, time.time)
ROUTES = _Routes(FUNCTIONS)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=300))
@example("Bearer " + "." * 200)
@example("e30.e30.")
def test_text_is_no_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        VERIFIER.verify(text)


@given(json_values, json_values, st.binary(max_size=80))
@example({"alg": "ES256", "kid": KEY.kid}, {}, b"x" * 64)
@example({"alg": "none"}, {}, b"")
@example({"alg": "ES256", "kid": [1]}, {}, b"")
@example({"alg": ["ES256"]}, {}, b"")
@example({"alg": "ES256", "crit": ["x"]}, {}, b"")
def test_an_unsigned_structure_is_no_token(header: Any, claims: Any, signature: bytes) -> None:
    token = ".".join([b64(json.dumps(header).encode()), b64(json.dumps(claims).encode()), b64(signature)])
    with pytest.raises(InvalidToken):
        VERIFIER.verify(f"Bearer {token}")


@given(
    st.dictionaries(
        st.sampled_from(["exp", "nbf", "iss", "token_use", "client_id", "sub", "scope"]), json_values
    )
)
def test_our_own_signature_does_not_excuse_the_claims(claims: dict[str, Any]) -> None:
    try:
        token = jwt.encode({"alg": "ES256", "kid": KEY.kid}, claims, KEY)
    except (ValueError, TypeError):
        return  # the issuer itself cannot sign such claims
    with pytest.raises(InvalidToken):
        VERIFIER.verify(token)


paths = st.one_of(
    st.text(alphabet=st.characters(max_codepoint=255), max_size=60),
    st.lists(
        st.sampled_from(["v1", "proposals", "decide", "{id}", "{}", "%2F", "", "..", "%00", "x"]), max_size=6
    ).map(lambda parts: "/" + "/".join(parts)),
)


@given(st.sampled_from(["GET", "POST", "PUT", "TRACE"]), paths)
def test_any_path_is_a_route_or_none_and_its_event_is_json(method: str, path: str) -> None:
    found = ROUTES.match(method, path)
    if found is None:
        return
    request = Request(method, path + "?a=%ff&a=\xe9", (("X", "\xff"),), b"\xff")
    event = proxy_event(request, found.route, found.parameters, {"scope": SCOPES}, "id")
    assert json.loads(json.dumps(event))["resource"] == found.route.path
    assert set(found.route.path.split("/")) >= {f"{{{name}}}" for name in found.parameters}


proxy_like = st.fixed_dictionaries(
    {},
    optional={
        "statusCode": st.integers(0, 700) | json_values,
        "headers": st.dictionaries(st.text(max_size=8), json_values, max_size=3) | json_values,
        "multiValueHeaders": st.dictionaries(
            st.text(max_size=8), st.lists(json_values, max_size=2) | json_values
        ),
        "body": st.text(max_size=20) | json_values,
        "isBase64Encoded": st.booleans() | json_values,
    },
)


@given(st.binary(max_size=100) | (json_values | proxy_like).map(lambda value: json.dumps(value).encode()))
@example(b'{"headers": {"\xc3\xbc": "a"}}')
@example(b'{"body": "\\ud800"}')
@example(b'{"headers": {"X": "\\u0000"}}')
@example(b'{"headers": {"X": " a "}}')
@example(b"[" * 5000)
def test_any_answer_is_malformed_or_can_be_sent(payload: bytes) -> None:
    try:
        response = proxy_response(payload)
    except ValueError:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    connection.next_event()
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
    assert connection.send(h11.Response(status_code=response.status, headers=headers))


@given(st.text(max_size=60), st.text(max_size=60))
@example("http://localhost:80\n/review/", "a=1&a=2")
@example("http://[::1/review/", "%ff=%ed%a0%80")
def test_the_issuers_parsers_only_refuse(uri: str, form: str) -> None:
    if _is_loopback(uri, ("/review/",)):
        assert uri.startswith(("http://localhost", "http://127.0.0.1", "HTTP://", "hTTp"))
    with contextlib.suppress(_Refused):
        assert all(isinstance(value, str) for value in _form(form).values())
