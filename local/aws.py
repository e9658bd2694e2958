"""The AWS services that functions call, played by moto in a process of its own; nothing survives a restart.

Its Step Functions engine invokes functions through our front door: in server mode moto's Lambda client goes
to `localhost:$MOTO_PORT`, so that variable names the front door while moto itself listens elsewhere.
Run as a program this module is that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from local.http import HOST
from local.runtime import ACCOUNT, REGION, ROOT

SIGN_KEY: Final = "alias/remembrancer-sign"
CHECKPOINT_BUCKET: Final = "remembrancer-checkpoints"
WORK_BUCKET: Final = "remembrancer-work"
EVENT_BUS: Final = "remembrancer"
_START_S: Final = 180.0
_CREDENTIALS: Final[Mapping[str, str]] = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}


class AwsFailed(Exception):
    """The process did not come up; the text names its log."""


class Aws:
    """One moto server. `endpoint` is known before it answers."""

    def __init__(self, log_dir: Path) -> None:
        self._log = log_dir / "aws.log"
        self._port = _free_port()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self._port}"

    def client(self, service: str) -> Any:
        """A boto3 client of it. Importing boto3 takes half a second: call it off the event loop."""
        import boto3
        from botocore.config import Config

        config = Config(retries={"total_max_attempts": 2}, proxies={})
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.endpoint, config=config, **_CREDENTIALS
        )

    async def start(self, front_door_port: int) -> None:
        """Returns when it answers and the keys, buckets and buses exist. Raises AwsFailed."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "local.aws", str(self._port)),
                env={**os.environ, "MOTO_PORT": str(front_door_port), "MOTO_ACCOUNT_ID": ACCOUNT},
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        await self._wait_until_it_answers()
        await asyncio.to_thread(self._create)

    async def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + _START_S
        while asyncio.get_running_loop().time() < deadline and self._process.returncode is None:
            try:
                _, writer = await asyncio.open_connection(HOST, self._port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return
        raise AwsFailed(f"the AWS emulator did not start (see {self._log})")

    def _create(self) -> None:
        """What the stack creates in AWS and functions name in their environment."""
        switch = urllib.request.Request(
            f"{self.endpoint}/moto-api/config",
            data=json.dumps({"stepfunctions": {"execute_state_machine": True}}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(switch, timeout=30).close()
        kms = self.client("kms")
        key = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="ECC_NIST_P256")["KeyMetadata"]["KeyId"]
        kms.create_alias(AliasName=SIGN_KEY, TargetKeyId=key)
        self.client("s3").create_bucket(
            Bucket=CHECKPOINT_BUCKET,
            CreateBucketConfiguration={"LocationConstraint": REGION},
            ObjectLockEnabledForBucket=True,
        )
        self.client("s3").create_bucket(
            Bucket=WORK_BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        self.client("events").create_event_bus(Name=EVENT_BUS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _serve(port: int) -> None:
    os.nice(10)  # its imports alone keep a core busy for seconds
    # The parent's end of the pipe closes however the parent dies.
    threading.Thread(target=_leave_with_parent, daemon=True).start()

    from moto.server import main

    main(["-H", HOST, "-p", str(port)])


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
