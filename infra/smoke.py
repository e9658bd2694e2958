"""`make smoke`: deploys dev into ministack on loopback and asks the gateway a few questions.

A check of the wiring (layers, handlers, routes, scopes, the gateway's own answers), not of AWS: the emulator has
no database for us, so an authorized route must end in our function's own problem document. What the emulator
cannot make is left out of the template first; where it cannot go on, the check is skipped with a line.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from infra.settings import ROOT, load_profile

MINISTACK = "ministack==1.5.33"
START_S = 90

LEFT_OUT = frozenset(
    {
        "AWS::Cognito::ManagedLoginBranding",
        "AWS::EC2::FlowLog",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        # They would run functions that need a database, or CDK's own helpers.
        "Custom::CDKBucketDeployment",
        "Custom::S3AutoDeleteObjects",
        "Custom::Trigger",
    }
)
"""Resource types that the emulator does not know or that make no sense in it; alarms by metric math too."""


class SmokeFailed(Exception):
    """An answer is not the one that the template promises."""


class CannotGoOn(Exception):
    """The emulator's limit, not our fault."""


def without_what_is_missing(template: dict[str, Any]) -> dict[str, Any]:
    """The template less LEFT_OUT, and less the dependencies on it."""
    resources = template["Resources"]
    gone = {
        id
        for id, r in resources.items()
        if r["Type"] in LEFT_OUT or (r["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in r["Properties"])
    }
    kept = {}
    for id, resource in resources.items():
        if id not in gone:
            waits = resource.get("DependsOn", [])
            waits = [waits] if isinstance(waits, str) else waits
            kept[id] = {**resource, "DependsOn": [other for other in waits if other not in gone]}
    return {**template, "Resources": kept}


@contextmanager
def emulator(environment: dict[str, str], port: int) -> Iterator[None]:
    """ministack on loopback, ended by its own process group. Raises CannotGoOn when it does not start."""
    command = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable]
    command += ["--from", MINISTACK, "--with", "cryptography"]
    bound = {**environment, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0"}
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "ministack"], cwd=folder, env=bound, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_for(process, port)
            yield
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 15)
            process.wait(timeout=30)


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise CannotGoOn(f"{MINISTACK} does not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _cdk(environment: dict[str, str], *arguments: str) -> None:
    command = [str(ROOT / "infra/node_modules/.bin/cdk"), *arguments, "--no-notices"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2_000:]
        limit = any(
            words in said for words in ("Unrecognized resource types", "is not supported", "not implemented")
        )
        raise (CannotGoOn if limit else SmokeFailed)(f"cdk {arguments[0]}: {said}")


def ask(url: str, token: str | None = None) -> tuple[int, dict[str, Any]]:
    """Status and JSON body."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=40) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def agent_token(endpoint: str, scope: str) -> str:
    """An access token of a new agent's client, by client credentials."""
    cognito = boto3.client("cognito-idp")
    (pool,) = cognito.list_user_pools(MaxResults=2)["UserPools"]
    client = cognito.create_user_pool_client(
        UserPoolId=pool["Id"],
        ClientName="smoke",
        GenerateSecret=True,
        AllowedOAuthFlowsUserPoolClient=True,
        AllowedOAuthFlows=["client_credentials"],
        AllowedOAuthScopes=[scope],
    )["UserPoolClient"]
    form = {
        "grant_type": "client_credentials",
        "scope": scope,
        "client_id": client["ClientId"],
        "client_secret": client["ClientSecret"],
    }
    request = urllib.request.Request(f"{endpoint}/oauth2/token", data=urllib.parse.urlencode(form).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        token: str = json.loads(answer.read())["access_token"]
        return token


def check(endpoint: str) -> None:
    """Asks the gateway. Raises SmokeFailed."""
    (api,) = boto3.client("apigateway").get_rest_apis()["items"]
    base = f"{endpoint}/restapis/{api['id']}/live/_user_request_"
    token = agent_token(endpoint, "memory/read")
    questions: tuple[tuple[str, str, str | None, int, str | None], ...] = (
        ("health is answered by the gateway", "/v1/health", None, 200, None),
        ("an unknown path is a problem document", "/v1/nowhere", None, 404, "not_found"),
        ("no token is a problem document", "/v1/me", None, 401, "unauthenticated"),
        ("a token without the scope stays outside", "/v1/settings", token, 401, "unauthenticated"),
    )
    for what, path, sent, status, code in questions:
        found, body = ask(base + path, sent)
        if (found, body.get("code")) != (status, code):
            raise SmokeFailed(f"{what}: {found} {body}")
        print(f"ok  {what}")
    status, body = ask(f"{base}/v1/me", token)
    # Our function's own words: the gateway's, had the function not run, are those of infra/problems.py.
    if status < 500 or body.get("title") == "The function failed." or "correlation_id" not in body:
        raise SmokeFailed(f"an authorized route does not reach the function: {status} {body}")
    print("ok  an authorized route reaches its function, which misses its database and says so")


def main() -> int:
    profile = load_profile("dev")
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    # The emulator's account and credentials; the operator's own are not passed on.
    emulated = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": profile.region,
        "AWS_DEFAULT_REGION": profile.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CI": "true",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment = {**kept, **emulated}
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(emulated)
    try:
        with tempfile.TemporaryDirectory() as outdir, emulator(kept, port):
            synth = [str(ROOT / ".venv-cdk/bin/python"), "app.py"]
            subprocess.run(
                synth, check=True, cwd=ROOT, env={**kept, "CDK_OUTDIR": outdir, "REM_PROFILE": "dev"}
            )
            path = Path(outdir, f"{profile.prefix}.template.json")
            path.write_text(json.dumps(without_what_is_missing(json.loads(path.read_text()))))
            account = f"aws://000000000000/{profile.region}"
            _cdk(environment, "bootstrap", account, "--app", outdir)
            _cdk(environment, "deploy", "--app", outdir, "--require-approval", "never")
            print("ok  the stack deploys into ministack")
            check(endpoint)
    except CannotGoOn as limit:
        print(f"smoke: skipped: {limit}")
        return 0
    except SmokeFailed as failure:
        print(f"smoke: FAILED: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
