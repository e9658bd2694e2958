"""Fixtures that more than one kind of test shares."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from layers.model.build import ensure
from remembrancer.adapters.embedding import OnnxEmbedder

# No deadline: a machine under load is no fault of the code (what must be fast is tested as such). CI tries the
# same examples every time, people try new ones.
settings.register_profile("people", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "people")


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    """The real model, built first when this checkout has none."""
    return OnnxEmbedder(ensure(), threads=1)
