"""Starting state machines after a commit: outbox and listing once a tenant and five seconds, a job by its id."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from remembrancer.domain.ids import format_id
from remembrancer.domain.ports import MachineUnavailable

SLOT_S = 5

_log = logging.getLogger(__name__)


class _Machine:
    """A failure to start is logged and left to the machine's own schedule: what is to be done waits in its
    row, and the request that made it has committed."""

    def __init__(self, machine_arn: str, *, client: Any = None) -> None:
        self._arn = machine_arn
        self._client = client

    def _start(self, name: str, given: Mapping[str, str]) -> None:
        failure = self._try(name, given)
        if failure is not None:
            _log.warning("machine_start_failed", extra={"code": failure})

    def _try(self, name: str, given: Mapping[str, str]) -> str | None:
        """The code of the failure, if any; an execution that runs already is none."""
        try:
            self._states().start_execution(stateMachineArn=self._arn, name=name, input=json.dumps(given))
        except ClientError as error:
            code: str = error.response["Error"]["Code"]
            return None if code == "ExecutionAlreadyExists" else code
        except BotoCoreError as error:
            return type(error).__name__
        return None

    def _states(self) -> Any:
        if self._client is None:
            import boto3

            self._client = boto3.client(
                "stepfunctions", config=Config(connect_timeout=1, read_timeout=2, retries={"max_attempts": 1})
            )
        return self._client


class TenantKick(_Machine):
    """Wakes what looks for a tenant's work by itself, once however many commits there are in five seconds."""

    def __call__(self, tenant_id: UUID, now: datetime) -> None:
        self._start(f"{tenant_id}-{int(now.timestamp()) // SLOT_S}", {"tenant_id": str(tenant_id)})


class JobStart(_Machine):
    """Begins the work on a job, once."""

    def __call__(self, tenant_id: UUID, job_id: UUID) -> None:
        self._start(str(job_id), {"tenant_id": str(tenant_id), "job_id": str(job_id)})


class AttemptStart(_Machine):
    """Begins the workflow of an attempt, once: its caller waits, and so is told of a failure."""

    def __call__(self, attempt_id: UUID) -> None:
        """Raises MachineUnavailable."""
        name = format_id("att", attempt_id)
        failure = self._try(name, {"attempt_id": name})
        if failure is not None:
            raise MachineUnavailable(failure)
