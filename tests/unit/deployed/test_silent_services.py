"""A service that does not answer is told of in time: before the database ends the transaction that asks it, and before
the function that asks is killed without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from functions import manifest
from functions.checkpoint_sign import handler as signer
from functions.outbox_publish import handler as publisher
from remembrancer.adapters.machines import TenantKick
from remembrancer.api import wiring
from remembrancer.settings import Settings

IN_TRANSACTION_S = 15
"""infra/database.py: idle_in_transaction_session_timeout."""


def _publishers_client(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(publisher, "settings", lambda: Settings.read({"REM_EVENT_BUS": "bus"}))
    [found] = publisher._publishers.__wrapped__()
    return found._client


CLIENTS: dict[str, tuple[float, Callable[[pytest.MonkeyPatch], Any]]] = {
    "keys, within transactions": (
        IN_TRANSACTION_S,
        lambda _: wiring._mac_keys(Settings.read({"REM_KMS_MAC_KEY": "key"}))._client,  # type: ignore[attr-defined]
    ),
    "machines, behind a commit": (10, lambda _: TenantKick("arn")._states()),
    "the bus": (manifest.function("outbox_publish").timeout_s - 5, _publishers_client),
    "signing": (
        manifest.function("checkpoint_sign").timeout_s / 2 - 5,
        lambda _: signer._client.__wrapped__("kms"),
    ),
    "the locked bucket": (
        manifest.function("checkpoint_sign").timeout_s / 2 - 5,
        lambda _: signer._client.__wrapped__("s3"),
    ),
}


@pytest.mark.parametrize("which", CLIENTS)
def test_silence_is_over_in_time(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    allowed_s, made = CLIENTS[which]
    config = made(monkeypatch).meta.config
    tries = config.retries.get("total_max_attempts", 5)
    assert (config.connect_timeout + config.read_timeout) * tries < allowed_s
