"""KMS or S3 failing during a checkpoint: nothing is recorded, the chain goes on, the next run catches up, somebody
is told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from functions.checkpoint_sign import handler as signer
from remembrancer.flows import audit
from tests.checkpoint_account import checkpoint_account
from tests.integration.probe import QuickEmbedder, scratch_world
from tests.integration.world import AUDITOR, World

ROOT = Path(__file__).resolve().parents[3]
MACHINE = json.loads((ROOT / "infra" / "checkpoint.asl.json").read_text())


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    with checkpoint_account(monkeypatch) as account:
        yield account


def run(world: World) -> int:
    """The machine's three steps; checkpoints recorded."""
    found, following = audit.heads(world.services("checkpoint_head"), None)
    signed = signer.handler({"heads": found, "next": following}, None)
    for checkpoint in signed["checkpoints"]:
        audit.record_checkpoint(world.services("checkpoint_record"), checkpoint)
    return len(signed["checkpoints"])


def failing(service: str, error: Exception) -> Any:
    class Client:
        def __getattr__(self, name: str) -> Any:
            def call(**_: Any) -> Any:
                raise error

            return call

    real = signer._client

    def client(name: str) -> Any:
        return Client() if name == service else real(name)

    return client


@pytest.mark.parametrize("service", ["kms", "s3"])
@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "zq canary"}}, "Any"),
        EndpointConnectionError(endpoint_url="https://zq.canary.test"),
    ],
)
def test_a_fault_records_nothing_and_the_next_run_catches_up(
    world: World, aws: dict[str, Any], monkeypatch: pytest.MonkeyPatch, service: str, error: Exception
) -> None:
    world.ingest("Before.")
    with monkeypatch.context() as broken:
        broken.setattr(signer, "_client", failing(service, error))
        with pytest.raises(signer.CheckpointNotStored) as raised:
            run(world)
        assert "canary" not in str(raised.value) and raised.value.__cause__ is None
    assert world.sql("select count(*) as n from audit_checkpoint") == [{"n": 0}]
    # The chain does not wait for a checkpoint.
    world.ingest("Meanwhile.")
    verified = world.call(AUDITOR, "GET", "/v1/audit/verify").json
    assert (verified["ok"], verified["checkpoints"]) == (True, 0)
    assert run(world) == 1 and run(world) == 0
    verified = world.call(AUDITOR, "GET", "/v1/audit/verify?from=checkpoint").json
    assert (verified["ok"], verified["checkpoints"], verified["rows"]) == (True, 1, 0)


def test_stored_and_not_recorded_is_stored_again_and_both_are_true(world: World, aws: dict[str, Any]) -> None:
    """The function dies between the bucket and the database."""
    world.ingest("One.")
    found, _ = audit.heads(world.services("checkpoint_head"), None)
    [lost] = signer.handler({"heads": found}, None)["checkpoints"]
    assert run(world) == 1
    [row] = world.sql("select seq, encode(head, 'hex') as head, version_id from audit_checkpoint")
    assert (row["seq"], row["head"]) == (lost["sequence"], lost["head"]) and row["version_id"] != lost[
        "version_id"
    ]
    public = load_der_public_key(aws["kms"].get_public_key(KeyId=aws["key"])["PublicKey"])
    assert isinstance(public, EllipticCurvePublicKey)
    for version in (lost["version_id"], row["version_id"]):
        stored = aws["s3"].get_object(Bucket="checkpoints", Key=lost["object_key"], VersionId=version)
        document = json.loads(stored["Body"].read())
        public.verify(
            base64.b64decode(document["signature"]), document["statement"].encode(), ECDSA(SHA256())
        )
        assert json.loads(document["statement"])["head"] == row["head"]


def test_the_machine_tries_again_and_then_fails_aloud() -> None:
    """No Catch hides the fault: the execution fails, and every machine's failures are alarmed (infra/watch.py)."""
    step = MACHINE["States"]["SignStore"]
    [retry] = [one for one in step["Retry"] if "CheckpointNotStored" in one["ErrorEquals"]]
    assert retry["MaxAttempts"] >= 3 and retry["BackoffRate"] > 1
    assert not [name for name, state in MACHINE["States"].items() if "Catch" in state]
    assert "CheckpointRefused" not in json.dumps(MACHINE), "a malformed head is not worth a retry"
