"""A small OpenID issuer in the place of Cognito: its claims, its scope trigger, its flows.

Client credentials for agents; authorization code with PKCE and refresh for people. Nobody has a password:
the sign-in page asks who you are and says that it is local. Codes live in this process, tokens are signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import html
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from functions.pre_token.handler import handler as pre_token
from local.directory import ISSUER, Client, Directory, Person
from local.http import Headers, Request, Response, json_response

PERSON_TOKEN_S: Final = 900
AGENT_TOKEN_S: Final = 3600
REFRESH_S: Final = 10 * 3600
_CODE_S: Final = 300

_NO_STORE: Final[Headers] = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
_STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:10vh auto;padding:0 1rem;
color:#1b1b1f;background:#fff}
p.local{border-left:4px solid #b45309;padding-left:.75rem}
button{display:block;width:100%;margin:.5rem 0;padding:.75rem 1rem;font:inherit;text-align:left;
border:1px solid #6b7280;border-radius:.5rem;background:#f8fafc;color:inherit;cursor:pointer}
button:focus-visible{outline:3px solid #1d4ed8;outline-offset:2px}
small{display:block;color:#4b5563}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#e5e7eb}button{background:#23262d}small{color:#b6bcc6}}
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


class _Refused(Exception):
    """An OAuth error of the token endpoint."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.code = code
        self.status = status


@dataclass(frozen=True)
class _Code:
    """What an authorization code stands for, until it is used once."""

    client_id: str
    redirect_uri: str
    challenge: str
    username: str
    scopes: tuple[str, ...]
    nonce: str | None
    expires: float


