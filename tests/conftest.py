"""Fixtures that more than one kind of test shares."""

from __future__ import annotations

import pytest

from layers.model.build import ensure
from remembrancer.adapters.embedding import OnnxEmbedder


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    """The real model, built first when this checkout has none."""
    return OnnxEmbedder(ensure(), threads=1)
