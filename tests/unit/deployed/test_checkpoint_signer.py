"""Heads are signed so that anyone with the public key can check them, and stored where they stay."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from functions.checkpoint_sign import handler as signer
from tests.checkpoint_account import checkpoint_account

HEAD = {
    "tenant_id": "01890000-0000-7000-8000-000000000001",
    "sequence": 7,
    "head": "ab" * 32,
    "at": "2026-11-29T20:00:00Z",
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    with checkpoint_account(monkeypatch) as account:
        yield account


def _public(aws: dict[str, Any]) -> EllipticCurvePublicKey:
    key = load_der_public_key(aws["kms"].get_public_key(KeyId=aws["key"])["PublicKey"])
    assert isinstance(key, EllipticCurvePublicKey)
    return key


def test_a_stored_head_verifies_with_the_public_key(aws: dict[str, Any]) -> None:
    answer = signer.handler({"heads": [HEAD], "next": "01890000-0000-7000-8000-000000000002"}, None)
    (checkpoint,) = answer["checkpoints"]
    assert answer["next"] == "01890000-0000-7000-8000-000000000002"
    assert checkpoint["object_key"].endswith("/00000000000000000007.json")
    stored = aws["s3"].get_object(
        Bucket="checkpoints", Key=checkpoint["object_key"], VersionId=checkpoint["version_id"]
    )
    document = json.loads(stored["Body"].read())
    assert json.loads(document["statement"]) == {**HEAD, "version": 1}
    signature = base64.b64decode(document["signature"])
    _public(aws).verify(signature, document["statement"].encode(), ECDSA(SHA256()))
    assert checkpoint["signature"] == document["signature"]
    assert {key: checkpoint[key] for key in HEAD} == HEAD


def test_a_retry_adds_a_version_and_removes_none(aws: dict[str, Any]) -> None:
    first, second = (signer.handler({"heads": [HEAD]}, None)["checkpoints"][0] for _ in range(2))
    assert first["object_key"] == second["object_key"]
    assert first["version_id"] != second["version_id"]
    versions = aws["s3"].list_object_versions(Bucket="checkpoints")["Versions"]
    assert {version["VersionId"] for version in versions} == {first["version_id"], second["version_id"]}


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_id": "../other"},
        {"tenant_id": None},
        {"sequence": 0},
        {"sequence": "7"},
        {"sequence": 2**63},
        {"head": "AB" * 32},
        {"head": "ab" * 31},
        {"at": ""},
        {"at": "x" * 41},
    ],
)
def test_one_malformed_head_stops_the_batch_before_anything_is_signed(
    aws: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(signer.CheckpointRefused) as caught:
        signer.handler({"heads": [HEAD, {**HEAD, **change}]}, None)
    assert str(caught.value) == "head_malformed"
    assert "Versions" not in aws["s3"].list_object_versions(Bucket="checkpoints")


def test_a_fault_of_aws_leaves_by_its_code_alone(
    aws: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REM_CHECKPOINT_BUCKET", "no-such-bucket")
    with pytest.raises(signer.CheckpointNotStored) as caught:
        signer.handler({"heads": [HEAD]}, None)
    assert str(caught.value) == "NoSuchBucket"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_statements_do_not_depend_on_member_order() -> None:
    assert signer.statement(HEAD) == signer.statement(dict(reversed(HEAD.items())))
