"""Bundles and reports in a bucket of our own, reached through the gateway endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from remembrancer.domain.ports import ObjectStoreUnavailable

_PAGE = 1_000
"""Keys that S3 deletes in one call."""


class S3Objects:
    """Raises ObjectStoreUnavailable, with the fault's code alone, when S3 does not do what it is asked."""

    def __init__(self, bucket: str, *, client: Any = None) -> None:
        self._bucket = bucket
        self._client = client

    def put(self, key: str, body: bytes, media_type: str) -> None:
        self._call(
            "put_object",
            Key=key,
            Body=body,
            ContentType=media_type,
            ContentDisposition="attachment" if media_type != "text/html; charset=utf-8" else "inline",
            ChecksumAlgorithm="SHA256",
        )

    def get(self, key: str) -> bytes | None:
        try:
            found: bytes = self._s3().get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "unknown")
            if code == "NoSuchKey":
                return None
            raise ObjectStoreUnavailable(code) from None
        except (BotoCoreError, OSError) as error:  # the body breaks off as an OSError of urllib3
            raise ObjectStoreUnavailable(type(error).__name__) from None
        return found

    def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _PAGE):
            objects = [{"Key": key} for key in keys[start : start + _PAGE]]
            done = self._call("delete_objects", Delete={"Objects": objects, "Quiet": True})
            if done.get("Errors"):
                raise ObjectStoreUnavailable(str(done["Errors"][0].get("Code", "unknown")))

    def link(self, key: str, seconds: int) -> str:
        try:
            made: str = self._s3().generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=seconds
            )
        except (BotoCoreError, ClientError) as error:
            raise ObjectStoreUnavailable(type(error).__name__) from None
        return made

    def _call(self, name: str, **parameters: Any) -> Any:
        try:
            return getattr(self._s3(), name)(Bucket=self._bucket, **parameters)
        except ClientError as error:
            raise ObjectStoreUnavailable(error.response.get("Error", {}).get("Code", "unknown")) from None
        except BotoCoreError as error:
            raise ObjectStoreUnavailable(type(error).__name__) from None

    def _s3(self) -> Any:
        if self._client is None:
            import boto3

            # Links to objects under a KMS key must be of version 4, which is not everywhere the default; and name the
            # bucket's region, which otherwise requests do and links do not: S3 sends a new bucket's on to another
            # host, for which they are not signed.
            config = Config(
                signature_version="s3v4",
                s3={"addressing_style": "virtual"},
                connect_timeout=2,
                read_timeout=20,
                retries={"max_attempts": 3},
            )
            self._client = boto3.client("s3", config=config)
        return self._client
