"""Any order of calls, failures, kills, expiries, cancels and erasures under a few keys, against a small model.

The model knows the four states of the specification: processing (with its lease), completed, failed_retryable,
failed_final; and that an erased result is answered as such.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from remembrancer.domain.ports import ProviderUnavailable
from remembrancer.domain.problems import Problem
from remembrancer.domain.remember_requests import CancelRequest
from remembrancer.flows.remember import cancel
from remembrancer.flows.remember_finish import finish
from tests.integration.attempts.harness import Killed, Remembering, ada, said
from tests.integration.probe import QuickEmbedder, call_of, scratch_world
from tests.integration.world import ADMIN, AGENT

KEYS = st.sampled_from(["k-1", "k-2"])
PAYLOADS = st.sampled_from(["Ada works at Acme.", "Ada worked at Acme."])
FATES = st.sampled_from(["completes", "unavailable", "rejected", "killed"])
_runs = itertools.count(1)


@dataclass
class Known:
    """What the model expects under a key. `body` is the terminal answer."""

    payload: str
    state: str
    body: str | None = None
    runs: int = 1


def _rejects(conversation: Any) -> Any:
    return said("", stop="blocked")


def _unavailable(conversation: Any) -> Any:
    raise ProviderUnavailable("unavailable", "test")


class Keys(RuleBasedStateMachine):
    remembering: Remembering

    def __init__(self) -> None:
        super().__init__()
        self.run = next(_runs)
        self.known: dict[str, Known] = {}
        self.began = len(self.remembering.started)

    def name(self, key: str) -> str:
        """Each example has keys and texts of its own: they share one database."""
        return f"{key}-{self.run}"

    def text(self, payload: str) -> str:
        return f"{payload[:-1]} in {self.run}."

    def call(self, key: str, payload: str) -> tuple[int, str]:
        body = ada(self.name(key), evidence=[{"content": self.text(payload)}])
        try:
            outcome = self.remembering.remember(body)
        except Problem as problem:
            return problem.status, problem.code
        return outcome.status, outcome.body

    @rule(key=KEYS, payload=PAYLOADS, fate=FATES)
    def remember(self, key: str, payload: str, fate: str) -> None:
        known = self.known.get(key)
        self._arrange(fate)
        status, body = self.call(key, payload)
        self.remembering.assessor.script.clear()
        self.remembering.machine.before = lambda state, data: None
        if known is not None and known.state == "erased":
            assert body == "result_erased"
        elif known is not None and known.payload != payload:
            assert body == "idempotency_conflict"
        elif known is not None and known.state == "processing":
            assert status == 202
        elif known is not None and known.state in ("completed", "failed_final"):
            assert body == known.body
        else:
            runs = 1 if known is None else known.runs + 1
            self.known[key] = self._expected(payload, fate, status, body, runs)

    def _arrange(self, fate: str) -> None:
        scripts = {"unavailable": [_unavailable], "rejected": [_rejects]}
        self.remembering.assessor.script = list(scripts.get(fate, []))

        def dies(state: str, data: dict[str, Any]) -> None:
            if state == "Check":
                raise Killed

        if fate == "killed":
            self.remembering.machine.before = dies

    def _expected(self, payload: str, fate: str, status: int, body: str, runs: int) -> Known:
        expected = {"completes": 200, "unavailable": 503, "rejected": 422, "killed": 202}
        state = {
            "completes": "completed",
            "unavailable": "failed_retryable",
            "rejected": "failed_final",
            "killed": "processing",
        }[fate]
        if status == 200 and fate != "completes":
            # A validated turn of an earlier attempt was reused: the model was not asked at all.
            state = "completed"
        else:
            assert status == expected[fate], (fate, status, body)
        return Known(payload, state, None if state == "processing" else body, runs)

    @rule(key=KEYS)
    def lease_runs_out(self, key: str) -> None:
        known = self.known.get(key)
        self.remembering.world.sql(
            "update attempt set lease_until = now() - interval '1 s' where key = %s and state = 'processing'",
            self.name(key),
        )
        if known is not None and known.state == "processing":
            known.state = "failed_retryable"

    @rule(key=KEYS)
    def zombie_writes(self, key: str) -> None:
        """Whoever worked on an attempt that is over, or that nobody has judged, writes nothing."""
        rows = self.remembering.world.sql("select attempt_id from attempt where key = %s", self.name(key))
        before = self.stored()
        for row in rows:
            with pytest.raises(Problem):
                finish(self.remembering.of("remember_commit"), row["attempt_id"])
        assert self.stored() == before
        known = self.known.get(key)
        if known is not None and known.state == "processing":  # the step told of its own fault
            known.state = "failed_retryable"

    @rule(key=KEYS)
    def cancelled(self, key: str) -> None:
        known = self.known.get(key)
        row = self.last(key)
        if row is None or known is None:
            return
        call = call_of(AGENT, "POST /v1/remember/{id}/cancel")
        attempt = f"att_{row['attempt_id'].hex}"
        try:
            outcome = cancel(self.remembering.of("remember"), call, attempt, CancelRequest())
        except Problem as problem:
            assert problem.code == ("result_erased" if known.state == "erased" else "already_decided")
            return
        assert json.loads(outcome.body)["code"] == "cancelled"
        if known.body != outcome.body:  # it was at work, also when its lease had run out unseen
            known.state, known.body = "failed_final", outcome.body

    @rule(key=KEYS)
    def erased(self, key: str) -> None:
        known = self.known.get(key)
        if known is None or known.state != "completed":
            return
        memory = json.loads(known.body or "")["evidence"][0]["evidence_id"]
        body = {"memory_ids": [memory], "dry_run": False, "reason": "other"}
        reply = self.remembering.world.call(ADMIN, "POST", "/v1/purge", body, signed=True)
        assert reply.status == 200, reply.text
        for other in self.known.values():
            # Attempts of the same bytes go too, whatever became of them.
            if other.payload == known.payload:
                other.state = "erased"

    @invariant()
    def one_run_at_a_time_and_one_answer(self) -> None:
        for key, known in self.known.items():
            rows = self.remembering.world.sql(
                "select state, number, result from attempt where key = %s order by number", self.name(key)
            )
            assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
            assert sum(row["state"] == "processing" for row in rows) <= 1
            assert all(row["state"] in ("failed_retryable", "erased") for row in rows[:-1])
            if known.state in ("completed", "failed_final"):
                assert rows[-1]["state"] == known.state and rows[-1]["result"] == known.body

    def stored(self) -> int:
        return int(self.remembering.world.sql("select count(*) as n from memory")[0]["n"])

    def last(self, key: str) -> dict[str, Any] | None:
        rows = self.remembering.world.sql(
            "select attempt_id from attempt where key = %s order by number desc limit 1", self.name(key)
        )
        return rows[0] if rows else None


@pytest.mark.slow
def test_every_order_of_events_under_a_key(postgres: Any, tmp_path: Any) -> None:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as world:
        remembering = Remembering(world)
        remembering.wire()

        class Bound(Keys):
            pass

        Bound.remembering = remembering
        try:
            run_state_machine_as_test(
                Bound, settings=settings(max_examples=15, stateful_step_count=12, deadline=None)
            )
        finally:
            remembering.close()
