"""One digest over a day's reads of personal data: what the audit chain keeps of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from remembrancer.domain.canonical import encode


def day_digest(reads: Iterable[Mapping[str, Any]]) -> bytes:
    """SHA-256 over the canonical encoding of each read in turn: {read_id, principal_id, at, through, rows_shown}."""
    whole = hashlib.sha256()
    for read in reads:
        whole.update(
            encode(
                {
                    "read": read["read_id"].bytes,
                    "principal": read["principal_id"].bytes,
                    "at": read["at"],
                    "through": read["through"],
                    "rows": list(read["rows_shown"]),
                }
            )
        )
    return whole.digest()
