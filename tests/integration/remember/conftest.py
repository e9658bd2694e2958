"""A tenant and a desk whose vectors are cheap: equal texts equal, others unrelated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.probe import QuickEmbedder
from tests.integration.remember.desk import Desk
from tests.integration.world import new_world


@pytest.fixture
def desk(database: Any, tmp_path: Any) -> Iterator[Desk]:
    world = new_world(database, QuickEmbedder(), tmp_path)
    made = Desk(world, QuickEmbedder())
    yield made
    made.close()
    world.close()