class Issuer:
    """Serves `/oauth2/*`, `/.well-known/*` and `/logout`. `now` gives seconds since the epoch."""

    PATHS: Final = ("/oauth2/", "/.well-known/", "/logout")

    def __init__(self, directory: Directory, now: Callable[[], float]) -> None:
        self._directory = directory
        self._now = now
        self._codes: dict[str, _Code] = {}
        self.public_keys = KeySet.import_key_set(directory.keys.as_dict(private=False))

    def known_clients(self) -> frozenset[str]:
        return frozenset(self._directory.clients)

    async def handle(self, request: Request) -> Response:
        match request.method, request.path:
            case "GET", "/.well-known/openid-configuration":
                return json_response(200, _configuration(request.header("Host") or "localhost"))
            case "GET", "/.well-known/jwks.json":
                return json_response(200, self._directory.keys.as_dict(private=False))
            case "GET", "/oauth2/authorize":
                return self._authorize(request.query)
            case "POST", "/oauth2/sign-in":
                return self._sign_in(request)
            case "POST", "/oauth2/token":
                return self._token(request)
            case "GET", "/logout":
                return self._logout(request.query)
        return Response(404, b"", _NO_STORE)

    # Tokens

    def person_token(self, username: str) -> str:
        """An access token of a person, as the page gets one. Raises KeyError."""
        return self._person_token(self._directory.people[username], "review-page", ("openid",), None)

    def agent_token(self, client_id: str, scopes: Sequence[str] = ()) -> str:
        """An access token of an agent's client, for all its scopes when none are named. Raises KeyError."""
        client = self._directory.clients[client_id]
        claims = {
            "sub": client_id,
            "client_id": client_id,
            "token_use": "access",
            "scope": " ".join(scopes or client.scopes),
            "auth_time": int(self._now()),
        }
        return self._sign(claims, AGENT_TOKEN_S)

    def _person_token(
        self, person: Person, client_id: str, scopes: Sequence[str], auth_time: int | None
    ) -> str:
        claims = {
            "sub": person.subject,
            "client_id": client_id,
            "token_use": "access",
            "scope": " ".join([*scopes, *_granted_by_trigger(person, client_id)]),
            "auth_time": auth_time or int(self._now()),
            "username": person.username,
            "cognito:groups": list(person.groups),
            "origin_jti": str(uuid.uuid4()),
        }
        return self._sign(claims, PERSON_TOKEN_S)

    def _sign(self, claims: Mapping[str, Any], seconds: int) -> str:
        now = int(self._now())
        key = next(iter(self._directory.keys))
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        full = {
            **claims,
            "iss": ISSUER,
            "iat": now,
            "exp": now + seconds,
            "jti": str(uuid.uuid4()),
            "version": 2,
        }
        return jwt.encode({"alg": algorithm, "kid": key.kid}, full, key)

    # The token endpoint

    def _token(self, request: Request) -> Response:
        try:
            form = _form(request.body.decode("utf-8", "replace"))
            client = self._authenticate(request.header("Authorization"), form)
            match form.get("grant_type"):
                case "client_credentials":
                    answer = self._by_client_credentials(client, form)
                case "authorization_code":
                    answer = self._by_code(client, form)
                case "refresh_token":
                    answer = self._by_refresh(client, form)
                case _:
                    raise _Refused("unsupported_grant_type")
        except _Refused as refused:
            return json_response(refused.status, {"error": refused.code}, _NO_STORE)
        return json_response(200, {"token_type": "Bearer", **answer}, _NO_STORE)

    def _authenticate(self, authorization: str | None, form: Mapping[str, str]) -> Client:
        client_id, secret = form.get("client_id", ""), form.get("client_secret")
        if authorization is not None:
            client_id, secret = _basic(authorization)
        client = self._directory.clients.get(client_id)
        if client is None or (client.secret is None) != (secret is None):
            raise _Refused("invalid_client", 401)
        if not hmac.compare_digest((client.secret or "").encode(), (secret or "").encode()):
            raise _Refused("invalid_client", 401)
        return client

    def _by_client_credentials(self, client: Client, form: Mapping[str, str]) -> dict[str, object]:
        if client.secret is None:
            raise _Refused("unauthorized_client")
        scopes = tuple(form.get("scope", "").split())
        if not set(scopes) <= set(client.scopes):
            raise _Refused("invalid_scope")
        return {"access_token": self.agent_token(client.client_id, scopes), "expires_in": AGENT_TOKEN_S}

    def _by_code(self, client: Client, form: Mapping[str, str]) -> dict[str, object]:
        # Taken out whatever follows: a code is good for one attempt.
        code = self._codes.pop(form.get("code", ""), None)
        if code is None or code.expires <= self._now() or code.client_id != client.client_id:
            raise _Refused("invalid_grant")
        if form.get("redirect_uri") != code.redirect_uri:
            raise _Refused("invalid_grant")
        if not hmac.compare_digest(_challenge(form.get("code_verifier", "")), code.challenge.encode()):
            raise _Refused("invalid_grant")
        person = self._directory.people[code.username]
        auth_time = int(self._now())
        claims = {
            "sub": person.subject,
            "client_id": client.client_id,
            "scopes": list(code.scopes),
            "username": person.username,
            "auth_time": auth_time,
        }
        answer = self._person_answer(person, client, code.scopes, auth_time, code.nonce)
        return {**answer, "refresh_token": self._sign({**claims, "token_use": "refresh"}, REFRESH_S)}

    def _by_refresh(self, client: Client, form: Mapping[str, str]) -> dict[str, object]:
        try:
            token = jwt.decode(form.get("refresh_token", ""), self.public_keys, algorithms=["RS256", "ES256"])
        except (JoseError, ValueError):
            raise _Refused("invalid_grant") from None
        claims = token.claims
        if claims.get("token_use") != "refresh" or claims["client_id"] != client.client_id:
            raise _Refused("invalid_grant")
        person = self._directory.people.get(claims["username"])
        if claims["exp"] <= self._now() or person is None:
            raise _Refused("invalid_grant")
        return self._person_answer(person, client, tuple(claims["scopes"]), claims["auth_time"], None)

    def _person_answer(
        self, person: Person, client: Client, scopes: Sequence[str], auth_time: int, nonce: str | None
    ) -> dict[str, object]:
        identity = {
            "sub": person.subject,
            "aud": client.client_id,
            "token_use": "id",
            "auth_time": auth_time,
            "name": person.name,
            "cognito:username": person.username,
            "cognito:groups": list(person.groups),
            **({} if nonce is None else {"nonce": nonce}),
        }
        return {
            "access_token": self._person_token(person, client.client_id, scopes, auth_time),
            "expires_in": PERSON_TOKEN_S,
            **({"id_token": self._sign(identity, PERSON_TOKEN_S)} if "openid" in scopes else {}),
        }

    # The sign-in page

    def _authorize(self, query: str) -> Response:
        try:
            asked = _form(query)
            client = self._client_of_page(asked)
        except _Refused as refused:
            return _page(400, f"<h1>Sign-in refused</h1><p>{html.escape(refused.code)}</p>")
        error = _fault_of_request(asked, client)
        if error is not None:
            return _redirect(asked["redirect_uri"], {"error": error}, asked.get("state"))
        kept = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in asked.items()
        )
        buttons = "".join(
            f'<button name="username" value="{html.escape(person.username)}">{html.escape(person.name)}'
            f"<small>{html.escape(', '.join(person.groups))}</small></button>"
            for person in self._directory.people.values()
        )
        return _page(
            200,
            "<h1>Remembrancer: local sign-in</h1>"
            '<p class="local">This machine only. There is no password: choose who you are.</p>'
            f'<form method="post" action="/oauth2/sign-in">{kept}{buttons}</form>',
            redirect_uri=asked["redirect_uri"],
        )

    def _sign_in(self, request: Request) -> Response:
        try:
            asked = _form(request.body.decode("utf-8", "replace"))
            client = self._client_of_page(asked)
        except _Refused as refused:
            return _page(400, f"<h1>Sign-in refused</h1><p>{html.escape(refused.code)}</p>")
        person = self._directory.people.get(asked.get("username", ""))
        if person is None or _fault_of_request(asked, client) is not None:
            return _redirect(asked["redirect_uri"], {"error": "access_denied"}, asked.get("state"))
        now = self._now()
        self._codes = {value: code for value, code in self._codes.items() if code.expires > now}
        value = secrets.token_urlsafe(32)
        self._codes[value] = _Code(
            client.client_id,
            asked["redirect_uri"],
            asked["code_challenge"],
            person.username,
            tuple(asked.get("scope", "openid").split()),
            asked.get("nonce"),
            now + _CODE_S,
        )
        return _redirect(asked["redirect_uri"], {"code": value}, asked.get("state"))

    def _logout(self, query: str) -> Response:
        try:
            asked = _form(query)
            asked["redirect_uri"] = asked.pop("logout_uri", "")
            self._client_of_page(asked)
        except _Refused as refused:
            return _page(400, f"<h1>Sign-out refused</h1><p>{html.escape(refused.code)}</p>")
        return _redirect(asked["redirect_uri"], {}, None)

    def _client_of_page(self, asked: Mapping[str, str]) -> Client:
        """Checked before anything is sent to the redirect address. Raises _Refused."""
        client = self._directory.clients.get(asked.get("client_id", ""))
        if client is None or client.secret is not None:
            raise _Refused("invalid_client")
        if not _is_loopback(asked.get("redirect_uri", ""), client.redirect_paths):
            raise _Refused("redirect_mismatch")
        return client


