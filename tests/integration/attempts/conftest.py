"""A world per test whose attempts are worked on in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.attempts.harness import Remembering
from tests.integration.probe import QuickEmbedder
from tests.integration.world import new_world


@pytest.fixture
def remembering(database: Any, tmp_path: Path) -> Iterator[Remembering]:
    world = new_world(database, QuickEmbedder(), tmp_path)
    made = Remembering(world)
    yield made
    made.close()
    world.close()
