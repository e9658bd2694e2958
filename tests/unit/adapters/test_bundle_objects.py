"""Bundles and reports in S3: written, linked, removed; a fault leaves by its code alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from remembrancer.adapters.objects import S3Objects
from remembrancer.domain.ports import ObjectStoreUnavailable

BUCKET = "work"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        made = boto3.client("s3", region_name="us-east-1")
        made.create_bucket(Bucket=BUCKET)
        yield made


def test_written_linked_and_removed(client: Any) -> None:
    store = S3Objects(BUCKET)
    store.put("bundles/a", b"line\n", "application/x-ndjson")
    stored = client.get_object(Bucket=BUCKET, Key="bundles/a")
    assert stored["Body"].read() == b"line\n" and stored["ContentType"] == "application/x-ndjson"
    # A bundle is a download; only a report's page opens in the browser.
    assert stored["ContentDisposition"] == "attachment"
    assert store.get("bundles/a") == b"line\n" and store.get("bundles/b") is None
    link = store.link("bundles/a", 300)
    assert "/bundles/a?" in link and "X-Amz-Expires=300" in link and "AWS4-HMAC-SHA256" in link
    store.delete([f"bundles/{n}" for n in range(1_500)] + ["bundles/a"])
    assert client.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    store.delete([])


def test_a_fault_is_its_code(client: Any) -> None:
    with pytest.raises(ObjectStoreUnavailable, match=r"^NoSuchBucket$"):
        S3Objects("absent").put("k", b"secret text", "text/plain")
    with pytest.raises(ObjectStoreUnavailable, match=r"^NoSuchBucket$"):
        S3Objects("absent").delete(["k"])
    with pytest.raises(ObjectStoreUnavailable, match=r"^NoSuchBucket$"):
        S3Objects("absent").get("k")


@pytest.mark.parametrize("region", ["eu-central-1", "eu-north-1", "il-central-1"])
def test_a_link_names_the_region_of_its_bucket(
    client: Any, monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    """By the name without one S3 answers in regions with a redirection, to which no signature holds, or not at all."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    link = S3Objects(BUCKET).link("bundles/a", 300)
    assert link.startswith(f"https://{BUCKET}.s3.{region}.amazonaws.com/bundles/a?")


def test_an_emulator_is_asked_by_its_address(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert S3Objects(BUCKET).link("bundles/a", 300).startswith(f"http://127.0.0.1:4566/{BUCKET}/bundles/a?")
