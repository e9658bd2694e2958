"""Database passwords from IAM: a token lives fifteen minutes, and new ones are throttled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

REUSE_S = 600.0


class IamToken:
    """Called at each connect; answers the same token for ten minutes."""

    def __init__(
        self,
        host: str,
        user: str,
        region: str,
        *,
        client: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client` is boto3's RDS client; made at the first call when not given."""
        self._host = host
        self._user = user
        self._region = region
        self._client = client
        self._clock = clock
        self._token: str | None = None
        self._made_at = 0.0

    def __call__(self) -> str:
        if self._token is None or self._clock() - self._made_at >= REUSE_S:
            if self._client is None:
                import boto3

                self._client = boto3.client("rds", region_name=self._region)
            self._token = self._client.generate_db_auth_token(
                DBHostname=self._host, Port=5432, DBUsername=self._user, Region=self._region
            )
            self._made_at = self._clock()
        return self._token
