"""Cursors of the listing routes: opaque, signed, bound to the tenant, the listing and its filters.

A cursor holds the keyset position of the last row shown. Its signature keeps a client from making one up,
and from carrying one to another tenant, route or filter, where the position would mean something else.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from remembrancer.domain.canonical import canonical_json, encode
from remembrancer.domain.ports import MacKeys
from remembrancer.domain.problems import FieldError, Problem

Scalar = str | int | bool | None

MAX_CHARS = 4096
_MAC_BYTES = 16
_PURPOSE = "cursor"


class Cursors:
    """Makes and reads cursors with the keys of a tenant."""

    def __init__(self, keys: MacKeys) -> None:
        self._keys = keys

    def encode(
        self, tenant: UUID, listing: str, filters: Mapping[str, object], position: Sequence[Scalar]
    ) -> str:
        """A URL-safe text. `listing` names the route, `filters` are JSON values, all that selects rows."""
        payload = canonical_json(list(position)).encode()
        signed = self._mac(tenant, listing, filters, payload) + payload
        return _text(signed)

    def decode(
        self, tenant: UUID, listing: str, filters: Mapping[str, object], cursor: str | None
    ) -> list[Scalar] | None:
        """The position, None at the start. Raises Problem invalid_input at /cursor unless made for this listing."""
        if cursor is None:
            return None
        if len(cursor) > MAX_CHARS:
            raise _invalid()
        try:
            signed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            raise _invalid() from None
        # The decoder takes "/" for "_", skips what is no base64 and drops unused bits: one position, one spelling.
        if _text(signed) != cursor:
            raise _invalid()
        mac, payload = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(tenant, listing, filters, payload)):
            raise _invalid()
        position: list[Scalar] = json.loads(payload)
        return position

    def _mac(self, tenant: UUID, listing: str, filters: Mapping[str, object], payload: bytes) -> bytes:
        message = encode([("listing", listing), ("filters", canonical_json(filters)), ("position", payload)])
        return self._keys.mac(_PURPOSE, tenant, message)[:_MAC_BYTES]


def _text(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).decode().rstrip("=")


def _invalid() -> Problem:
    return Problem(
        "invalid_input", [FieldError("/cursor", "invalid_cursor", "Not a cursor of this listing.")]
    )


def instant_and_id(position: Sequence[Scalar] | None) -> tuple[datetime, UUID] | None:
    """A keyset position of (time, id)."""
    if position is None:
        return None
    at, row_id = position
    return datetime.fromisoformat(str(at)), UUID(str(row_id))
