from __future__ import annotations

import json

from tests.integration.attempts.harness import Remembering, ada


def test_it_is_stored_and_recalled(remembering: Remembering) -> None:
    outcome = remembering.remember(ada())
    document = json.loads(outcome.body)
    print(document)
    assert outcome.status == 200
