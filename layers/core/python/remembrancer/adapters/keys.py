"""MacKeys: keyed digests whose keys never lie in the database, from a file locally and from KMS in AWS.

One secret serves all: the key of a purpose and tenant is MAC(secret, "remembrancer|purpose|tenant|version"),
and a digest is HMAC-SHA-256 under that key.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

KEY_BYTES = 32
CACHE_S = 300.0
CACHE_KEYS = 1024
"""Tenants times purposes that one process remembers; the oldest are fetched again."""

_PURPOSE = re.compile(r"[a-z][a-z0-9_]{0,31}")


class FileMacKeys:
    """The local secret: 32 random bytes in a file of mode 0600, made on first use."""

    def __init__(self, path: Path, *, version: int = 1) -> None:
        """Raises ValueError for a file that others can read or that is not a key of ours."""
        if not path.exists():
            _create(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise ValueError("the key file may be readable by its owner only")
        self._secret = path.read_bytes()
        if len(self._secret) != KEY_BYTES:
            raise ValueError(f"the key file must hold {KEY_BYTES} bytes")
        self._version = version

    def mac(self, purpose: str, tenant: UUID, message: bytes) -> bytes:
        """HMAC-SHA-256, 32 bytes. Raises ValueError for a purpose that is not a lower-case word."""
        key = hmac.digest(self._secret, _label(purpose, tenant, self._version), "sha256")
        return hmac.digest(key, message, "sha256")


class KmsMacKeys:
    """The secret is a KMS key of usage GENERATE_VERIFY_MAC and spec HMAC_256; derived keys live 5 minutes."""

    def __init__(
        self, client: Any, key_id: str, *, version: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`client` is boto3's KMS client; `clock` counts seconds."""
        self._client = client
        self._key_id = key_id
        self._version = version
        self._clock = clock
        self._derived: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()

    def mac(self, purpose: str, tenant: UUID, message: bytes) -> bytes:
        """HMAC-SHA-256, 32 bytes. Raises botocore's errors when KMS fails, ValueError for a bad purpose."""
        return hmac.digest(self._key(_label(purpose, tenant, self._version)), message, "sha256")

    def _key(self, label: bytes) -> bytes:
        now = self._clock()
        fetched, key = self._derived.get(label, (None, b""))
        if fetched is None or now - fetched >= CACHE_S:
            answer = self._client.generate_mac(KeyId=self._key_id, MacAlgorithm="HMAC_SHA_256", Message=label)
            key = bytes(answer["Mac"])
            self._derived[label] = (now, key)
            self._derived.move_to_end(label)
            if len(self._derived) > CACHE_KEYS:
                self._derived.popitem(last=False)
        return key


def _label(purpose: str, tenant: UUID, version: int) -> bytes:
    if not _PURPOSE.fullmatch(purpose):
        raise ValueError("a purpose is a lower-case word")
    return f"remembrancer|{purpose}|{tenant}|{version}".encode()


def _create(path: Path) -> None:
    """Whole or not at all, and never over a key that another process made first."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()
