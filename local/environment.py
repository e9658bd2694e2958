"""Each function's environment here: the names that the stack gives it, with local values.

REM_DATABASE_URL stands for the REM_DB_* of IAM authentication and REM_MAC_KEY_FILE for REM_KMS_MAC_KEY,
whose keys would not survive a restart of the emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from functions.manifest import Function
from infra.environment import constants_for, names_for
from local.aws import CHECKPOINT_BUCKET, EVENT_BUS, SIGN_KEY, WORK_BUCKET
from local.machines import machine_arn

_REPLACED: Final = frozenset(("REM_DB_HOST", "REM_DB_NAME", "REM_DB_USER", "REM_DB_CA", "REM_KMS_MAC_KEY"))


@dataclass(frozen=True)
class LocalValues:
    """`database_url` gives a role's URL; `public_bases` are the origins that a signature may name."""

    database_url: Callable[[str], str]
    public_bases: tuple[str, ...]
    aws_endpoint: str
    model_dir: Path
    mac_key_file: Path
    assessor: Mapping[str, str] = field(default_factory=dict)
    """REM_ASSESSOR and what belongs to it, when it is not the embedded rules."""

    def __call__(self, function: Function) -> Mapping[str, str]:
        """The variables of a function."""
        names = names_for(function)
        values = {
            **constants_for(function),
            "REM_PROFILE": "local",
            "REM_PUBLIC_BASES": " ".join(self.public_bases),
            "REM_MODEL_DIR": str(self.model_dir),
            "REM_OUTBOX_MACHINE": machine_arn("outbox"),
            "REM_JOBS_MACHINE": machine_arn("jobs"),
            "REM_ERASURE_MACHINE": machine_arn("erasure"),
            "REM_LISTING_MACHINE": machine_arn("listing"),
            "REM_ASSESSOR": "rules",
            "REM_ASSESSOR_MODEL": "",
            "REM_GUARDRAIL": "",
            "REM_REMEMBER_MACHINE": machine_arn("remember"),
            "REM_WORK_BUCKET": WORK_BUCKET,
            "REM_EVENT_BUS": EVENT_BUS,
            "REM_SIGN_KEY": SIGN_KEY,
            "REM_CHECKPOINT_BUCKET": CHECKPOINT_BUCKET,
            "REM_LISTING_BUCKET": CHECKPOINT_BUCKET,
        }
        local = {
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_XRAY_SDK_ENABLED": "false",
            "POWERTOOLS_TRACE_DISABLED": "true",
        }
        if "REM_ASSESSOR" in names:
            local |= self.assessor
        if function.db_role is not None:
            local["REM_DATABASE_URL"] = self.database_url(function.db_role)
        if "REM_KMS_MAC_KEY" in names:
            local["REM_MAC_KEY_FILE"] = str(self.mac_key_file)
        return {name: values[name] for name in names if name not in _REPLACED} | local


def as_role(url: str, role: str) -> str:
    """A database URL with another user and the same password. Raises ValueError for a URL without a user."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        raise ValueError("REM_DATABASE_URL names no user")
    _, colon, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=f"{quote(role, safe='')}{colon}{password}@{host}"))