def _granted_by_trigger(person: Person, client_id: str) -> list[str]:
    """The scopes that the deployed trigger adds: the same code."""
    event = {
        "version": "2",
        "triggerSource": "TokenGeneration_HostedAuth",
        "userName": person.username,
        "callerContext": {"clientId": client_id},
        "request": {
            "userAttributes": {"sub": person.subject},
            "groupConfiguration": {"groupsToOverride": list(person.groups)},
        },
        "response": {},
    }
    overrides = pre_token(event, None)["response"]["claimsAndScopeOverrideDetails"]
    added: list[str] = overrides["accessTokenGeneration"]["scopesToAdd"]
    return added


def _fault_of_request(asked: Mapping[str, str], client: Client) -> str | None:
    if asked.get("response_type") != "code":
        return "unsupported_response_type"
    if asked.get("code_challenge_method") != "S256" or len(asked.get("code_challenge", "")) != 43:
        return "invalid_request"
    if not set(asked.get("scope", "openid").split()) <= set(client.scopes):
        return "invalid_scope"
    return None


def _form(text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True, errors="replace")
    form = dict(pairs)
    if len(form) != len(pairs):
        raise _Refused("invalid_request")
    return form


def _basic(authorization: str) -> tuple[str, str]:
    kind, _, value = authorization.partition(" ")
    try:
        name, colon, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise _Refused("invalid_client", 401) from None
    if kind.lower() != "basic" or not colon:
        raise _Refused("invalid_client", 401)
    return unquote_plus(name), unquote_plus(secret)


def _challenge(verifier: str) -> bytes:
    digest = hashlib.sha256(verifier.encode("utf-8", "replace")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=")


def _is_loopback(uri: str, paths: Sequence[str]) -> bool:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    return (
        plain
        and uri.isascii()
        and uri.isprintable()
        and parts.scheme == "http"
        and parts.hostname in ("localhost", "127.0.0.1")
        and parts.path in paths
    )


def _redirect(uri: str, answer: Mapping[str, str], state: str | None) -> Response:
    fields = {**answer, **({} if state is None else {"state": state})}
    location = f"{uri}?{urlencode(fields)}" if fields else uri
    return Response(303, b"", (("Location", location), *_NO_STORE))


def _page(status: int, body: str, *, redirect_uri: str | None = None) -> Response:
    # A browser holds the redirect that follows a form to form-action as well.
    target = ""
    if redirect_uri is not None:
        parts = urlsplit(redirect_uri)
        target = f" {parts.scheme}://{parts.netloc}"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'{target}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    document = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Local sign-in</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", policy), *_NO_STORE)
    return Response(status, document.encode("utf-8", "replace"), headers)


def _configuration(host: str) -> dict[str, object]:
    base = f"http://{host}"
    return {
        "issuer": ISSUER,
        "authorization_endpoint": f"{base}/oauth2/authorize",
        "token_endpoint": f"{base}/oauth2/token",
        "end_session_endpoint": f"{base}/logout",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
    }
