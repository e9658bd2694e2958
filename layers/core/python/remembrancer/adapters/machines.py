"""Waking the outbox after a commit: one execution a tenant and five seconds, however many commits."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any
from uuid import UUID

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

SLOT_S = 5

_log = logging.getLogger(__name__)


class OutboxKick:
    """Starts the outbox machine. A failure is logged and left to the machine's own schedule: the alert waits
    in its row, and the request that raised it has committed."""

    def __init__(self, machine_arn: str, *, client: Any = None) -> None:
        self._arn = machine_arn
        self._client = client

    def __call__(self, tenant_id: UUID, now: datetime) -> None:
        slot = int(now.timestamp()) // SLOT_S
        try:
            self._states().start_execution(
                stateMachineArn=self._arn,
                name=f"{tenant_id}-{slot}",
                input=json.dumps({"tenant_id": str(tenant_id)}),
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code != "ExecutionAlreadyExists":
                _log.warning("outbox_kick_failed", extra={"code": code})
        except BotoCoreError as error:
            _log.warning("outbox_kick_failed", extra={"code": type(error).__name__})

    def _states(self) -> Any:
        if self._client is None:
            import boto3

            self._client = boto3.client(
                "stepfunctions", config=Config(connect_timeout=1, read_timeout=2, retries={"max_attempts": 1})
            )
        return self._client
