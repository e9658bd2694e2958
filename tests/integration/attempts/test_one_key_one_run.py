"""One key is one run: a hundred at once, waiters of a failure, takeover after the lease, zombies, late retries."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.ids import parse_id
from remembrancer.domain.ports import MachineUnavailable, ProviderUnavailable
from remembrancer.domain.problems import Problem
from remembrancer.flows.remember_end import abandon
from remembrancer.flows.remember_finish import finish
from tests.integration.attempts.harness import Killed, Remembering, ada
from tests.integration.probe import changed, counts
from tests.integration.world import AGENT


def in_background(remembering: Remembering) -> list[threading.Thread]:
    """The workflow as it is: beside the call that began it."""
    threads: list[threading.Thread] = []

    def begin(attempt_id: UUID) -> None:
        thread = threading.Thread(target=remembering.run, args=(attempt_id,))
        threads.append(thread)
        thread.start()

    remembering.begin = begin
    return threads


def test_a_hundred_calls_at_once_are_one_run_and_a_hundred_equal_answers(remembering: Remembering) -> None:
    threads = in_background(remembering)
    barrier = threading.Barrier(100)

    def call(_: int) -> tuple[int, str]:
        barrier.wait()
        outcome = remembering.remember(ada(), wait_s=20)
        return outcome.status, outcome.body

    # A hundred environments of a function are a hundred connections: as many as this server lets in.
    with ThreadPoolExecutor(100) as pool:
        answers = set(pool.map(call, range(100)))
    for thread in threads:
        thread.join()
    assert len(answers) == 1 and next(iter(answers))[0] == 200
    assert len(remembering.started) == 1 and len(remembering.assessor.calls) == 1
    assert len(remembering.world.sql("select 1 from memory")) == 1
    assert len(remembering.world.sql("select 1 from occurrence")) == 1


def test_who_waits_gets_the_owners_failure_and_starts_nothing(remembering: Remembering) -> None:
    """It was there while the run went on: the failure is its answer, though a later call would run again."""
    waiting = threading.Event()

    def slow_and_down(conversation: Any) -> Any:
        assert waiting.wait(10)
        time.sleep(0.3)
        raise ProviderUnavailable("unavailable", "test")

    remembering.assessor.script = [slow_and_down]
    threads = in_background(remembering)
    with ThreadPoolExecutor(3) as pool:
        owner = pool.submit(remembering.remember, ada(), wait_s=10)
        while not remembering.started:
            time.sleep(0.01)
        waiters = [pool.submit(remembering.remember, ada(), wait_s=10) for _ in range(2)]
        time.sleep(0.2)
        waiting.set()
        bodies = {future.result().body for future in (owner, *waiters)}
    for thread in threads:
        thread.join()
    [body] = bodies
    assert json.loads(body)["code"] == "provider_unavailable"
    assert len(remembering.started) == 1 and len(remembering.assessor.calls) == 1
    remembering.begin = None
    later = remembering.remember(ada())
    assert later.status == 200 and len(remembering.started) == 2


def test_a_call_that_came_before_the_failure_does_not_run_again(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw no attempt, and while it was screened another call's ran and failed: it overlapped with that."""
    from remembrancer.flows import remember_gate

    judge = remember_gate.judge
    remembering.assessor.script = [_down]

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(remember_gate, "judge", judge)
        assert remembering.remember(ada()).status == 503
        return judge(*given)

    monkeypatch.setattr(remember_gate, "judge", meanwhile)
    outcome = remembering.remember(ada())
    assert (outcome.status, outcome.replayed) == (503, True)
    assert len(remembering.started) == 1
    assert remembering.remember(ada()).status == 200


def test_a_later_call_is_a_new_attempt_of_the_chain(remembering: Remembering) -> None:
    remembering.assessor.script = [_down, _down]
    first, second, third = (remembering.remember(ada()) for _ in range(3))
    assert [first.status, second.status, third.status] == [503, 503, 200]
    rows = remembering.world.sql("select attempt_id, chain_id, number, state from attempt order by number")
    assert [row["number"] for row in rows] == [1, 2, 3]
    assert {row["chain_id"] for row in rows} == {rows[0]["attempt_id"]}
    assert [row["state"] for row in rows] == ["failed_retryable", "failed_retryable", "completed"]
    assert len({first.attempt_id, second.attempt_id, third.attempt_id}) == 3
    # Each keeps its own document.
    look = remembering.world
    remembering.wire()
    shown = look.call(AGENT, "GET", f"/v1/remember/att_{first.attempt_id.hex}")
    assert shown.text == first.body


