"""Times as every answer shows them. Apart from `render`, whose sanitizer most functions need not import."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(value: datetime | None) -> str | None:
    """RFC 3339 in UTC, to the microsecond."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
