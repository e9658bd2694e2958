"""The state machines of the manifest on moto's engine: the files that CDK deploys, with the same names."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from functions.manifest import Machine
from local.runtime import ACCOUNT, REGION, ROOT, function_arn

_ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/local"


def machine_arn(name: str) -> str:
    return f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:{name}"


def definition(machine: Machine, folder: Path = ROOT / "infra") -> str:
    """The machine's ASL with `${function}` replaced by the function's ARN, as CDK's DefinitionSubstitutions
    do. Raises KeyError for a placeholder that is no task of the machine, ValueError for invalid JSON."""
    text = (folder / f"{machine.name}.asl.json").read_text()
    arns = {task: function_arn(task) for task in machine.tasks}
    # `$.path` of JSONPath is left alone: only braces are placeholders.
    filled = re.sub(r"\$\{(\w+)\}", lambda placeholder: arns[placeholder[1]], text)
    json.loads(filled)
    return filled


class Machines:
    """Blocking: call it off the event loop. `client` is boto3's Step Functions client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def create(self, machines: Iterable[Machine], folder: Path = ROOT / "infra") -> None:
        for machine in machines:
            self._client.create_state_machine(
                name=machine.name, definition=definition(machine, folder), roleArn=_ROLE, type="STANDARD"
            )

    def start(self, name: str, payload: str = "{}") -> str:
        """The execution's ARN."""
        started = self._client.start_execution(
            stateMachineArn=machine_arn(name),
            name=str(uuid.uuid4()),  # AWS makes one up, moto 5.2 calls every unnamed execution "None"
            input=payload,
        )
        arn: str = started["executionArn"]
        return arn
