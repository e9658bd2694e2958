"""The local issuer: Cognito's claims, code with PKCE, refresh, client credentials, and their refusals."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from local.directory import AGENT_CLIENT, ISSUER, PAGE_CLIENT, Directory
from local.http import HttpServer
from local.issuer import Issuer
from tests.integration.local.loops import Loop

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
REDIRECT = "http://localhost:8080/review/"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Directory:
    return Directory.load(tmp_path_factory.mktemp("identity"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(loop: Loop, directory: Directory, clock: Clock) -> Iterator[httpx.Client]:
    server = HttpServer(Issuer(directory, clock).handle)
    loop.run(server.start())
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as client:
        yield client
    loop.run(server.stop())


def claims(client: httpx.Client, token: str) -> dict[str, Any]:
    keys = KeySet.import_key_set(client.get("/.well-known/jwks.json").json())
    return dict(jwt.decode(token, keys, algorithms=["RS256"]).claims)


def request(**changes: str) -> dict[str, str]:
    asked = {
        "response_type": "code",
        "client_id": PAGE_CLIENT,
        "redirect_uri": REDIRECT,
        "scope": "openid",
        "state": "st<at>e&",
        "nonce": "n1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    return {name: value for name, value in {**asked, **changes}.items() if value}


def sign_in(client: httpx.Client, username: str = "rita", **changes: str) -> str:
    """The code, the way a browser gets it: through the form of the page."""
    page = client.get("/oauth2/authorize", params=request(**changes))
    assert page.status_code == 200
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page.text)
    form = {html.unescape(name): html.unescape(value) for name, value in hidden}
    answer = client.post("/oauth2/sign-in", data={**form, "username": username})
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith(REDIRECT + "?")
    fields = dict(parse_qsl(urlsplit(location).query))
    assert fields["state"] == "st<at>e&"
    return fields["code"]


def exchange(client: httpx.Client, code: str, **changes: str) -> httpx.Response:
    form = {
        "grant_type": "authorization_code",
        "client_id": PAGE_CLIENT,
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    return client.post("/oauth2/token", data={**form, **changes})


def refused(response: httpx.Response, error: str, status: int = 400) -> None:
    assert (response.status_code, response.json()) == (status, {"error": error})
    assert response.headers["cache-control"] == "no-store"


# People


def test_a_person_signs_in_with_pkce_and_gets_cognitos_claims(client: httpx.Client, clock: Clock) -> None:
    answer = exchange(client, sign_in(client)).json()
    assert answer["token_type"] == "Bearer" and answer["expires_in"] == 900
    access = claims(client, answer["access_token"])
    assert access["iss"] == ISSUER and access["client_id"] == PAGE_CLIENT
    assert (access["token_use"], access["username"]) == ("access", "rita")
    assert access["cognito:groups"] == ["reviewer"]
    assert set(access["scope"].split()) == {
        "openid",
        "memory/read",
        "memory/write",
        "memory/propose",
        "memory/review",
    }
    assert access["exp"] - access["iat"] == 900 and access["iat"] == clock.now
    identity = claims(client, answer["id_token"])
    assert (identity["token_use"], identity["aud"], identity["nonce"]) == ("id", PAGE_CLIENT, "n1")
    assert identity["sub"] == access["sub"]


def test_the_page_says_that_it_is_local_and_runs_no_script(client: httpx.Client) -> None:
    page = client.get("/oauth2/authorize", params=request(state='"><script>alert(1)</script>'))
    assert "This machine only" in page.text and "<script>" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy


def test_a_code_is_good_once_and_for_five_minutes(client: httpx.Client, clock: Clock) -> None:
    code = sign_in(client)
    assert exchange(client, code).status_code == 200
    refused(exchange(client, code), "invalid_grant")
    late = sign_in(client)
    clock.now += 300
    refused(exchange(client, late), "invalid_grant")


@pytest.mark.parametrize(
    "change",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"redirect_uri": "http://localhost:8081/review/"},
    ],
    ids=str,
)
def test_a_code_needs_its_verifier_and_address(client: httpx.Client, change: dict[str, str]) -> None:
    code = sign_in(client)
    refused(exchange(client, code, **change), "invalid_grant")
    refused(exchange(client, code), "invalid_grant")  # the wrong attempt used it up
    refused(exchange(client, "another"), "invalid_grant")


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uri": "https://localhost:8080/review/"},
        {"redirect_uri": "http://evil.example/review/"},
        {"redirect_uri": "http://localhost@evil.example/review/"},
        {"redirect_uri": "http://localhost:8080/review/../x"},
        {"redirect_uri": "http://localhost:8080/review/?x=1"},
        {"redirect_uri": "http://localhost:99999999/review/"},
        {"redirect_uri": "http://localhost:8080/review/\r\nX: y"},
        {"redirect_uri": ""},
        {"client_id": "nobody"},
        {"client_id": AGENT_CLIENT},
    ],
    ids=str,
)
def test_nothing_is_sent_to_a_foreign_address(client: httpx.Client, change: dict[str, str]) -> None:
    for answer in (
        client.get("/oauth2/authorize", params=request(**change)),
        client.post("/oauth2/sign-in", data={**request(**change), "username": "rita"}),
    ):
        assert answer.status_code == 400 and "location" not in answer.headers


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "openid memory/admin"}, "invalid_scope"),
    ],
)
def test_a_faulty_request_is_told_to_the_client(
    client: httpx.Client, change: dict[str, str], error: str
) -> None:
    answer = client.get("/oauth2/authorize", params=request(**change))
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == [error]
    denied = client.post("/oauth2/sign-in", data={**request(**change), "username": "rita"})
    assert "code=" not in denied.headers["location"]


def test_an_unknown_person_is_denied(client: httpx.Client) -> None:
    answer = client.post("/oauth2/sign-in", data={**request(), "username": "mallory"})
    assert "error=access_denied" in answer.headers["location"]


def test_refresh_gives_a_new_access_token_until_it_expires(client: httpx.Client, clock: Clock) -> None:
    first = exchange(client, sign_in(client, "robin")).json()
    form = {"grant_type": "refresh_token", "client_id": PAGE_CLIENT, "refresh_token": first["refresh_token"]}
    clock.now += 1000
    again = client.post("/oauth2/token", data=form).json()
    assert claims(client, again["access_token"])["exp"] == clock.now + 900
    assert claims(client, again["access_token"])["cognito:groups"] == ["reviewer", "pii"]
    refused(
        client.post("/oauth2/token", data={**form, "refresh_token": first["access_token"]}), "invalid_grant"
    )
    refused(client.post("/oauth2/token", data={**form, "refresh_token": "x.y.z"}), "invalid_grant")
    clock.now += 10 * 3600
    refused(client.post("/oauth2/token", data=form), "invalid_grant")


def test_sign_out_goes_back_to_the_page_only(client: httpx.Client) -> None:
    there = client.get("/logout", params={"client_id": PAGE_CLIENT, "logout_uri": REDIRECT})
    assert there.headers["location"] == REDIRECT
    away = client.get("/logout", params={"client_id": PAGE_CLIENT, "logout_uri": "http://evil.example/"})
    assert away.status_code == 400


# Agents


def test_an_agent_gets_an_hour_for_its_scopes(client: httpx.Client, directory: Directory) -> None:
    secret = directory.clients[AGENT_CLIENT].secret or ""
    form = {"grant_type": "client_credentials"}
    answer = client.post("/oauth2/token", data=form, auth=(AGENT_CLIENT, secret)).json()
    access = claims(client, answer["access_token"])
    assert access["sub"] == access["client_id"] == AGENT_CLIENT
    assert access["scope"] == "memory/propose memory/read memory/write"
    assert access["exp"] - access["iat"] == 3600
    assert "username" not in access and "cognito:groups" not in access
    narrow = {**form, "scope": "memory/read", "client_id": AGENT_CLIENT, "client_secret": secret}
    assert (
        claims(client, client.post("/oauth2/token", data=narrow).json()["access_token"])["scope"]
        == "memory/read"
    )
    wide = client.post("/oauth2/token", data={**form, "scope": "memory/admin"}, auth=(AGENT_CLIENT, secret))
    refused(wide, "invalid_scope")


def test_wrong_credentials_are_refused(client: httpx.Client, directory: Directory) -> None:
    form = {"grant_type": "client_credentials"}
    for auth in (
        (AGENT_CLIENT, "wrong"),
        (AGENT_CLIENT, ""),
        ("nobody", "x"),
        (PAGE_CLIENT, "x"),
        ("ü", "ü"),
    ):
        refused(client.post("/oauth2/token", data=form, auth=auth), "invalid_client", 401)
    refused(client.post("/oauth2/token", data={**form, "client_id": AGENT_CLIENT}), "invalid_client", 401)
    refused(client.post("/oauth2/token", data={**form, "client_id": PAGE_CLIENT}), "unauthorized_client")
    for header in ("Basic !", "Basic " + base64.b64encode(b"no-colon").decode(), "Bearer x"):
        refused(
            client.post("/oauth2/token", data=form, headers={"Authorization": header}), "invalid_client", 401
        )


def test_faulty_token_requests_are_refused(client: httpx.Client) -> None:
    twice = urlencode([("grant_type", "client_credentials"), ("grant_type", "password")])
    refused(client.post("/oauth2/token", content=twice), "invalid_request")
    refused(client.post("/oauth2/token", data={"client_id": PAGE_CLIENT}), "unsupported_grant_type")
    refused(client.post("/oauth2/token", content=b"\xff%ff\0"), "invalid_client", 401)


# The directory


def test_the_configuration_is_discoverable(client: httpx.Client) -> None:
    configuration = client.get("/.well-known/openid-configuration").json()
    assert configuration["issuer"] == ISSUER
    assert client.get(configuration["jwks_uri"]).json()["keys"][0].keys().isdisjoint({"d", "p", "q"})


def test_the_identity_is_private_and_stays(tmp_path: Path) -> None:
    first, second = Directory.load(tmp_path), Directory.load(tmp_path)
    assert stat.S_IMODE((tmp_path / "identity.json").stat().st_mode) == 0o600
    assert first.clients == second.clients
    assert first.keys.as_dict(private=True) == second.keys.as_dict(private=True)
    assert first.people["rita"].subject != first.people["robin"].subject
