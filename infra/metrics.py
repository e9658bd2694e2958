"""The metrics that functions emit (EMF) and the alarms read, as data: the handlers compare with it.

Powertools adds the dimension `service`, which is the function's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.manifest import FUNCTIONS, MACHINES


@dataclass(frozen=True)
class EmittedMetric:
    """A metric and the functions that emit it."""

    name: str
    purpose: str
    emitted_by: tuple[str, ...]


_SCREENING = (*(f.name for f in FUNCTIONS if any(route.text for route in f.routes)), "job_step")
"""Whoever takes text in, and the worker that judges staged records."""
SCREENED = EmittedMetric("Screened", "texts screened at a write", _SCREENING)
QUARANTINED = EmittedMetric("Quarantined", "texts quarantined at a write", _SCREENING)
CHAIN_BROKEN = EmittedMetric("ChainBroken", "audit chains found broken", ("audit",))
OUTBOX_AGE = EmittedMetric("OutboxAgeSeconds", "age of the oldest due alert, seconds", ("outbox_claim",))
RATE_LIMITED = EmittedMetric(
    "RateLimited",
    "requests beyond a rate or a quota",
    tuple(function.name for function in FUNCTIONS if function.routes),
)
SIGNATURE_REFUSED = EmittedMetric(
    "SignatureRefused", "signed requests whose signature did not hold", ("purge", "admin")
)
ATTEMPTS_BROKEN = EmittedMetric(
    "AttemptsBroken",
    "attempts of remember that ended by a fault of ours or of the provider",
    ("remember_failed",),
)

EMITTED: tuple[EmittedMetric, ...] = (
    SCREENED,
    QUARANTINED,
    CHAIN_BROKEN,
    OUTBOX_AGE,
    RATE_LIMITED,
    SIGNATURE_REFUSED,
    ATTEMPTS_BROKEN,
)

ENDING_ATTEMPTS = frozenset(
    task for machine in MACHINES if machine.name == "remember" for task in machine.tasks
) - {"remember_failed"}
"""Steps that leave by an exception whenever an attempt ends otherwise than well: called off by its submitter, refused,
out of time. Their machine catches it; what was a fault is told by ATTEMPTS_BROKEN."""
