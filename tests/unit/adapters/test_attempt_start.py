"""An attempt's workflow starts once; a caller that waits is told when it cannot."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from remembrancer.adapters.machines import AttemptStart, JobStart
from remembrancer.domain.ports import MachineUnavailable

ATTEMPT = UUID(int=7)


class States:
    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.started: list[dict[str, Any]] = []

    def start_execution(self, **given: Any) -> None:
        self.started.append(given)
        if self.fault is not None:
            raise self.fault


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "arn of the machine"}}, "StartExecution")


def test_its_name_is_the_attempt_and_its_input_is_that_alone() -> None:
    states = States()
    AttemptStart("arn", client=states)(ATTEMPT)
    [given] = states.started
    name = f"att_{ATTEMPT.hex}"
    assert (given["name"], json.loads(given["input"])) == (name, {"attempt_id": name})


def test_a_double_start_is_a_success() -> None:
    AttemptStart("arn", client=States(client_error("ExecutionAlreadyExists")))(ATTEMPT)


@pytest.mark.parametrize(
    "fault", [client_error("ThrottlingException"), EndpointConnectionError(endpoint_url="http://states")]
)
def test_a_start_that_failed_is_told_by_its_code(fault: Exception) -> None:
    with pytest.raises(MachineUnavailable) as caught:
        AttemptStart("arn", client=States(fault))(ATTEMPT)
    assert "arn" not in str(caught.value) and "http" not in str(caught.value)
    JobStart("arn", client=States(fault))(ATTEMPT, ATTEMPT)  # its schedule finds what was not started
