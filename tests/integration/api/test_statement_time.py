"""One statement's time fits its function: a request is answered in time, counting a large tenant's terms is not cut
short after a request's time, again and again."""

from __future__ import annotations

from uuid import UUID

import pytest

from functions import manifest
from infra.environment import constants_for
from remembrancer.api import wiring
from remembrancer.settings import Settings
from tests.integration.conftest import Database

REQUEST_S = 25
SCHEDULED = {schedule.target for schedule in manifest.SCHEDULES}


@pytest.mark.parametrize(
    "entry", [entry for entry in manifest.FUNCTIONS if entry.db_role], ids=lambda entry: entry.name
)
def test_a_statement_may_take_what_its_function_has(
    database: Database, entry: manifest.Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**constants_for(entry), "REM_DATABASE_URL": database.url(entry.db_role or "")}
    monkeypatch.setattr(wiring, "settings", lambda: Settings.read(env))
    services = wiring.services.__wrapped__()
    row = services.database.job(
        UUID(int=1),
        lambda unit: unit.row("select setting::int as ms from pg_settings where name = 'statement_timeout'"),
        audited=False,
    )
    services.database.close()
    assert row is not None
    allowed = entry.timeout_s // 2 if entry.name in SCHEDULED else REQUEST_S
    assert row["ms"] == allowed * 1000 and allowed < entry.timeout_s
