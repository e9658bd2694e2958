"""Outbox and listing are woken after commits that raised an alert, once a tenant and five seconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError

from remembrancer.adapters import machines
from remembrancer.api import wiring
from remembrancer.settings import Settings

TENANT = UUID(int=7)
NOW = datetime(2026, 5, 1, 12, 0, 1, tzinfo=UTC)


class States:
    def __init__(self, faulty: str | None = None) -> None:
        self.faulty = faulty
        self.started: list[tuple[str, str, Any]] = []

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> None:
        self.started.append((stateMachineArn, name, json.loads(input)))
        if stateMachineArn == self.faulty:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "StartExecution")


def kick(monkeypatch: pytest.MonkeyPatch, states: States, **env: str) -> Any:
    monkeypatch.setattr(machines.TenantKick, "_states", lambda self: states)
    return wiring._kick(Settings.read(env))


def test_one_name_a_tenant_and_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    states = States()
    wake = kick(monkeypatch, states, REM_OUTBOX_MACHINE="outbox")
    for late in (0, 3, 4):
        wake(TENANT, NOW + timedelta(seconds=late))
    names = [name for _, name, _ in states.started]
    assert names[0] == names[1] != names[2] and all(name.startswith(str(TENANT)) for name in names)
    assert states.started[0][2] == {"tenant_id": str(TENANT)}


@pytest.mark.parametrize("faulty", [None, "outbox", "listing"])
def test_where_erasures_are_made_both_are_woken_whatever_becomes_of_the_other(
    monkeypatch: pytest.MonkeyPatch, faulty: str | None
) -> None:
    states = States(faulty)
    kick(monkeypatch, states, REM_OUTBOX_MACHINE="outbox", REM_LISTING_MACHINE="listing")(TENANT, NOW)
    assert [arn for arn, _, _ in states.started] == ["outbox", "listing"]


def test_without_machines_nothing_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kick(monkeypatch, States()) is None
