"""The proof that bytes are gone: a search of every row of every table, past every policy, and of every file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql


def rows_that_hold(url: str, text: str) -> dict[str, int]:
    """Rows by table whose text, JSON, lexemes or bytes hold `text`; only tables with any. `url` is the owner's."""
    found = {}
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public' order by 1")
        for (table,) in tables.fetchall():
            # A row's text form shows bytea in hexadecimal, so the bytes are looked for in that form too.
            query = sql.SQL(
                "select count(*) from {table} t"
                " where position(lower(%s) in lower(t::text)) > 0 or position(%s in t::text) > 0"
            ).format(table=sql.Identifier(table))
            row = connection.execute(query, (text, text.encode().hex())).fetchone()
            if row is not None and row[0]:
                found[table] = row[0]
    return found


@contextmanager
def altered(url: str, seq: int) -> Iterator[None]:
    """That row of every audit chain says something else, for a while. `url` is a superuser's."""
    with psycopg.connect(url, autocommit=True) as connection:
        before = connection.execute(
            "select tenant_id, action from audit_event where seq = %s", (seq,)
        ).fetchall()
        connection.execute("update audit_event set action = 'nothing_happened' where seq = %s", (seq,))
        try:
            yield
        finally:
            for tenant, action in before:
                connection.execute(
                    "update audit_event set action = %s where tenant_id = %s and seq = %s",
                    (action, tenant, seq),
                )


def scrub(url: str) -> None:
    """What a database keeps of deleted rows goes: dead rows, samples of the planner, the write-ahead log.

    `url` is a superuser's, for the log is the cluster's. Every table is locked and written anew.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set statement_timeout = 0")
        # Samples of the planner are made anew; those of a table that is empty now would stay.
        connection.execute("delete from pg_statistic")
        connection.execute("analyze")
        connection.execute("vacuum (full)")
        # A segment that is used again keeps its old end.
        connection.execute("alter system set wal_recycle = off")
        connection.execute("select pg_reload_conf()")
        for _ in range(2):
            connection.execute("select pg_switch_wal()")
            connection.execute("checkpoint")
        connection.execute("alter system reset wal_recycle")
        connection.execute("select pg_reload_conf()")


def files_that_hold(folder: Path, text: str) -> list[Path]:
    """Files below the folder whose bytes hold `text` in UTF-8. Compressed values are not seen: search for a text that
    lies in values shorter than 2,000 bytes."""
    needle = text.encode()
    return sorted(path for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes())
