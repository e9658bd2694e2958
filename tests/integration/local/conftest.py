"""Fixtures of the local system's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.local.loops import Loop


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()
