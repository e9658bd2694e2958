"""Whatever happens to a step, the end is typed, nothing is written by half, and a retry goes through."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from remembrancer.domain.assessment import Conversation
from remembrancer.domain.ports import (
    Answer,
    EmbeddingUnavailable,
    ObjectStoreUnavailable,
    ProviderUnavailable,
)
from remembrancer.domain.problems import Problem
from remembrancer.flows.remember_end import record_failure
from tests.integration.attempts.harness import DEFINITION, Killed, Remembering, ada, belief, believes, said
from tests.integration.probe import everywhere, logged
from tests.integration.world import ADMIN, AGENT

KNOWLEDGE = (
    "memory",
    "memory_version",
    "passage",
    "occurrence",
    "submission",
    "entity",
    "relationship",
    "support",
)
HAPPY = ["Prepare", "Prepared", "CallModel", "Check", "Checked", "Commit", "Done"]
CANARY = "zq7canary"


def knowledge(remembering: Remembering) -> dict[str, int]:
    return {table: remembering.world.sql(f"select count(*) as n from {table}")[0]["n"] for table in KNOWLEDGE}


def code(body: str) -> str:
    return str(json.loads(body)["code"])


# Killed ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", HAPPY)
def test_killed_before_any_state_it_is_nothing_or_everything_and_a_retry_succeeds(
    remembering: Remembering, state: str
) -> None:
    def dies(entered: str, data: dict[str, Any]) -> None:
        if entered == state:
            raise Killed

    remembering.machine.before = dies
    nothing = knowledge(remembering)
    first = remembering.remember(ada())
    remembering.machine.before = lambda state, data: None
    if state == "Done":
        assert first.status == 200
        assert remembering.remember(ada()).body == first.body
        return
    assert first.status == 202 and knowledge(remembering) == nothing
    # What EventBridge tells of an aborted execution.
    assert record_failure(remembering.of("remember_failed"), first.attempt_id, "ABORTED") is True
    assert remembering.objects.held == {}
    ended = remembering.remember(ada())
    assert ended.status == 200 and len(remembering.started) == 2
    assert knowledge(remembering)["memory"] == 1
    assert record_failure(remembering.of("remember_failed"), first.attempt_id, "ABORTED") is False
    # The turn that had been validated is not paid for again.
    assert len(remembering.assessor.calls) == (2 if state == "Check" else 1)


@pytest.mark.parametrize("state", ["Prepare", "CallModel", "Check", "Commit"])
def test_a_step_that_runs_twice_does_its_work_once(remembering: Remembering, state: str) -> None:
    task = DEFINITION["States"][state]["Resource"].strip("${}")
    step = remembering.machine._tasks[task]

    def twice(event: dict[str, Any]) -> Any:
        step(event)
        if state == "Commit":
            with pytest.raises(Exception, match="commit_conflict"):
                step(event)
            return {"attempt_id": event["attempt_id"]}
        return step(event)

    remembering.machine._tasks = {**remembering.machine._tasks, task: twice}
    assert remembering.remember(ada()).status == 200
    assert remembering.objects.held == {}
    assert knowledge(remembering)["memory"] == 1
    assert len(remembering.world.sql("select 1 from exchange")) == 1


# The provider ------------------------------------------------------------------------------------------------
def _unavailable(kind: Any) -> Callable[[Conversation], Answer]:
    def answer(conversation: Conversation) -> Answer:
        raise ProviderUnavailable(kind, "test")

    return answer


@pytest.mark.parametrize("kind", ["timeout", "unavailable", "refused"])
def test_a_provider_that_fails_is_called_once_and_told_of(remembering: Remembering, kind: str) -> None:
    remembering.assessor.script = [_unavailable(kind)]
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (503, "provider_unavailable")
    assert len(remembering.assessor.calls) == 1 and remembering.objects.held == {}
    assert remembering.remember(ada()).status == 200


def test_only_throttles_are_tried_again_and_not_for_ever(remembering: Remembering) -> None:
    remembering.assessor.script = [_unavailable("throttled")] * 2
    assert remembering.remember(ada()).status == 200
    remembering.assessor.script = [_unavailable("throttled")] * 9
    outcome = remembering.remember(ada("k-2", evidence=[{"content": "Ada lives in Rome."}]))
    assert (outcome.status, code(outcome.body)) == (503, "provider_unavailable")
    for state in DEFINITION["States"].values():
        for retry in state.get("Retry", ()):
            assert retry["JitterStrategy"] == "FULL"
            if state["Resource"] != "${remember_failed}":
                assert set(retry["ErrorEquals"]) <= {"Lambda.TooManyRequestsException", "ProviderThrottled"}


def test_an_answer_is_repaired_in_the_same_conversation(remembering: Remembering) -> None:
    def second(conversation: Conversation) -> Answer:
        [turn] = conversation.turns
        assert turn.answer == "Sure! {" and [issue.code for issue in turn.issues] == ["not_json"]
        return believes(conversation)

    remembering.assessor.script = ["Sure! {", second]
    outcome = remembering.remember(ada())
    assert outcome.status == 200 and json.loads(outcome.body)["assessor"]["turns"] == 2
    rows = remembering.world.sql("select turn, outcome, answered, issues from exchange order by turn")
    assert [(row["turn"], row["outcome"]) for row in rows] == [(1, "invalid"), (2, "valid")]
    assert rows[0]["answered"] == "Sure! {" and rows[0]["issues"][0]["code"] == "not_json"


def test_the_third_turn_may_be_the_valid_one(remembering: Remembering) -> None:
    truncated = said('{"evidence": [', stop="truncated")
    remembering.assessor.script = ["", lambda conversation: truncated]
    outcome = remembering.remember(ada())
    assert outcome.status == 200 and len(remembering.assessor.calls) == 3
    assert [len(call.turns) for call in remembering.assessor.calls] == [0, 1, 2]


def test_three_turns_are_all_there_is(remembering: Remembering) -> None:
    remembering.assessor.script = ["[]"] * 9
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (503, "provider_response_invalid")
    assert len(remembering.assessor.calls) == 3 and knowledge(remembering)["memory"] == 0
    assert remembering.objects.held == {}
    [execution] = remembering.machine.executions.values()
    assert execution.states.count("CallModel") == 3


def test_a_check_that_lost_count_is_stopped_by_the_machine(remembering: Remembering) -> None:
    """The second bound: whatever the handler says, the choice looks at the counter."""
    tasks = remembering.machine._tasks
    asks = {**tasks, "remember_check": lambda event: {**event, "turn": event["turn"] + 1, "verdict": "ask"}}
    asks["remember_call_model"] = lambda event: event
    remembering.machine._tasks = asks
    outcome = remembering.remember(ada())
    assert code(outcome.body) == "provider_response_invalid"
    [execution] = remembering.machine.executions.values()
    assert execution.states.count("CallModel") == 3


def test_a_check_that_was_lost_before_it_cleaned_up_is_done_again(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remembrancer.flows import assess

    task = "remember_check"
    step, delete = remembering.machine._tasks[task], assess._delete

    def lost(event: dict[str, Any]) -> Any:
        monkeypatch.setattr(assess, "_delete", lambda *_: None)
        step(event)
        monkeypatch.setattr(assess, "_delete", delete)
        return step(event)

    remembering.machine._tasks = {**remembering.machine._tasks, task: lost}
    remembering.assessor.script = ["{"]
    assert remembering.remember(ada()).status == 200
    assert len(remembering.assessor.calls) == 2 and remembering.objects.held == {}


def test_one_item_that_is_not_safe_refuses_the_batch(remembering: Remembering) -> None:
    def rejects(conversation: Conversation) -> Answer:
        document = belief(conversation.request)
        document["evidence"][1] |= {
            "security": "reject",
            "findings": [{"kind": "exfiltration", "quote": "Ben", "occurrence": 1}],
        }
        return said(json.dumps(document))

    remembering.assessor.script = [rejects]
    two = ada(evidence=[{"content": "Ada works at Acme."}, {"content": "Ben works at Acme."}])
    two["relationships"][0]["evidence_indices"] = [0, 1]
    outcome = remembering.remember(two)
    assert (outcome.status, code(outcome.body)) == (422, "submission_policy_rejected")
    [error] = json.loads(outcome.body)["errors"]
    assert (error["pointer"], error["code"]) == ("/evidence/1/content", "exfiltration")
    assert knowledge(remembering)["memory"] == 0
    assert remembering.remember(two).body == outcome.body and len(remembering.started) == 1


def test_a_guardrail_that_refuses_is_a_rejection(remembering: Remembering) -> None:
    remembering.assessor.script = [lambda conversation: said("", stop="blocked")]
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (422, "submission_policy_rejected")
    assert [row["outcome"] for row in remembering.world.sql("select outcome from exchange")] == ["rejected"]


def test_what_is_not_supported_is_not_stored_and_safe_evidence_is(remembering: Remembering) -> None:
    def doubts(conversation: Conversation) -> Answer:
        document = belief(conversation.request)
        document["proposals"] = [{"ref": "r1", "disposition": "not_supported", "splits": []}]
        return said(json.dumps(document))

    remembering.assessor.script = [doubts]
    document = json.loads(remembering.remember(ada()).body)
    assert document["state"] == "completed" and document["evidence"][0]["disposition"] == "stored"
    [relationship] = document["relationships"]
    assert relationship["disposition"] == "not_stored"
    assert relationship["reason"] == "not_supported_by_evidence"
    assert remembering.world.recall("Ada works at Acme.")["hits"] == []


# The embedding -----------------------------------------------------------------------------------------------
class _Wrong:
    contract = "quick-384-v1"

    def __init__(self, vectors: Callable[[int], Any]) -> None:
        self._vectors = vectors

    def embed(self, texts: Any) -> Any:
        return self._vectors(len(texts))

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1


def _missing(count: int) -> Any:
    raise EmbeddingUnavailable("gone")


@pytest.mark.parametrize(
    "vectors",
    [
        lambda n: np.zeros((n, 383), np.float32),
        lambda n: np.full((n, 384), np.nan, np.float32),
        lambda n: np.full((n, 384), np.inf, np.float32),
        lambda n: np.zeros((n + 1, 384), np.float32),
        lambda n: np.zeros((0, 384), np.float32),
        _missing,
    ],
    ids=["size", "nan", "inf", "more", "none", "unavailable"],
)
def test_an_embedding_that_is_wrong_commits_nothing(remembering: Remembering, vectors: Any) -> None:
    good = remembering.world.embedder
    remembering.world.embedder = _Wrong(vectors)  # type: ignore[assignment]
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (503, "embedding_unavailable")
    assert knowledge(remembering)["memory"] == 0 and remembering.assessor.calls == []
    remembering.close()
    remembering.world.embedder = good
    remembering._local.world = None
    assert remembering.remember(ada()).status == 200


# Time --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "state, after, turns",
    [("Prepare", 161, 0), ("CallModel", 161, 0), ("Check", 161, 1), ("Commit", 181, 1)],
)
def test_no_step_works_past_its_deadline(
    remembering: Remembering, state: str, after: int, turns: int
) -> None:
    passed = timedelta()
    remembering.world.clock = lambda: datetime.now(UTC) + passed

    def late(entered: str, data: dict[str, Any]) -> None:
        nonlocal passed
        if entered == state:
            passed = timedelta(seconds=after)

    remembering.machine.before = late
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (504, "request_timeout")
    assert knowledge(remembering)["memory"] == 0 and len(remembering.assessor.calls) == turns
    assert remembering.objects.held == {}


def test_a_commit_may_begin_late_and_the_callers_own_deadline_wins(remembering: Remembering) -> None:
    passed = timedelta()
    remembering.world.clock = lambda: datetime.now(UTC) + passed

    def late(entered: str, data: dict[str, Any]) -> None:
        nonlocal passed
        if entered == "Commit":
            passed = timedelta(seconds=169)

    remembering.machine.before = late
    assert remembering.remember(ada()).status == 200
    passed = timedelta()
    asked = datetime.now(UTC) + timedelta(seconds=100)
    outcome = remembering.remember(ada("k-2", evidence=[{"content": "Ada is here."}]), deadline=asked)
    assert code(outcome.body) == "request_timeout"


def test_a_commit_that_takes_too_long_is_rolled_back(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remembrancer.flows import remember_finish

    passed = timedelta()
    remembering.world.clock = lambda: datetime.now(UTC) + passed
    commit = remember_finish.commit

    def slow(unit: Any, work: Any) -> Any:
        nonlocal passed
        done = commit(unit, work)
        passed = timedelta(seconds=11)
        return done

    monkeypatch.setattr(remember_finish, "commit", slow)
    outcome = remembering.remember(ada())
    assert (outcome.status, code(outcome.body)) == (504, "request_timeout")
    assert knowledge(remembering)["memory"] == 0


# Between the steps -------------------------------------------------------------------------------------------
def before(state: str, act: Callable[[], None]) -> Callable[[str, dict[str, Any]], None]:
    def hook(entered: str, data: dict[str, Any]) -> None:
        if entered == state:
            act()

    return hook


def test_a_permission_revoked_on_the_way_stops_it(remembering: Remembering) -> None:
    world = remembering.world
    remembering.machine.before = before(
        "Commit",
        lambda: world.sql("update principal set team_grant = 'read' where name = 'capture-agent'") and None,
    )
    call = remembering.remember
    outcome = call(ada())
    assert (outcome.status, code(outcome.body)) == (403, "forbidden")
    assert knowledge(remembering)["memory"] == 0


def test_a_principal_that_is_switched_off_on_the_way_leaves_a_typed_end(remembering: Remembering) -> None:
    world = remembering.world

    def off() -> None:
        world.sql("update principal set active = false where name = 'capture-agent'")

    remembering.machine.before = before("Check", off)
    with pytest.raises(Problem, match="forbidden"):  # the caller too
        remembering.remember(ada())
    [row] = world.sql("select state, status, result from attempt")
    assert (row["state"], row["status"], code(row["result"])) == ("failed_final", 403, "forbidden")
    assert remembering.objects.held == {}


def test_an_erasure_on_the_way_ends_it(remembering: Remembering) -> None:
    world = remembering.wire()
    stored = json.loads(remembering.remember(ada("k-0", evidence=[{"content": "Eve is known."}])).body)

    def erase() -> None:
        body = {
            "memory_ids": [stored["evidence"][0]["evidence_id"]],
            "dry_run": False,
            "reason": "data_subject_request",
        }
        assert world.call(ADMIN, "POST", "/v1/purge", body, signed=True).status == 200

    remembering.machine.before = before("Commit", erase)
    with_known = ada("k-1")
    with_known["relationships"][0]["known_evidence_ids"] = [stored["evidence"][0]["evidence_id"]]
    with pytest.raises(Problem, match="result_erased"):  # it was shown what was erased
        remembering.remember(with_known)
    assert everywhere(world, "Eve is known") == [] and knowledge(remembering)["memory"] == 0
    # One that was not shown it is only asked to try again: the space is another one now.
    remembering.machine.before = lambda state, data: None
    assert remembering.remember(ada("k-3")).status == 200


def test_evidence_that_is_replaced_on_the_way_is_stale(remembering: Remembering) -> None:
    stored = json.loads(remembering.remember(ada("k-0", evidence=[{"content": "Ada was at Globex."}])).body)
    known = stored["evidence"][0]["evidence_id"]

    def replace_it() -> None:
        remembering.machine.before = lambda state, data: None
        newer = ada("k-1", evidence=[{"content": "Ada was at Initech.", "supersedes_evidence_ids": [known]}])
        assert remembering.remember(newer).status == 200

    remembering.machine.before = before("Commit", replace_it)
    citing = ada("k-2")
    citing["relationships"][0]["known_evidence_ids"] = [known]
    outcome = remembering.remember(citing)
    assert (outcome.status, code(outcome.body)) == (409, "stale_input")
    pointers = [error["pointer"] for error in json.loads(outcome.body)["errors"]]
    assert pointers == ["/relationships/0/known_evidence_ids/0"]


# Checkpoints -------------------------------------------------------------------------------------------------
def test_a_validated_answer_is_not_paid_for_twice_unless_the_context_changed(
    remembering: Remembering,
) -> None:
    def fails(state: str, data: dict[str, Any]) -> None:
        if state == "Commit":
            raise Killed

    def again() -> Any:
        remembering.world.sql(
            "update attempt set lease_until = now() - interval '1 second' where state = 'processing'"
        )
        return remembering.remember(ada())

    remembering.machine.before = fails
    remembering.remember(ada())
    again()
    assert len(remembering.assessor.calls) == 1
    assert remembering.machine.executions[f"att_{remembering.started[-1].hex}"].states == [
        "Prepare", "Prepared", "Commit",
    ]  # fmt: skip
    # A name that is borne by somebody now is another question.
    remembering.world.ingest("Ada is here.", entities=[{"name": "Ada", "kind": "person"}])
    again()
    assert len(remembering.assessor.calls) == 2
    # So it is for another assessor.
    remembering.assessor.name = "another"
    again()
    assert len(remembering.assessor.calls) == 3
    remembering.machine.before = lambda state, data: None
    outcome = again()
    assert outcome.status == 200 and len(remembering.assessor.calls) == 3


# Canaries ----------------------------------------------------------------------------------------------------
FAULTS = [
    ("remembrancer.flows.remember_prepare", "gather"),
    ("remembrancer.flows.remember_prepare", "cut_new"),
    ("remembrancer.flows.remember_prepare", "assessment_request"),
    ("remembrancer.flows.assess", "validate"),
    ("remembrancer.flows.assess", "_exchange"),
    ("remembrancer.flows.remember_finish", "commit"),
    ("remembrancer.flows.remember_finish", "canonical_json"),
    ("remembrancer.domain.remember_work", "read_asked"),
    ("remembrancer.domain.remember_work", "read_answered"),
    ("remembrancer.domain.remember_work", "answered"),
    ("remembrancer.store.attempts", "save_exchange"),
    ("remembrancer.store.attempts", "set_prepared"),
]


@pytest.mark.parametrize("module, name", FAULTS, ids=lambda part: part.rsplit(".", 1)[-1])
def test_no_exception_carries_content_into_the_history(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    def breaks(*_: Any, **__: Any) -> Any:
        raise ValueError(f"cannot read {CANARY}")

    monkeypatch.setattr(f"{module}.{name}", breaks)
    with logged() as written:
        outcome = remembering.remember(_with_canary())
    assert (outcome.status, code(outcome.body)) == (500, "internal_failure")
    _no_canary(remembering, written.getvalue(), outcome.body)


@pytest.mark.parametrize("fault", ["bucket", "model", "answer", "database"])
def test_no_outside_fault_carries_content_into_the_history(
    remembering: Remembering, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def breaks(*_: Any, **__: Any) -> Any:
        raise ObjectStoreUnavailable(f"{CANARY}") if fault == "bucket" else RuntimeError(f"about {CANARY}")

    if fault == "bucket":
        monkeypatch.setattr(remembering.objects, "get", breaks)
    elif fault == "model":
        remembering.assessor.script = [breaks]
    elif fault == "answer":
        remembering.assessor.script = [f"{CANARY} \x00 \ud800 {{"] * 3
    else:
        remembering.world.sql("alter table exchange add constraint c check (length(asked) < 10)")
    with logged() as written:
        outcome = remembering.remember(_with_canary())
    assert outcome.status >= 500
    _no_canary(remembering, written.getvalue(), outcome.body)


def test_the_states_of_a_run_hold_ids_a_counter_and_a_deadline(remembering: Remembering) -> None:
    remembering.assessor.script = ["{"]
    with logged() as written:
        outcome = remembering.remember(_with_canary())
    assert outcome.status == 200
    [execution] = remembering.machine.executions.values()
    seen: set[str] = set()
    for event in execution.history:
        seen |= json.loads(event.get("input", "{}")).keys()
    assert seen == {"attempt_id", "tenant_id", "turn", "until", "verdict"} and remembering.objects.seen
    assert json.loads(execution.history[0]["input"]).keys() == {"attempt_id"}
    _no_canary(remembering, written.getvalue(), "")


def _with_canary() -> dict[str, Any]:
    body = ada(evidence=[{"content": f"Ada {CANARY} works at Acme.", "source": f"s {CANARY}"}])
    body["relationships"][0] |= {"client_comment": f"About {CANARY}."}
    body["relationships"][0]["subject"]["name"] = f"Ada {CANARY}"
    return body


def _no_canary(remembering: Remembering, log: str, body: str) -> None:
    for execution in remembering.machine.executions.values():
        assert CANARY not in json.dumps(execution.history)
    assert CANARY not in log and CANARY not in body
    assert remembering.objects.held == {}
    assert all(CANARY not in key for key in remembering.objects.seen)


def test_a_look_at_the_exchanges_is_for_auditors_and_is_audited(remembering: Remembering) -> None:
    from tests.integration.world import AUDITOR, REVIEWER

    world = remembering.wire()
    outcome = remembering.remember(ada(evidence=[{"content": "Ada works at Acme, ada@acme.test."}]))
    place = f"/v1/attempts/att_{outcome.attempt_id.hex}/diagnostics"
    shown = world.call(AUDITOR, "GET", place)
    assert shown.status == 200, shown.text
    [exchange] = shown.json["exchanges"]
    assert exchange["outcome"] == "valid" and "Ada works at Acme" in exchange["asked"]
    assert "ada@acme.test" not in shown.text  # this auditor does not see PII
    assert exchange["model"] == "scripted-1" and exchange["input_tokens"] == 10
    assert world.audit()[0]["action"] == "diagnostics_read"
    for person in (AGENT, REVIEWER, ADMIN):
        assert world.call(person, "GET", place).status == 403
    assert world.call(AUDITOR, "GET", "/v1/attempts/att_" + "0" * 32 + "/diagnostics").status == 404
    world.sql("update exchange set expires_at = now()")
    assert world.call(AUDITOR, "GET", place).json["exchanges"] == []


# Told to the operator ----------------------------------------------------------------------------------------
def _breaks(conversation: Conversation) -> Answer:
    raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    ("script", "expected", "broken"),
    [
        (_breaks, "internal_failure", True),
        (_unavailable("refused"), "provider_unavailable", True),
        ("not JSON, three times", "provider_response_invalid", False),
        (None, "cancelled", False),
    ],
)
def test_a_fault_is_counted_for_an_alarm_and_what_a_caller_does_is_not(
    remembering: Remembering,
    capsys: pytest.CaptureFixture[str],
    script: Any,
    expected: str,
    broken: bool,
) -> None:
    """Either way the steps leave by exceptions: Lambda's own count of errors cannot tell them apart."""

    def called_off(state: str, data: dict[str, Any]) -> None:
        if state == "Check":
            path = f"/v1/remember/{data['attempt_id']}/cancel"
            assert remembering.world.call(AGENT, "POST", path, {"reason": "no_longer_needed"}).status == 200

    if script is None:
        remembering.machine.before = called_off
    else:
        remembering.assessor.script = [script] * 3
    assert code(remembering.remember(ada()).body) == expected
    assert ('"AttemptsBroken"' in capsys.readouterr().out) == broken
