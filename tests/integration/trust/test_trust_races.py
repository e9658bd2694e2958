"""What a second hostile review of the trust issue found."""

from __future__ import annotations

import base64
import importlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remembrancer.domain.import_requests import RetractRequest
from remembrancer.domain.requests import IngestRequest
from remembrancer.flows import curate
from remembrancer.flows.ingest import ingest
from remembrancer.flows.sweep import sweep
from tests.integration.probe import QuickEmbedder, call_of, scratch_world
from tests.integration.trust.erasing import done, dsar, race, with_bucket, work
from tests.integration.world import ADMIN, AGENT, AUDITOR, LambdaContext, World, proxy_event, wired

WORKS = [{"subject": "Ana", "predicate": "works_at", "object": "Globex"}]


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def retracted(memory_id: str) -> Callable[[World], int]:
    request = RetractRequest(version=1)
    return lambda own: (
        curate.retract(own.services("curate"), call_of(AGENT, "POST retract"), memory_id, request).status
    )


@pytest.fixture
def lingering(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a retraction has closed what it closes; it commits a while later."""
    closed = threading.Event()
    real = curate.curation.retract

    def slow(unit: Any, row: Any) -> int:
        done = real(unit, row)
        closed.set()
        threading.Event().wait(0.5)
        return done

    monkeypatch.setattr(curate.curation, "retract", slow)
    return closed


def believed(world: World) -> list[bool]:
    rows = world.sql("select superseded_at is null as believed from relationship order by version")
    return [row["believed"] for row in rows]


def test_two_retractions_at_once_leave_no_edge_that_nothing_supports(
    world: World, lingering: threading.Event
) -> None:
    ids = [
        world.ingest(text, relations=WORKS)["memory_id"]
        for text in ("Ana works at Globex now.", "Yes, Ana is with Globex.")
    ]
    assert race(world, *map(retracted, ids)) == [200, 200]
    assert believed(world) == [False]


def test_an_edge_that_gets_a_support_during_a_retraction_is_believed(
    world: World, lingering: threading.Event
) -> None:
    memory_id = world.ingest("Ana works at Globex now.", relations=WORKS)["memory_id"]
    again = IngestRequest.model_validate({"content": "Yes, Ana is with Globex.", "relations": WORKS})

    def said_again(own: World) -> int:
        assert lingering.wait(5)
        return ingest(own.services("ingest"), call_of(AGENT, "POST /v1/ingest"), again).status

    assert race(world, retracted(memory_id), said_again) == [200, 201]
    assert believed(world)[-1]


def test_a_request_whose_job_nobody_finished_in_its_time_has_failed_and_is_answered_by_another(
    world: World,
) -> None:
    with_bucket(world)
    asked = {"action": "purge", "data_subject": "ana"}
    world.ingest("Ana works at Globex.", data_subjects=["ana"])
    first = done(dsar(world, **asked), 202)
    world.sql("update job set expires_at = now() - interval '1 minute'")
    work(world)
    status = f"/v1/dsar/{first['dsar_id']}"
    assert world.call(ADMIN, "GET", status).json["status"] == "failed"
    assert world.sql("select count(*) as n from outbox where kind = 'job_failed'") == [{"n": 1}]
    assert world.call(ADMIN, "GET", status + "/certificate").code == "not_found"
    second = done(dsar(world, **asked), 202)
    work(world, second["job_id"])
    assert world.call(ADMIN, "GET", status).json["closed_by"] == second["dsar_id"]


def test_the_last_day_of_the_calendar_is_no_day_of_reads(world: World) -> None:
    reply = world.call(AUDITOR, "GET", "/v1/pii-reads?day=9999-12-31")
    assert (reply.status, reply.code) == (422, "invalid_input"), reply.text


def test_an_alert_that_nobody_took_is_not_kept_for_ever(world: World) -> None:
    world.propose("Ana works at Globex.")
    [alert] = world.sql("select delivery_id from outbox where kind = 'pending'")
    given_up = (
        "update outbox set attempts = 20, claimed_until = now() - interval '%s days' where delivery_id = '%s'"
    )
    world.sql(given_up % (6, alert["delivery_id"]))
    assert sweep(world.services("sweep"))["outbox"] == 0
    world.sql(given_up % (8, alert["delivery_id"]))
    assert sweep(world.services("sweep"))["outbox"] == 1


def test_a_signed_body_that_came_encoded_keeps_its_bytes(world: World) -> None:
    path, text = "/v1/settings", json.dumps({"four_eyes": True}, indent=1)
    headers = {"Content-Type": "application/json"} | world.sign("PATCH", path, text)
    event = proxy_event(ADMIN, "PATCH", path, path, base64.b64encode(text.encode()).decode(), headers)
    with wired(world, "admin"):
        handler = importlib.import_module("functions.admin.handler").handler
        reply = handler({**event, "isBase64Encoded": True}, LambdaContext("admin"))
    assert reply["statusCode"] == 200, reply["body"]
