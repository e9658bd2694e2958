"""Advisory locks. Apart from `memories`, whose terms and models those who only lock need not import."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from remembrancer.store.database import Unit


def lock(unit: Unit, kind: str, keys: Collection[bytes], *, shared: bool = False) -> None:
    """Advisory locks until the end of the transaction, always taken in the order of their numbers.

    Order of kinds everywhere: space, target, content, entity, relationship (model.md).
    """
    numbers = sorted(
        {
            int.from_bytes(
                hashlib.sha256(kind.encode() + unit.tenant_id.bytes + key).digest()[:8], "big", signed=True
            )
            for key in keys
        }
    )
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    unit.run(f"select {function}(n) from unnest(%(numbers)s::bigint[]) as n", {"numbers": numbers})
