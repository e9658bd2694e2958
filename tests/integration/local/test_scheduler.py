"""Schedules tick, go on after a failure, and never run twice at a time."""

from __future__ import annotations

import asyncio
from collections import Counter

from functions.manifest import Schedule
from local.scheduler import Scheduler

TICK = 0.2


class Told(Exception):
    """The one kind of failure that the scheduler is told to survive."""


def run(*schedules: Schedule, seconds: float, slow_s: float = 0.0) -> tuple[Counter[str], list[str], int]:
    calls: Counter[str] = Counter()
    log: list[str] = []
    running, most = 0, 0

    async def call(name: str) -> None:
        nonlocal running, most
        calls[name] += 1
        if name == "failing":
            raise Told
        running += 1
        most = max(most, running)
        await asyncio.sleep(slow_s)
        running -= 1

    async def start(name: str) -> None:
        calls[f"machine {name}"] += 1

    async def main() -> None:
        scheduler = Scheduler(schedules, invoke=call, start=start, log=log.append, failures=(Told,))
        task = asyncio.create_task(scheduler.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    return calls, log, most


def schedule(target: str, ticks: float = 1) -> Schedule:
    return Schedule(target, target, every_s=TICK * ticks, dev_every_s=1)  # type: ignore[arg-type]


def test_functions_and_machines_run_in_their_rhythm() -> None:
    calls, _, _ = run(schedule("sweep"), schedule("outbox.asl", 2), schedule("rare", 100), seconds=TICK * 4.5)
    assert 2 <= calls["sweep"] <= 4
    assert 1 <= calls["machine outbox"] <= 2
    assert calls["rare"] == 0


def test_a_failure_is_logged_and_the_schedule_goes_on() -> None:
    calls, log, _ = run(schedule("failing"), schedule("sweep"), seconds=TICK * 3.5)
    assert calls["failing"] >= 2 and calls["sweep"] >= 2
    assert log[0] == "schedule failing failed: Told"


def test_a_long_run_skips_ticks() -> None:
    calls, _, most = run(schedule("sweep"), seconds=TICK * 5.5, slow_s=TICK * 2.5)
    assert most == 1 and 1 <= calls["sweep"] <= 2
