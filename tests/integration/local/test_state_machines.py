"""The outbox machine on moto's engine, its tasks invoked through our front door. Pins what we rely on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.manifest import MACHINES, Function, function
from local.aws import CHECKPOINT_BUCKET, EVENT_BUS, SIGN_KEY, Aws
from local.machines import Machines, definition
from local.runtime import ROOT, Runtime, function_arn
from tests.integration.local.loops import Loop

ALERT = {"delivery_id": "d1", "tenant": "t1", "kind": "expired", "target": "prop_1"}
TASK = """
import json, pathlib
FOLDER = pathlib.Path(__file__).parent

def handler(event, context):
    with (FOLDER / "calls").open("a") as calls:
        calls.write(json.dumps([context.function_name, event]) + "\\n")
    answers = json.loads((FOLDER / "answers.json").read_text())[context.function_name]
    number = sum(json.loads(l)[0] == context.function_name for l in (FOLDER / "calls").open()) - 1
    answer = answers[min(number, len(answers) - 1)]
    if isinstance(answer, str):
        raise type(answer, (Exception,), {})("told to")
    return answer
"""

pytestmark = pytest.mark.timeout(280)
TRIED = [machine for machine in MACHINES if machine.name in ("outbox", "jobs", "remember", "listing")]


class Engine:
    def __init__(self, folder: Path, machines: Machines, client: Any) -> None:
        self.folder = folder
        self.machines = machines
        self.client = client

    def run(
        self, machine: str = "outbox", given: dict[str, str] | None = None, **answers: list[object]
    ) -> tuple[str, list[list[Any]]]:
        """The execution's final status and the calls, each a function and its event."""
        (self.folder / "answers.json").write_text(json.dumps(answers))
        (self.folder / "calls").write_text("")
        execution = self.machines.start(machine, json.dumps(given or {}))
        while True:
            status: str = self.client.describe_execution(executionArn=execution)["status"]
            if status != "RUNNING":
                lines = (self.folder / "calls").read_text().splitlines()
                return status, [json.loads(line) for line in lines]
            time.sleep(0.05)


@pytest.fixture(scope="module")
def aws_and_runtime(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Aws, Path]]:
    folder = tmp_path_factory.mktemp("tasks")
    tasks = [Function(name, "stub", timeout_s=10) for machine in TRIED for name in machine.tasks]
    for task in tasks:
        (folder / f"{task.name}.py").write_text(TASK)
    runtime = Runtime(tasks, lambda _: {}, folder / "logs", handler="{name}.handler", code=(folder,))
    aws = Aws(folder / "logs")
    loop.run(runtime.start())
    loop.run(aws.start(runtime.port), timeout_s=200)
    yield aws, folder
    loop.run(aws.stop())
    loop.run(runtime.stop())


@pytest.fixture(scope="module")
def engine(aws_and_runtime: tuple[Aws, Path]) -> Engine:
    aws, folder = aws_and_runtime
    definitions = folder / "infra"
    definitions.mkdir()
    # The engine really sleeps between retries.
    for machine in TRIED:
        text = (ROOT / "infra" / f"{machine.name}.asl.json").read_text()
        (definitions / f"{machine.name}.asl.json").write_text(
            re.sub(r'"IntervalSeconds": \d+', '"IntervalSeconds": 1', text)
        )
    client = aws.client("stepfunctions")
    machines = Machines(client)
    machines.create(TRIED, definitions)
    return Engine(folder, machines, client)


def test_alerts_are_claimed_published_and_marked(engine: Engine) -> None:
    claimed = {"count": 1, "alerts": [ALERT]}
    published = {"delivered": [{"tenant": "t1", "delivery_id": "d1"}], "failed": {}}
    status, calls = engine.run(
        outbox_claim=[claimed], outbox_publish=[published], outbox_mark=[{"marked": 1}]
    )
    assert status == "SUCCEEDED"
    assert calls == [["outbox_claim", {}], ["outbox_publish", claimed], ["outbox_mark", published]]


def test_nothing_due_publishes_nothing(engine: Engine) -> None:
    status, calls = engine.run(outbox_claim=[{"count": 0, "alerts": []}])
    assert (status, [name for name, _ in calls]) == ("SUCCEEDED", ["outbox_claim"])


def test_a_resuming_database_is_waited_for(engine: Engine) -> None:
    status, calls = engine.run(outbox_claim=["DatabaseResuming", {"count": 0, "alerts": []}])
    assert (status, len(calls)) == ("SUCCEEDED", 2)


def test_any_other_fault_fails_the_execution_and_marks_nothing(engine: Engine) -> None:
    status, calls = engine.run(outbox_claim=[{"count": 1, "alerts": [ALERT]}], outbox_publish=["ValueError"])
    assert (status, [name for name, _ in calls]) == ("FAILED", ["outbox_claim", "outbox_publish"])


JOB = {"tenant_id": "t1", "job_id": "j1"}


def test_a_job_is_stepped_until_nothing_is_left(engine: Engine) -> None:
    more, over = {**JOB, "more": True}, {**JOB, "more": False}
    status, calls = engine.run("jobs", JOB, job_step=[more, more, over])
    assert status == "SUCCEEDED"
    # Ids only, and the answer of one step is what the next is given.
    assert calls == [["job_step", JOB], ["job_step", more], ["job_step", more]]


