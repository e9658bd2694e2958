"""What the tests of a restore share: an older database, and the operator's commands on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from functions.migrate import handler as migrate
from local import recover
from local.runtime import Invocation
from tests.integration.conftest import Database
from tests.integration.world import LambdaContext, World, wired


@contextmanager
def backup_of(world: World, postgres: Any) -> Iterator[Callable[[], World]]:
    """A backup is taken when it is called first; the world of the restored backup when it is called again."""
    name = f"{world.database.name}_backup"
    made: list[World] = []

    def step() -> World:
        world.close()
        if not made:
            postgres.ensure_database(name, template=world.database.name)
            made.append(World(Database(postgres, name), world.embedder, world.macs, world.tenant_id,
                              dict(world.principals), world.signing))  # fmt: skip
        return made[0]

    yield step
    for one in made:
        one.close()
    postgres.drop_database(name)


def operate(world: World, event: dict[str, Any]) -> Any:
    with wired(world, "migrate"):
        return migrate.handler(event, LambdaContext("migrate"))


def recovered(world: World, events: list[dict[str, Any]]) -> tuple[int, list[Any]]:
    """The command's exit code, and what the function answered to each event."""
    told = []

    async def invoke(name: str, payload: bytes) -> Invocation:
        assert name == "migrate"
        told.append(operate(world, json.loads(payload)))
        return Invocation(json.dumps(told[-1]).encode())

    return asyncio.run(recover.here(invoke, events)), told
