"""The decay report of every tenant of this machine's database, as files to open in a browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from remembrancer.api.wiring import new_id
from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.decay_report import to_html
from remembrancer.flows.reports import decay_document
from remembrancer.store.database import Database, connect


def write(database_url: str, folder: Path) -> list[Path]:
    """`{tenant}.html` and `.json` in the folder; the pages. The scheduled function keeps its own in S3."""
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(connect(database_url), new_id)
    pages = []
    try:
        for tenant_id, settings in database.tenants():
            document = database.job(tenant_id, partial(decay_document, settings=settings), audited=False)
            page = folder / f"{tenant_id}.html"
            page.write_text(to_html(document), encoding="utf-8")
            page.with_suffix(".json").write_text(canonical_json(document), encoding="utf-8")
            pages.append(page)
    finally:
        database.close()
    return pages
