"""Forward-only SQL migrations with checksums, under an advisory lock."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg
import psycopg.rows

_LOCK = 7_265_001  # any constant: two migrators must meet on it


class MigrationChanged(Exception):
    """A file that was applied reads otherwise now."""


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """All migrations of this package, in order. File names are `0001_subject.sql`."""
    files = sorted(
        (f for f in (resources.files(__package__) / "migrations").iterdir() if f.name.endswith(".sql")),
        key=lambda f: f.name,
    )
    return [Migration(int(f.name[:4]), f.name[5:-4], f.read_text(encoding="utf-8")) for f in files]


def migrate(connection: psycopg.Connection[Any]) -> list[int]:
    """Apply what is missing, each file in a transaction of its own; the versions applied.

    `connection` is in autocommit mode, as the migration role. Raises MigrationChanged.
    """
    connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
    try:
        connection.execute(
            "create table if not exists schema_migration (version int primary key, name text not null,"
            " checksum text not null, applied_at timestamptz not null default now())"
        )
        cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
        done: dict[int, str] = dict(
            cursor.execute("select version, checksum from schema_migration").fetchall()
        )
        applied = []
        for migration in migrations():
            if migration.version in done:
                if done[migration.version] != migration.checksum:
                    raise MigrationChanged(f"{migration.version:04}_{migration.name}")
                continue
            with connection.transaction():
                # The file is ours; psycopg wants a literal, which a file cannot be.
                connection.execute(migration.sql.encode())
                connection.execute(
                    "insert into schema_migration (version, name, checksum) values (%s, %s, %s)",
                    (migration.version, migration.name, migration.checksum),
                )
            applied.append(migration.version)
        return applied
    finally:
        connection.execute("select pg_advisory_unlock(%s)", (_LOCK,))


def applied(connection: psycopg.Connection[Any]) -> int:
    """The newest version applied."""
    cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
    row = cursor.execute("select max(version) from schema_migration").fetchone()
    version: int = row[0] if row is not None else 0
    return version
