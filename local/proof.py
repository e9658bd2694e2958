"""The proof that bytes are gone: a search of every row of every table, past every policy."""

from __future__ import annotations

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
