"""Signs the heads of audit chains with KMS and puts them under Object Lock.

Between `checkpoint_head` and `checkpoint_record`: this function has reach and no database. A retry signs
again and writes another version beside the first; both are true, and neither can be removed.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

SIGNING_ALGORITHM = "ECDSA_SHA_256"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class CheckpointRefused(Exception):
    """A head is not what `checkpoint_head` writes: nothing of the batch is signed."""


class CheckpointNotStored(Exception):
    """KMS or S3 did not answer; the text is the code of the fault alone, for it enters the history."""


def statement(head: dict[str, Any]) -> bytes:
    """The bytes that are signed: canonical JSON of the tenant, the sequence, the head's hash and the time.

    Raises CheckpointRefused.
    """
    tenant, sequence, digest, at = (head.get(key) for key in ("tenant_id", "sequence", "head", "at"))
    valid = (
        isinstance(tenant, str)
        and _UUID.fullmatch(tenant)
        and isinstance(sequence, int)
        and 0 < sequence < 2**63
        and isinstance(digest, str)
        and _SHA256.fullmatch(digest)
        and isinstance(at, str)
        and 0 < len(at) <= 40
    )
    if not valid:
        raise CheckpointRefused("head_malformed")
    body = {"at": at, "head": digest, "sequence": sequence, "tenant_id": tenant, "version": 1}
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")


def object_key(tenant: str, sequence: int) -> str:
    """Sorts by sequence within a tenant."""
    return f"checkpoints/{tenant}/{sequence:020d}.json"


@functools.cache
def _client(service: str) -> Any:
    # What does not answer is told by its code while there is time to: the machine tries again.
    quick = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2})
    return boto3.client(service, config=quick)


def _store(signed: bytes) -> dict[str, Any]:
    head = json.loads(signed)
    try:
        signature = _client("kms").sign(
            KeyId=os.environ["REM_SIGN_KEY"],
            Message=signed,
            MessageType="RAW",
            SigningAlgorithm=SIGNING_ALGORITHM,
        )
        encoded = base64.b64encode(signature["Signature"]).decode("ascii")
        document = {
            "algorithm": SIGNING_ALGORITHM,
            "key_id": signature["KeyId"],
            "signature": encoded,
            "statement": signed.decode("ascii"),
        }
        key = object_key(head["tenant_id"], head["sequence"])
        stored = _client("s3").put_object(
            Bucket=os.environ["REM_CHECKPOINT_BUCKET"],
            Key=key,
            Body=json.dumps(document, sort_keys=True).encode("ascii"),
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
        )
    except ClientError as error:
        raise CheckpointNotStored(error.response.get("Error", {}).get("Code", "unknown")) from None
    except BotoCoreError as error:
        raise CheckpointNotStored(type(error).__name__) from None
    return {
        "tenant_id": head["tenant_id"],
        "sequence": head["sequence"],
        "head": head["head"],
        "at": head["at"],
        "object_key": key,
        "version_id": stored.get("VersionId"),
        "signature": encoded,
    }


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """`{"heads": [{tenant_id, sequence, head, at}], "next"}` -> `{"checkpoints": [...], "next"}`.

    Raises CheckpointRefused (final) or CheckpointNotStored (worth a retry).
    """
    statements = [statement(head) for head in event["heads"]]
    return {"checkpoints": [_store(signed) for signed in statements], "next": event.get("next")}