def test_a_step_that_died_is_followed_by_another(engine: Engine) -> None:
    over = {**JOB, "more": False}
    status, calls = engine.run("jobs", JOB, job_step=["DatabaseResuming", "ValueError", over])
    assert (status, calls) == ("SUCCEEDED", [["job_step", JOB]] * 3)


def test_a_job_whose_every_step_dies_ends_the_execution(engine: Engine) -> None:
    status, calls = engine.run("jobs", JOB, job_step=["ValueError"])
    assert (status, len(calls)) == ("FAILED", 4)


ATTEMPT = {"attempt_id": "att_1"}


def turn(number: int, verdict: str = "ask") -> dict[str, Any]:
    return {**ATTEMPT, "tenant_id": "t1", "turn": number, "until": "u", "verdict": verdict}


def test_an_attempt_is_repaired_then_committed(engine: Engine) -> None:
    status, calls = engine.run(
        "remember", ATTEMPT, remember_prepare=[turn(1)], remember_call_model=[turn(1), turn(2)],
        remember_check=[turn(2), turn(2, "valid")], remember_commit=[ATTEMPT],
    )  # fmt: skip
    assert status == "SUCCEEDED"
    assert calls == [
        ["remember_prepare", ATTEMPT],
        ["remember_call_model", turn(1)], ["remember_check", turn(1)],
        ["remember_call_model", turn(2)], ["remember_check", turn(2)],
        ["remember_commit", turn(2, "valid")],
    ]  # fmt: skip


def test_what_an_earlier_attempt_had_validated_is_committed_at_once(engine: Engine) -> None:
    status, calls = engine.run(
        "remember", ATTEMPT, remember_prepare=[turn(1, "valid")], remember_commit=[ATTEMPT]
    )
    assert (status, [name for name, _ in calls]) == ("SUCCEEDED", ["remember_prepare", "remember_commit"])


def test_a_fourth_turn_is_never_asked(engine: Engine) -> None:
    turns = [turn(1), turn(2), turn(3), turn(4)]
    status, calls = engine.run(
        "remember", ATTEMPT, remember_prepare=[turn(1)], remember_call_model=turns,
        remember_check=turns[1:], remember_failed=[ATTEMPT],
    )  # fmt: skip
    assert status == "SUCCEEDED" and [name for name, _ in calls].count("remember_call_model") == 3
    assert calls[-1] == ["remember_failed", {**ATTEMPT, "error": "ProviderResponseInvalid"}]


def test_only_a_throttle_is_tried_again_and_every_other_fault_is_recorded(engine: Engine) -> None:
    status, calls = engine.run(
        "remember", ATTEMPT, remember_prepare=[turn(1)],
        remember_call_model=["ProviderThrottled", turn(1)], remember_check=["StaleInput"], remember_failed=[ATTEMPT],
    )  # fmt: skip
    assert status == "SUCCEEDED"
    assert [name for name, _ in calls] == [
        "remember_prepare", "remember_call_model", "remember_call_model", "remember_check", "remember_failed",
    ]  # fmt: skip
    assert calls[-1] == ["remember_failed", {**ATTEMPT, "error": "StaleInput"}]


@pytest.mark.slow
def test_an_end_that_cannot_be_written_fails_the_execution(engine: Engine) -> None:
    """Then the rule on failed executions is what writes it."""
    status, calls = engine.run(
        "remember", ATTEMPT, remember_prepare=["ValueError"], remember_failed=["ValueError"]
    )
    assert (status, len(calls)) == ("FAILED", 6)


def test_the_listing_goes_on_with_what_it_was_answered_and_over_a_fault(engine: Engine) -> None:
    first = {"tenant_id": None, "listed": 9, "objects": 5, "after": "a", "more": True}
    last = {**first, "after": None, "more": False}
    status, calls = engine.run("listing", {}, list_erased=[first, "InternalFailure", last])
    assert (status, calls) == ("SUCCEEDED", [["list_erased", {}], *[["list_erased", first]] * 2])


def test_what_functions_name_in_aws_exists(aws_and_runtime: tuple[Aws, Path]) -> None:
    aws, _ = aws_and_runtime
    signed = aws.client("kms").sign(KeyId=SIGN_KEY, Message=b"x", SigningAlgorithm="ECDSA_SHA_256")
    assert signed["Signature"]
    lock = aws.client("s3").get_object_lock_configuration(Bucket=CHECKPOINT_BUCKET)
    assert lock["ObjectLockConfiguration"]["ObjectLockEnabled"] == "Enabled"
    assert EVENT_BUS in {bus["Name"] for bus in aws.client("events").list_event_buses()["EventBuses"]}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_definition_names_its_tasks_and_bounds_them(machine: Any) -> None:
    asl = json.loads(definition(machine))
    assert asl["TimeoutSeconds"]
    tasks = [state for state in asl["States"].values() if state["Type"] == "Task"]
    assert {task["Resource"] for task in tasks} == {function_arn(name) for name in machine.tasks}
    for task in tasks:
        name = task["Resource"].rpartition(":")[2]
        assert task["TimeoutSeconds"] > function(name).timeout_s
        assert task["Retry"] and "States.ALL" not in str(task["Retry"])
