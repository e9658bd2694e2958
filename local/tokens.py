"""Verifies access tokens as API Gateway's Cognito authorizer does, and shows claims as it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

ALGORITHMS: Final = ["RS256", "ES256"]

Claims = Mapping[str, Any]


class InvalidToken(Exception):
    """Not a valid access token of this issuer. The text says why, for the log of the gateway alone."""


class TokenVerifier:
    """Signature, issuer, times (no leeway, as Cognito), `token_use` access, a known client."""

    def __init__(
        self,
        keys: Callable[[], KeySet],
        issuer: str,
        clients: Callable[[], Collection[str]],
        now: Callable[[], float],
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._clients = clients
        self._now = now

    def verify(self, authorization: str | None) -> Claims:
        """The claims of `Bearer TOKEN`, or of the bare token, which the real one takes too.

        Raises InvalidToken.
        """
        if not authorization:
            raise InvalidToken("no token")
        token = authorization[7:].strip() if authorization[:7].lower() == "bearer " else authorization
        try:
            claims = jwt.decode(token, self._keys(), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError) as error:  # hostile input meets a lenient parser
            raise InvalidToken(f"unreadable: {type(error).__name__}") from None
        self._check(claims)
        return claims

    def _check(self, claims: Claims) -> None:
        now = self._now()
        if _time(claims, "exp") <= now:
            raise InvalidToken("expired")
        if "nbf" in claims and _time(claims, "nbf") > now:
            raise InvalidToken("not valid yet")
        if claims.get("iss") != self._issuer:
            raise InvalidToken("foreign issuer")
        if claims.get("token_use") != "access":
            raise InvalidToken("not an access token")
        client = claims.get("client_id")
        if not isinstance(client, str) or client not in self._clients():
            raise InvalidToken("unknown client")
        if not isinstance(claims.get("sub"), str) or not isinstance(claims.get("scope"), str):
            raise InvalidToken("no subject or no scope")


def _time(claims: Claims, name: str) -> int | float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidToken(f"{name} is no number")
    return value


def authorizer_claims(claims: Claims) -> dict[str, str]:
    """`requestContext.authorizer.claims` of a REST API: every value a string, times in words, lists joined
    by commas (HTTP APIs write `[a b]`)."""
    return {name: _claim(name, value) for name, value in claims.items()}


def _claim(name: str, value: object) -> str:
    if name in ("exp", "iat") and isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
