"""What no caller waits for waits itself while a paused cluster resumes: half a minute of refused connections."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from functions import manifest
from remembrancer.api import tasks
from remembrancer.domain.problems import Problem

UNATTENDED = [entry for entry in manifest.FUNCTIONS if entry.db_role is not None and not entry.routes]
EVENT: dict[str, Any] = {
    "attempt_id": "att_" + "0" * 32,
    "error": "InternalFailure",
    "checkpoints": [{}],
    "delivered": [],
}


class Context:
    """Lambda's, of a function that started now and sleeps where it is told to."""

    def __init__(self, timeout_s: float) -> None:
        self.left_s = timeout_s

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left_s * 1000)


class Cluster:
    """Refuses for so many seconds of the function's time; each refusal takes the client's three."""

    def __init__(self, context: Context, resumes_in_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.context = context
        self.resumed_at = context.left_s - resumes_in_s
        self.reached = False
        monkeypatch.setattr(tasks.time, "sleep", self._pass)

    def _pass(self, seconds: float) -> None:
        self.context.left_s -= seconds

    def services(self) -> Any:
        if self.context.left_s > self.resumed_at:
            self._pass(3)
            raise Problem("database_resuming", retry_after=20)
        self.reached = True
        raise LookupError("reached")


@pytest.mark.parametrize("entry", UNATTENDED, ids=lambda entry: entry.name)
@pytest.mark.parametrize("resumes_in_s", [0, 18])
def test_a_function_that_nobody_waits_for_reaches_a_cluster_that_resumes(
    entry: manifest.Function, resumes_in_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(f"functions.{entry.name}.handler")
    context = Context(entry.timeout_s)
    cluster = Cluster(context, resumes_in_s, monkeypatch)
    monkeypatch.setattr(module, "services", cluster.services)
    with pytest.raises(Exception, match=r"internal_failure|reached"):
        module.handler(EVENT, context)
    assert cluster.reached and context.left_s > 0


def test_migrations_and_schedules_outwait_a_deep_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """They start first, and one that gives up stops a deployment or rings an alarm."""
    alone = {schedule.target for schedule in manifest.SCHEDULES} & {entry.name for entry in UNATTENDED}
    for name in sorted(alone | {"migrate"}):
        context = Context(manifest.function(name).timeout_s)
        cluster = Cluster(context, 60, monkeypatch)
        module = importlib.import_module(f"functions.{name}.handler")
        monkeypatch.setattr(module, "services", cluster.services)
        with pytest.raises(Exception, match=r"internal_failure|reached"):
            module.handler(EVENT, context)
        assert cluster.reached, name


def test_a_cluster_that_does_not_resume_is_told_in_time_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(30)
    cluster = Cluster(context, 1_000, monkeypatch)
    with pytest.raises(Exception, match="database_resuming") as raised:
        tasks.task(lambda event, _: cluster.services())({}, context)
    assert type(raised.value).__name__ == "DatabaseResuming", "the machine retries it"
    assert 0 < context.left_s < 15


def test_nothing_else_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def work() -> None:
        tried.append(1)
        raise Problem("database_failure", retry_after=1)

    with pytest.raises(Problem):
        tasks.awake(work, Context(600))
    assert tried == [1]
