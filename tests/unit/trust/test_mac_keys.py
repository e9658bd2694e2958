"""Keyed digests: separate by purpose, tenant and version, equal across processes, bounded traffic to KMS."""

import hmac
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import boto3
import botocore.exceptions
import pytest
from moto import mock_aws

from remembrancer.adapters.keys import CACHE_KEYS, FileMacKeys, KmsMacKeys

TENANT = UUID("018f0000-0000-7000-8000-000000000001")
OTHER = UUID("018f0000-0000-7000-8000-000000000002")


class CountingClient:
    """Passes calls on and counts them."""

    def __init__(self, client):
        self.client = client
        self.calls = 0

    def generate_mac(self, **arguments):
        self.calls += 1
        return self.client.generate_mac(**arguments)


@pytest.fixture
def kms():
    with mock_aws():
        client = boto3.client(
            "kms", region_name="eu-central-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        key_id = client.create_key(KeyUsage="GENERATE_VERIFY_MAC", KeySpec="HMAC_256")["KeyMetadata"]["KeyId"]
        yield CountingClient(client), key_id


@pytest.fixture(params=["file", "kms"])
def make(request, tmp_path):
    """A maker of independent instances over one secret."""
    if request.param == "file":
        return lambda **options: FileMacKeys(tmp_path / "mac.key", **options)
    client, key_id = request.getfixturevalue("kms")
    return lambda **options: KmsMacKeys(client, key_id, **options)


def test_a_digest_is_stable_across_instances(make):
    digest = make().mac("audit", TENANT, b"message")
    assert len(digest) == 32
    assert make().mac("audit", TENANT, b"message") == digest


def test_purpose_tenant_version_and_message_separate(make):
    digests = {
        make().mac("audit", TENANT, b"message"),
        make().mac("tombstone", TENANT, b"message"),
        make().mac("audit", OTHER, b"message"),
        make().mac("audit", TENANT, b"massage"),
        make(version=2).mac("audit", TENANT, b"message"),
    }
    assert len(digests) == 5


@pytest.mark.parametrize("purpose", ["", "a|b", "Audit", "a b", "é", "x" * 33, "audit\n"])
def test_a_purpose_cannot_forge_a_label(make, purpose):
    with pytest.raises(ValueError, match="purpose"):
        make().mac(purpose, TENANT, b"")


def test_the_file_is_private_and_random(tmp_path):
    FileMacKeys(tmp_path / "one")
    FileMacKeys(tmp_path / "two")
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert (tmp_path / "one").stat().st_size == 32
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["one", "two"]


def test_the_file_derivation_is_the_documented_one(tmp_path):
    keys = FileMacKeys(tmp_path / "key")
    secret = (tmp_path / "key").read_bytes()
    derived = hmac.digest(secret, f"remembrancer|audit|{TENANT}|1".encode(), "sha256")
    assert keys.mac("audit", TENANT, b"m") == hmac.digest(derived, b"m", "sha256")


def test_racing_processes_agree_on_one_key(tmp_path):
    path = tmp_path / "key"
    with ThreadPoolExecutor(16) as pool:
        digests = set(pool.map(lambda _: FileMacKeys(path).mac("audit", TENANT, b"m"), range(64)))
    assert len(digests) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_an_open_or_broken_key_file_is_refused(tmp_path):
    path = tmp_path / "key"
    FileMacKeys(path)
    path.chmod(0o640)
    with pytest.raises(ValueError, match="owner"):
        FileMacKeys(path)
    path.chmod(0o600)
    path.write_bytes(os.urandom(31))
    with pytest.raises(ValueError, match="32 bytes"):
        FileMacKeys(path)


def test_kms_is_asked_once_in_five_minutes(kms):
    client, key_id = kms
    now = 1000.0
    keys = KmsMacKeys(client, key_id, clock=lambda: now)
    first = keys.mac("audit", TENANT, b"1")
    now += 299.9
    assert keys.mac("audit", TENANT, b"1") == first
    assert client.calls == 1
    keys.mac("audit", OTHER, b"1")
    assert client.calls == 2
    now += 0.1
    assert keys.mac("audit", TENANT, b"1") == first
    assert client.calls == 3


def test_the_cache_is_bounded():
    class Fixed:
        calls = 0

        def generate_mac(self, **_):
            self.calls += 1
            return {"Mac": bytes(32)}

    client = Fixed()
    keys = KmsMacKeys(client, "key", clock=lambda: 0.0)
    for number in range(CACHE_KEYS + 1):
        keys.mac("audit", UUID(int=number), b"")
    keys.mac("audit", UUID(int=CACHE_KEYS), b"")
    assert client.calls == CACHE_KEYS + 1
    keys.mac("audit", UUID(int=0), b"")
    assert client.calls == CACHE_KEYS + 2


def test_a_failure_of_kms_is_not_hidden_nor_remembered(kms):
    client, key_id = kms
    with pytest.raises(botocore.exceptions.ClientError):
        KmsMacKeys(client, "alias/absent").mac("audit", TENANT, b"")

    class FailsOnce:
        calls = 0

        def generate_mac(self, **arguments):
            self.calls += 1
            if self.calls == 1:
                raise botocore.exceptions.ConnectTimeoutError(endpoint_url="kms")
            return client.generate_mac(**arguments)

    keys = KmsMacKeys(FailsOnce(), key_id)
    with pytest.raises(botocore.exceptions.ConnectTimeoutError):
        keys.mac("audit", TENANT, b"")
    assert keys.mac("audit", TENANT, b"") == KmsMacKeys(client, key_id).mac("audit", TENANT, b"")
