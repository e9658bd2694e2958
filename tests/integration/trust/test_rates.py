"""Rates: every route counts, a principal and a tenant have their own measure, a refusal says when to come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from functions import manifest
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.term_stats import recount
from tests.integration.probe import QuickEmbedder, patch_settings, routes, scratch_world, with_cursor
from tests.integration.samples import SAMPLES, path_with
from tests.integration.trust import erasing
from tests.integration.world import (
    ADMIN,
    AGENT,
    AUDITOR,
    ISSUER,
    OTHER_AGENT,
    OUTSIDER,
    READER,
    REVIEWER,
    Person,
    Reply,
    World,
    connect_as,
    new_world,
)

PEOPLE = {"review": REVIEWER, "audit": AUDITOR, "admin": ADMIN}
NIL = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def drain(world: World, principal: str | None = None, tokens: float = -1000) -> None:
    """Of one principal, or of the tenant."""
    of = NIL if principal is None else principal.removeprefix("prin_")
    world.sql(
        "insert into rate_bucket values (%s, %s, 'requests', %s, now(), null)"
        " on conflict (tenant_id, principal_id, what) do update set tokens = excluded.tokens, refilled_at = now()",
        world.tenant_id, of, tokens,
    )  # fmt: skip


def tokens(world: World, principal: str | None = None, what: str = "requests") -> float:
    of = NIL if principal is None else principal.removeprefix("prin_")
    [row] = world.sql("select tokens from rate_bucket where principal_id = %s and what = %s", of, what)
    return float(row["tokens"])


def test_no_route_that_reaches_data_can_leave_it_out(world: World) -> None:
    """Walks the manifest: with an empty bucket nothing of the tenant is answered, nor changed."""
    for person in (ADMIN, AGENT, AUDITOR, READER, REVIEWER):
        drain(world, world.principals[person.name])
    for _, route in routes():
        person = PEOPLE.get(route.scopes[0], AGENT) if route.scopes else READER
        body = SAMPLES.get(f"{route.method} {route.path}")
        path = path_with(route.path)
        reply = world.call(person, route.method, path, body, signed=route.signed)
        if route.path == "/v1/openapi.json":  # reads a file and no data
            assert reply.status == 200
            continue
        assert (reply.status, reply.code) == (429, "rate_limited"), (route.path, reply.text)
        assert 1 <= int(reply.headers["Retry-After"]) <= 11 and reply.json["retryable"] is True
    assert world.sql("select count(*) as n from memory")[0]["n"] == 0


def test_a_request_costs_one_token_and_one_statement(world: World) -> None:
    statements: list[str] = []
    with_cursor(world, "ingest", statements.append)
    world.ingest("First.")
    before = tokens(world, world.principals[AGENT.name]), tokens(world)
    statements.clear()
    world.call(AGENT, "POST", "/v1/ingest", {"content": "Several transactions."}, key="k")
    assert [s for s in statements if "rate_take" in s] == [statements[0]]
    after = tokens(world, world.principals[AGENT.name]), tokens(world)
    assert after[0] <= before[0] + 100 and after[0] <= 999 and after[1] <= 9_999


def test_the_defaults_in_sql_are_those_of_the_settings(world: World) -> None:
    world.recall("Anything?")
    defaults = TenantSettings()
    assert tokens(world, world.principals[READER.name]) == defaults.principal_burst - 1
    assert tokens(world) == defaults.tenant_burst - 1
    drain(world, world.principals[READER.name], tokens=-defaults.principal_rate * 5.5)
    reply = world.call(READER, "POST", "/v1/recall", {"query": "Anything?"})
    assert reply.headers["Retry-After"] == "6"
    drain(world, tokens=-defaults.tenant_rate * 5.5)
    reply = world.call(AGENT, "POST", "/v1/recall", {"query": "Anything?"})
    assert (reply.code, reply.headers["Retry-After"]) == ("rate_limited", "6")


def test_a_principal_is_held_back_alone_and_comes_back(world: World) -> None:
    patch_settings(world, principal_rate=1, principal_burst=10)
    seen = [world.call(READER, "GET", "/v1/memories").status for _ in range(12)]
    assert seen[:10] == [200] * 10 and seen[-1] == 429
    assert world.call(AGENT, "GET", "/v1/memories").status == 200
    alerts = world.sql("select target from outbox where kind = 'rate_limited'")
    assert [row["target"] for row in alerts] == [world.principals[READER.name]], (
        "one alert, not one a refusal"
    )
    world.sql("update rate_bucket set refilled_at = refilled_at - interval '3 seconds'")
    assert [world.call(READER, "GET", "/v1/memories").status for _ in range(3)] == [200] * 3


def test_a_tenant_is_held_back_as_a_whole_and_no_other(world: World, tmp_path: Any) -> None:
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    drain(world)
    for person in (AGENT, OTHER_AGENT, REVIEWER):
        assert world.call(person, "GET", "/v1/memories").code == "rate_limited"
    assert other.call(AGENT, "GET", "/v1/memories").status == 200
    alerts = world.sql("select tenant_id::text as tenant, target from outbox where kind = 'rate_limited'")
    assert alerts == [{"tenant": world.tenant_id, "target": world.tenant_id}]
    other.close()


def test_unknown_credentials_have_no_bucket(world: World) -> None:
    stranger = AGENT.__class__(**{**AGENT.__dict__, "subject": "nobody"})
    assert world.call(stranger, "GET", "/v1/memories").code == "forbidden"
    assert world.sql("select count(*) as n from rate_bucket")[0]["n"] == 0


def test_no_role_fills_a_bucket(world: World) -> None:
    world.recall("Anything?")
    for function in manifest.FUNCTIONS:
        if function.db_role in (None, "rem_migrate"):
            continue
        with connect_as(world.database, function.db_role) as connection:
            for statement in ("select from rate_bucket", "update rate_bucket set tokens = 1e9"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


def test_the_first_requests_of_a_principal_at_once_are_all_let_in(world: World) -> None:
    def take(start: threading.Barrier) -> int:
        with connect_as(world.database, "rem_recall") as connection:
            start.wait()
            row = connection.execute("select rate_take(%s, %s) as wait", [ISSUER, READER.subject]).fetchone()
        return int(row["wait"]) if row is not None else -1

    for _ in range(15):
        world.sql("delete from rate_bucket")
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(take, [start] * 4)) == [0] * 4


def test_concurrent_requests_share_one_bucket(world: World) -> None:
    patch_settings(world, principal_rate=1, principal_burst=20)

    def take(_: int) -> int:
        with connect_as(world.database, "rem_recall") as connection:
            waits = [
                connection.execute("select rate_take(%s, %s) as wait", [ISSUER, READER.subject]).fetchone()
                for _ in range(10)
            ]
        return sum(row is not None and row["wait"] == 0 for row in waits)

    with ThreadPoolExecutor(6) as pool:
        taken = sum(pool.map(take, range(6)))
    assert 20 <= taken <= 32, taken  # one more for each second that it took


def test_the_bytes_of_a_day_are_a_quota_of_the_principal_and_of_the_tenant(
    world: World, tmp_path: Any
) -> None:
    patch_settings(world, principal_daily_bytes=10_000, tenant_daily_bytes=18_000)
    text = "A note on bees. " * 250

    def send(person: Person) -> Reply:
        return world.call(person, "POST", "/v1/ingest", {"content": text})

    assert [send(AGENT).status for _ in range(3)] == [201, 200, 429]
    refused = send(AGENT)
    assert refused.json["errors"][0]["code"] == "principal_daily_bytes" and refused.json["retryable"] is True
    # Two of three bytes a day: more than half a day until as many are there again.
    assert 10_000 < int(refused.headers["Retry-After"]) < 86_400
    assert world.recall("Anything?") is not None and world.call(AGENT, "GET", "/v1/memories").status == 200
    assert send(OTHER_AGENT).status == 200 and send(OUTSIDER).status in (403, 429)
    whole = send(OTHER_AGENT)
    assert (whole.status, whole.json["errors"][0]["code"]) == (429, "tenant_daily_bytes")
    alerts = world.sql("select kind, target from outbox where kind = 'quota_exceeded' order by target")
    assert {row["target"] for row in alerts} == {world.principals[AGENT.name], world.tenant_id}
    # A day later it is there again.
    world.sql("update rate_bucket set refilled_at = refilled_at - interval '24 hours'")
    assert send(AGENT).status == 200
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    assert other.call(AGENT, "POST", "/v1/ingest", {"content": text}).status == 201
    other.close()


def test_what_is_larger_than_a_day_is_let_in_once_a_day(world: World) -> None:
    patch_settings(world, principal_daily_bytes=10_000)
    body = {"content": "A long note on bees. " * 900}
    assert [world.call(AGENT, "POST", "/v1/ingest", body).status for _ in range(2)] == [201, 429]


def test_a_full_store_takes_no_more_text_but_is_read_and_erased(world: World) -> None:
    memory = world.ingest("The last one.")["memory_id"]
    patch_settings(world, tenant_passages=100)
    recount(world.services("term_stats"))
    assert world.ingest("Still room.")["status"] == "stored"
    world.sql("update space_stats set stored = 100")
    reply = world.call(AGENT, "POST", "/v1/ingest", {"content": "No more room."})
    assert (reply.status, reply.json["errors"][0]["code"]) == (429, "tenant_passages")
    assert world.call(READER, "GET", f"/v1/memories/{memory}").status == 200
    assert erasing.done(erasing.purge(world, memory_ids=[memory]))["erased"] == [memory]


def test_the_defaults_of_the_quotas_in_sql_are_those_of_the_settings(world: World) -> None:
    world.ingest("One.")
    defaults = TenantSettings()
    taken = defaults.principal_daily_bytes - tokens(world, world.principals[AGENT.name], "bytes")
    assert 0 < taken < 100 and defaults.tenant_daily_bytes - tokens(world, None, "bytes") == taken
    world.sql("insert into space_stats select tenant_id, space_id, %s, 0, 0, 0, now() from space"
              " where kind = 'team_shared'", defaults.tenant_passages - 1)  # fmt: skip
    assert world.ingest("Two.")["status"] == "stored"
    world.sql("update space_stats set stored = stored + 1")
    assert world.call(AGENT, "POST", "/v1/ingest", {"content": "Three."}).code == "rate_limited"
