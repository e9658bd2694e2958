"""The operator's bootstrap: shown first, done when told, and accepted by the core's own request model."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from moto import mock_aws

from functions import manifest
from local import bootstrap
from remembrancer.flows.bootstrap import BootstrapRequest

STACK = "remembrancer-dev"


def _pem(path: Path, key: Any) -> Path:
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return _pem(tmp_path / "admin.pem", ed25519.Ed25519PrivateKey.generate())


class _Session:
    """Cognito is moto's; CloudFormation and Lambda answer what the test says."""

    def __init__(self, pool: str, answer: dict[str, Any], error: bool = False) -> None:
        self.events: list[dict[str, Any]] = []
        self._pool, self._answer, self._error = pool, answer, error

    def client(self, service: str, *, config: Any = None) -> Any:
        if service == "lambda":
            self.waits_s = config.read_timeout
        return boto3.client("cognito-idp") if service == "cognito-idp" else self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        assert StackName == STACK
        outputs = {
            "UserPoolId": self._pool,
            "Issuer": "https://issuer.example",
            "MigrateFunction": "remembrancer-dev-migrate",
            "PageUrl": "https://page.example",
            "ApiUrl": "https://api.example/live",
        }
        return {"Stacks": [{"Outputs": [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]}]}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        assert FunctionName == "remembrancer-dev-migrate"
        self.events.append(json.loads(Payload))
        failed = {"FunctionError": "Unhandled"} if self._error else {}
        return {"Payload": io.BytesIO(json.dumps(self._answer).encode()), **failed}


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        cognito = boto3.client("cognito-idp")
        made = cognito.create_user_pool(PoolName="p", UsernameAttributes=["email"])["UserPool"]["Id"]
        for group in ("reviewer", "admin"):
            cognito.create_group(UserPoolId=made, GroupName=group)
        yield made


def _plan(key: Path, *more: str) -> bootstrap.Plan:
    arguments = ["--tenant", "Acme", "--admin", "ada@example.com", "--key", str(key), *more]
    plan, stack, apply = bootstrap.plan_of(arguments)
    assert (stack, apply) == (STACK, False)
    return plan


def test_without_apply_it_only_tells(key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--tenant", "Acme", "--admin", "ada@example.com", "--key", str(key), "--agent", "Bot=abc"]
    assert bootstrap.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "create tenant 'Acme'" in printed
    assert "invite ada@example.com as admin with a signing key (ed25519)" in printed
    assert "register agent 'Bot', client abc" in printed
    assert "nothing was done" in printed


def test_the_event_is_one_that_the_core_accepts(pool: str, key: Path) -> None:
    session = _Session(pool, {"tenant_id": "t"})
    plan = _plan(key, "--person", "rob@example.com=reviewer", "--agent", "Bot=client1")
    answer = bootstrap.run(plan, STACK, session)
    assert answer["tenant_id"] == "t" and answer["page"] == "https://page.example"
    assert session.waits_s > manifest.function("migrate").timeout_s, "it would work on, unheard"
    (event,) = session.events
    assert event.pop("action") == "bootstrap"
    request = BootstrapRequest.model_validate(event)
    admin, reviewer, agent = request.principals
    assert (admin.kind, admin.capabilities, len(admin.keys)) == ("human", ["admin"], 1)
    assert admin.keys[0].algorithm == "ed25519"
    assert (reviewer.capabilities, reviewer.keys) == (["reviewer"], ())
    assert (agent.kind, agent.subject, agent.capabilities) == ("agent", "client1", [])


def test_people_get_their_groups_and_a_second_run_invites_nobody_twice(pool: str, key: Path) -> None:
    session = _Session(pool, {})
    plan = _plan(key, "--person", "rob@example.com=reviewer")
    bootstrap.run(plan, STACK, session)
    bootstrap.run(plan, STACK, session)
    assert session.events[0] == session.events[1]
    cognito = boto3.client("cognito-idp")
    assert len(cognito.list_users(UserPoolId=pool)["Users"]) == 2
    reviewers = cognito.list_users_in_group(UserPoolId=pool, GroupName="reviewer")["Users"]
    assert len(reviewers) == 1


def test_a_refusal_is_told_with_its_class(pool: str, key: Path) -> None:
    session = _Session(pool, {"errorType": "BootstrapRefused", "errorMessage": "/tenant"}, error=True)
    with pytest.raises(bootstrap.BootstrapFailed, match="BootstrapRefused: /tenant"):
        bootstrap.run(_plan(key), STACK, session)


def test_p256_keys_sign_too(tmp_path: Path) -> None:
    path = _pem(tmp_path / "k.pem", ec.generate_private_key(ec.SECP256R1()))
    assert bootstrap.read_public_key(path)["algorithm"] == "ecdsa-p256-sha256"


@pytest.mark.parametrize(
    "make", [lambda: ec.generate_private_key(ec.SECP384R1()), lambda: rsa.generate_private_key(65537, 2048)]
)
def test_other_keys_do_not(tmp_path: Path, make: Any) -> None:
    with pytest.raises(bootstrap.BootstrapFailed, match="only Ed25519 and P-256"):
        bootstrap.read_public_key(_pem(tmp_path / "k.pem", make()))


@pytest.mark.parametrize("content", [b"", b"not a key", b"\xff\xfe\x00"])
def test_a_file_without_a_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.pem"
    path.write_bytes(content)
    with pytest.raises(bootstrap.BootstrapFailed, match=r"k\.pem holds no public key"):
        bootstrap.read_public_key(path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--person", "rob@example.com=boss"), "no such group: boss"),
        (("--person", "rob"), "is no e-mail address"),
        (("--person", "ada@example.com=pii"), "named twice"),
        (("--agent", "Bot"), "write NAME=CLIENT_ID"),
    ],
)
def test_a_faulty_plan_is_refused_before_anything_is_done(
    key: Path, more: tuple[str, ...], said: str
) -> None:
    with pytest.raises(bootstrap.BootstrapFailed, match=said):
        _plan(key, *more)


def test_a_missing_key_file_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--tenant", "A", "--admin", "a@b.example", "--key", str(tmp_path / "none.pem")]
    assert bootstrap.main(arguments) == 1
    assert "No such file" in capsys.readouterr().err
