"""What was said to the assessor and what it said: protected, for auditors, seven days long; each look is audited."""

from __future__ import annotations

from typing import Any

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.instants import instant
from remembrancer.store import attempts
from remembrancer.store.database import Row, Unit


def diagnostics(services: Services, call: Call, attempt: str) -> dict[str, Any]:
    """Any attempt of the tenant. Texts are shown as recall shows them: this reader's rights decide on PII."""
    from remembrancer.flows.render import clean  # the sanitizer: the other routes of this function need none

    def look(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "audit")
        row = attempts.get(unit, public_id("att", attempt))
        if row is None or row["state"] == "erased":
            raise Problem("not_found")
        exchanges = attempts.exchanges(unit, row["attempt_id"])
        unit.audit(
            "diagnostics_read",
            format_id("att", row["attempt_id"]),
            exchanges=len(exchanges),
            correlation_id=call.correlation_id,
        )
        reveal = unit.principal.sees_pii
        return {
            **_attempt(row),
            "exchanges": [clean(_exchange(exchange), reveal_pii=reveal) for exchange in exchanges],
        }

    return services.database.write(call.credential, look)


def _attempt(row: Row) -> dict[str, Any]:
    return {
        "attempt_id": format_id("att", row["attempt_id"]),
        "number": row["number"],
        "state": row["state"],
        "submitted_by": format_id("prin", row["principal_id"]),
        "entered_at": instant(row["entered_at"]),
        "deadline": instant(row["deadline"]),
        "finished_at": instant(row["finished_at"]),
        "correlation_id": row["correlation_id"],
    }


def _exchange(row: Row) -> dict[str, Any]:
    """`asked` and `answered` are cut to 64 KiB; the byte counts are of the whole."""
    return {
        "turn": row["turn"],
        "outcome": row["outcome"],
        "issues": row["issues"],
        "asked": row["asked"],
        "asked_bytes": row["asked_bytes"],
        "answered": row["answered"],
        "answered_bytes": row["answered_bytes"],
        "model": row["model"],
        "input_tokens": row["input_tokens"],
        "output_tokens": row["output_tokens"],
        "at": instant(row["at"]),
        "expires_at": instant(row["expires_at"]),
    }
