"""How a caller wants to be answered: `Prefer: wait=N` (RFC 7240) and `Request-Deadline`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import Instant

_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?', re.IGNORECASE)
MAX_HEADER = 1_000


def wait_of(prefer: str | None, default: timedelta) -> timedelta:
    """The first `wait` of the header in seconds; a preference that cannot be read is ignored, as the RFC says."""
    for preference in (prefer or "")[:MAX_HEADER].split(","):
        found = _WAIT.fullmatch(preference.split(";")[0].strip())
        if found:
            return timedelta(seconds=int(found[1]))
    return default


def request_deadline(value: str | None) -> datetime | None:
    """Raises Problem invalid_input for anything but an RFC 3339 date-time with an offset."""
    if value is None:
        return None
    try:
        found: datetime = TypeAdapter(Instant).validate_python(value[:MAX_HEADER])
    except ValidationError:
        error = FieldError("/header/Request-Deadline", "instant", "not an RFC 3339 date-time with an offset")
        raise Problem("invalid_input", [error]) from None
    return found
