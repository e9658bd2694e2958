"""What the signer of checkpoints finds in its account: a signing key and a bucket under Object Lock, on moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.checkpoint_sign import handler as signer


@contextmanager
def checkpoint_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Clients `kms` and `s3`, and the `key`'s ARN; the signer's environment names them."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        kms, s3 = boto3.client("kms"), boto3.client("s3")
        key = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="ECC_NIST_P256")["KeyMetadata"]["Arn"]
        s3.create_bucket(
            Bucket="checkpoints",
            CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
            ObjectLockEnabledForBucket=True,
        )
        monkeypatch.setenv("REM_SIGN_KEY", key)
        monkeypatch.setenv("REM_CHECKPOINT_BUCKET", "checkpoints")
        signer._client.cache_clear()
        yield {"kms": kms, "s3": s3, "key": key}
        signer._client.cache_clear()