def test_a_final_failure_is_replayed(remembering: Remembering) -> None:
    body = ada()
    body["relationships"][0]["subject"] = {"known_entity_id": "ent_" + "0" * 32}
    first = remembering.remember(body)
    again = remembering.remember(body)
    assert (first.status, json.loads(first.body)["code"]) == (409, "stale_input")
    assert json.loads(first.body)["errors"][0]["pointer"] == "/relationships/0/subject/known_entity_id"
    assert again.body == first.body and again.replayed and len(remembering.started) == 1


def test_the_lease_is_taken_over_only_when_it_is_over_and_the_zombie_cannot_write(
    remembering: Remembering,
) -> None:
    def dies(state: str, data: dict[str, Any]) -> None:
        if state == "Commit":
            raise Killed

    remembering.machine.before = dies
    assert remembering.remember(ada()).status == 202
    # As long as the lease stands, a caller waits and starts nothing.
    assert remembering.remember(ada()).status == 202 and len(remembering.started) == 1
    remembering.machine.before = lambda state, data: None
    zombie = remembering.started[0]
    remembering.world.sql("update attempt set lease_until = now() - interval '1 second'")
    outcome = remembering.remember(ada())
    assert outcome.status == 200 and len(remembering.started) == 2
    before = counts(remembering.world)
    with pytest.raises(Problem, match="commit_conflict"):
        finish(remembering.of("remember_commit"), zombie)
    assert changed(before, counts(remembering.world)) == {}
    assert remembering.remember(ada()).body == outcome.body


def test_a_zombie_that_is_past_its_own_look_fails_at_the_fence(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read its attempt while it was its own; then the lease is taken over; then it writes."""
    from remembrancer.flows import remember_finish

    work = remember_finish._work

    def taken_over(services: Any, opened: Any) -> Any:
        monkeypatch.setattr(remember_finish, "_work", work)
        remembering.world.sql("update attempt set lease_until = now() - interval '1 second'")
        assert remembering.remember(ada()).status == 200
        return work(services, opened)

    monkeypatch.setattr(remember_finish, "_work", taken_over)
    outcome = remembering.remember(ada())
    assert outcome.status == 504 and json.loads(outcome.body)["code"] == "request_timeout"
    rows = remembering.world.sql("select state from attempt order by number")
    assert [row["state"] for row in rows] == ["failed_retryable", "completed"]
    assert len(remembering.world.sql("select 1 from occurrence")) == 1


def test_the_sweep_ends_what_nobody_works_on(remembering: Remembering) -> None:
    remembering.begin = lambda attempt_id: None
    remembering.remember(ada())
    world = remembering.world
    tenant = UUID(world.tenant_id)
    database = remembering.of("sweep").database
    assert database.job(tenant, lambda unit: abandon(unit, 10), audited=False) == 0
    world.sql("update attempt set lease_until = now() - interval '1 second'")
    assert database.job(tenant, lambda unit: abandon(unit, 10), audited=False) == 1
    [row] = world.sql("select state, status, result, request, context from attempt")
    assert (row["state"], row["status"]) == ("failed_retryable", 504)
    assert json.loads(row["result"])["code"] == "request_timeout" and row["request"] is None


def test_a_workflow_that_does_not_start_ends_the_attempt_at_once(remembering: Remembering) -> None:
    def down(attempt_id: UUID) -> None:
        raise MachineUnavailable("ThrottlingException")

    remembering.begin = down
    outcome = remembering.remember(ada())
    assert (outcome.status, json.loads(outcome.body)["code"]) == (500, "internal_failure")
    remembering.begin = None
    assert remembering.remember(ada()).status == 200


def test_a_result_is_replayed_after_three_days_and_a_failure_for_thirty(remembering: Remembering) -> None:
    days = 0

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(days=days)

    remembering.world.clock = clock
    stored = remembering.remember(ada())
    final = ada("k-2")
    final["relationships"][0]["subject"] = {"known_entity_id": "ent_" + "0" * 32}
    failed = remembering.remember(final)
    sweep = remembering.world.services("sweep").database
    for days in (3, 29):  # noqa: B007 - the clock reads it
        sweep.job(UUID(remembering.world.tenant_id), _swept, audited=False)
        assert remembering.remember(ada()).body == stored.body
        assert remembering.remember(final).body == failed.body
    days = 400
    sweep.job(UUID(remembering.world.tenant_id), _swept, audited=False)
    assert remembering.remember(ada()).body == stored.body
    assert remembering.remember(final).attempt_id != failed.attempt_id


def _swept(unit: Any) -> int:
    from remembrancer.store import attempts

    return attempts.sweep(unit)


def test_a_double_start_is_one_run(remembering: Remembering) -> None:
    outcome = remembering.remember(ada())
    again = remembering.run(outcome.attempt_id)
    assert again.status == "SUCCEEDED" and len(remembering.assessor.calls) == 1
    assert parse_id("att", json.loads(outcome.body)["attempt_id"]) == outcome.attempt_id


def _down(conversation: Any) -> Any:
    raise ProviderUnavailable("timeout", "test")
