"""A real PostgreSQL for the whole session; each test gets a database of its own, cloned from a template."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local.postgres import MIGRATOR, OWNER, Flavour, Server, temporary_server
from remembrancer.store.migrate import migrate

TEMPLATE = "migrated"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Database:
    """One test's database."""

    server: Server
    name: str

    def url(self, user: str = MIGRATOR) -> str:
        """For `psycopg.connect` as that role, and the form of REM_DATABASE_URL."""
        return self.server.url(user, self.name)

    def connect(self, user: str = MIGRATOR, **options: Any) -> psycopg.Connection:
        return psycopg.connect(self.url(user), prepare_threshold=None, **options)

    def superuser(self, **options: Any) -> psycopg.Connection:
        return self.connect(OWNER, autocommit=True, **options)


def migrate_template(url: str) -> None:
    """Applies the migrations to the template, as their owner."""
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """REM_TEST_POSTGRES=16 runs the suite on the version that Aurora has."""
    flavour: Flavour = "16" if os.environ.get("REM_TEST_POSTGRES") == "16" else "18"
    with temporary_server(flavour) as server:
        server.ensure_database(TEMPLATE)
        migrate_template(server.url(MIGRATOR, TEMPLATE))
        yield server


@pytest.fixture
def new_database(postgres: Server) -> Iterator[Callable[[], Database]]:
    """Makes fresh migrated databases, dropped at the end of the test."""
    made: list[Database] = []

    def make() -> Database:
        database = Database(postgres, f"test_{os.getpid()}_{next(_numbers)}")
        postgres.ensure_database(database.name, template=TEMPLATE)
        made.append(database)
        return database

    yield make
    for database in made:
        postgres.drop_database(database.name)


@pytest.fixture
def database(new_database: Callable[[], Database]) -> Database:
    """A fresh migrated database."""
    return new_database()


@pytest.fixture
def world(database: Database, embedder: Any, tmp_path: Path) -> Iterator[Any]:
    """A tenant with people and agents, its handlers wired to this test's database."""
    from tests.integration.world import new_world

    made = new_world(database, embedder, tmp_path)
    yield made
    made.close()
