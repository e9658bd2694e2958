"""Advisory locks. Apart from `memories`, whose terms and models those who only lock need not import."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from remembrancer.store.database import Unit


def lock(unit: Unit, kind: str, keys: Collection[bytes], *, shared: bool = False) -> None:
    """Advisory locks until the end of the transaction, always taken in the order of their numbers.

    Order of kinds everywhere: space, target, content, entity, relationship (model.md).
    """
    lock_in_order(unit, [(kind, keys, shared)])


def lock_in_order(unit: Unit, wanted: Sequence[tuple[str, Collection[bytes], bool]]) -> None:
    """(kind, keys, shared) of several kinds in one statement, kind after kind."""
    numbers: list[int] = []
    ways: list[bool] = []
    for kind, keys, shared in wanted:
        own = sorted({_number(unit, kind, key) for key in keys})
        numbers += own
        ways += [shared] * len(own)
    if numbers:
        unit.run(
            """
            select case when shared then pg_advisory_xact_lock_shared(n) else pg_advisory_xact_lock(n) end
            from unnest(%(numbers)s::bigint[], %(ways)s::boolean[]) as wanted (n, shared)
            """,
            {"numbers": numbers, "ways": ways},
        )


def _number(unit: Unit, kind: str, key: bytes) -> int:
    digest = hashlib.sha256(kind.encode() + unit.tenant_id.bytes + key).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
