"""A bundle holds what was remembered: values as they were written, or in the unit that they are kept in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.integration.admission.conftest import Bucket, step
from tests.integration.attempts.harness import Remembering
from tests.integration.world import REVIEWER

VALUES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "has_weight": (
        {"type": "number", "value": "7.50", "unit": "kg"},
        {"type": "number", "value": "7.5", "unit": "kilogram"},
    ),
    "has_length": (
        {"type": "number", "value": 2, "unit": " furlongs "},
        {"type": "number", "value": "2", "unit": "furlongs"},
    ),
    "has_size": ({"type": "number", "value": "1e3"}, {"type": "number", "value": "1e3"}),
    "is_open": ({"type": "boolean", "value": True}, {"type": "boolean", "value": "true"}),
    "began_on": ({"type": "date", "value": "2020-02-29"}, {"type": "date", "value": "2020-02-29"}),
    "began_at": (
        {"type": "date_time", "value": "2020-02-29T01:02:03.000004+05:00"},
        {"type": "date_time", "value": "2020-02-29T01:02:03.000004+05:00"},
    ),
    "is_called": ({"type": "string", "value": " x" * 200}, {"type": "string", "value": " x" * 200}),
}


def test_every_kind_of_value(remembering: Remembering) -> None:
    """One number with a unit, and no bundle of the tenant was ever written."""
    world, bucket = remembering.wire(), Bucket()
    world._open["job_step"] = replace(world.services("job_step"), objects=bucket)
    body = {
        "idempotency_key": "values",
        "target_space": "team_shared",
        "evidence": [{"content": "Everything about the barn."}],
        "relationships": [
            {
                "ref": predicate,
                "subject": {"name": "Barn"},
                "predicate": {"proposed_key": predicate},
                "object": {"value": said},
                "evidence_indices": [0],
            }
            for predicate, (said, _) in VALUES.items()
        ],
    }
    assert remembering.remember(body).status == 200
    asked = world.call(REVIEWER, "POST", "/v1/export", {"format": "ump"})
    step(world, {"tenant_id": world.tenant_id, "job_id": str(asked.json["job_id"]).removeprefix("job_")})
    [line] = bucket.objects.popitem()[1].decode().splitlines()
    relations = json.loads(line)["body"]["structured"]["relations"]
    assert {edge["predicate"]: edge["value"] for edge in relations} == {
        predicate: written for predicate, (_, written) in VALUES.items()
    }
