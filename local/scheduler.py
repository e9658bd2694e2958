"""EventBridge Scheduler on one machine: ticks the manifest's schedules of the profile prod."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from functions.manifest import Schedule

MACHINE_SUFFIX: Final = ".asl"


class Scheduler:
    """Each schedule runs every `every_s` seconds, first after one period, never twice at a time.

    `invoke` calls a function, `start` a state machine, both by name; what they raise of `failures` is logged
    and the schedule goes on.
    """

    def __init__(
        self,
        schedules: Iterable[Schedule],
        *,
        invoke: Callable[[str], Awaitable[None]],
        start: Callable[[str], Awaitable[None]],
        log: Callable[[str], None],
        failures: tuple[type[Exception], ...],
    ) -> None:
        self._schedules = tuple(schedules)
        self._invoke = invoke
        self._start = start
        self._log = log
        self._failures = failures

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for schedule in self._schedules:
                group.create_task(self._repeat(schedule))

    async def _repeat(self, schedule: Schedule) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            # A run longer than its period skips ticks and keeps the rhythm.
            due += schedule.every_s * max(1, -(-(loop.time() - due) // schedule.every_s))
            await asyncio.sleep(due - loop.time())
            try:
                if schedule.target.endswith(MACHINE_SUFFIX):
                    await self._start(schedule.target.removesuffix(MACHINE_SUFFIX))
                else:
                    await self._invoke(schedule.target)
            except self._failures as error:
                self._log(f"schedule {schedule.name} failed: {type(error).__name__}")
