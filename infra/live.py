"""`make live`: what can be read off a deployed stack, with the operator's credentials; skipped without.

Reads only. What cannot be read is listed in docs/operate.md, "What only an account can show".
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from functions import manifest
from infra.settings import Profile, load_profile

TIMEOUT_S = 30


class CheckFailed(Exception):
    """What a check found instead."""


@dataclass(frozen=True)
class Deployed:
    """A stack to look at: its profile, outputs, and the operator's session."""

    profile: Profile
    outputs: dict[str, str]
    session: Any


def expect(found: object, wanted: object, what: str) -> None:
    """Raises CheckFailed unless they are equal."""
    if found != wanted:
        raise CheckFailed(f"{what}: found {found!r}, expected {wanted!r}")


def get(url: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, body. Raises CheckFailed when nothing answers."""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return answer.status, _lower(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lower(error.headers), error.read()
    except OSError as error:
        raise CheckFailed(f"{url} does not answer: {type(error).__name__}") from None


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _problem(url: str, status: int, code: str) -> None:
    found, headers, body = get(url)
    expect(found, status, url)
    expect(headers.get("content-type"), "application/problem+json", f"content type of {url}")
    expect(json.loads(body)["code"], code, f"code of {url}")


def health_answers_on_both_names(stack: Deployed) -> None:
    for base in (stack.outputs["ApiUrl"], stack.outputs["PageUrl"]):
        status, _, body = get(f"{base}/v1/health")
        expect((status, json.loads(body)), (200, {"status": "ok"}), f"health at {base}")


def the_gateway_answers_with_problem_documents(stack: Deployed) -> None:
    _problem(f"{stack.outputs['ApiUrl']}/v1/no-such-path", 404, "not_found")
    _problem(f"{stack.outputs['ApiUrl']}/v1/me", 401, "unauthenticated")


def the_page_is_strict(stack: Deployed) -> None:
    status, headers, _ = get(f"{stack.outputs['PageUrl']}/")
    expect(status, 200, "the page")
    policy = headers.get("content-security-policy", "")
    expect("default-src 'none'" in policy and "unsafe" not in policy, True, "its content security policy")


def functions_are_active(stack: Deployed) -> None:
    client = stack.session.client("lambda")
    for entry in manifest.FUNCTIONS:
        name = f"{stack.profile.prefix}-{entry.name}"
        found = client.get_function_configuration(FunctionName=name)
        expect((found["State"], found["LastUpdateStatus"]), ("Active", "Successful"), name)


def the_cluster_takes_iam_only_and_pauses_as_told(stack: Deployed) -> None:
    client = stack.session.client("rds")
    tagged = [
        cluster
        for page in client.get_paginator("describe_db_clusters").paginate()
        for cluster in page["DBClusters"]
        if stack.profile.tags.items() <= {tag["Key"]: tag["Value"] for tag in cluster["TagList"]}.items()
    ]
    expect(len(tagged), 1, "clusters of this profile")
    (cluster,) = tagged
    expect(cluster["IAMDatabaseAuthenticationEnabled"], True, "IAM authentication")
    expect(cluster["EngineVersion"], stack.profile.engine_version, "engine")
    scaling = cluster["ServerlessV2ScalingConfiguration"]
    expect(scaling["MinCapacity"], stack.profile.min_acu, "smallest capacity")
    expect(scaling.get("SecondsUntilAutoPause"), stack.profile.auto_pause_s, "pause")
    expect("MasterUserSecret" in cluster, False, "a secret of the master user")


def checkpoints_are_locked(stack: Deployed) -> None:
    bucket = stack.outputs["CheckpointBucket"]
    found = stack.session.client("s3").get_object_lock_configuration(Bucket=bucket)
    retention = found["ObjectLockConfiguration"]["Rule"]["DefaultRetention"]
    expect(retention["Mode"], stack.profile.checkpoint_lock, "lock of the checkpoints")


def no_alarm_rings(stack: Deployed) -> None:
    found = stack.session.client("cloudwatch").describe_alarms(
        AlarmNamePrefix=f"{stack.profile.prefix}-", StateValue="ALARM"
    )
    expect([alarm["AlarmName"] for alarm in found["MetricAlarms"]], [], "ringing alarms")


CHECKS: tuple[Callable[[Deployed], None], ...] = (
    health_answers_on_both_names,
    the_gateway_answers_with_problem_documents,
    the_page_is_strict,
    functions_are_active,
    the_cluster_takes_iam_only_and_pauses_as_told,
    checkpoints_are_locked,
    no_alarm_rings,
)


def run(stack: Deployed, checks: tuple[Callable[[Deployed], None], ...] = CHECKS) -> int:
    """The number of checks that failed; prints one line a check."""
    failed = 0
    for check in checks:
        name = check.__name__.replace("_", " ")
        try:
            check(stack)
        except (CheckFailed, ClientError, BotoCoreError, KeyError, ValueError) as error:
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {error}")
        else:
            print(f"ok      {name}")
    return failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.live", description="Checks a deployed stack.")
    parser.add_argument("--profile", default="dev", help="a profile of cdk.json")
    profile = load_profile(parser.parse_args(arguments).profile)
    session = boto3.Session(region_name=profile.region)
    if session.get_credentials() is None:
        print("live: skipped, no AWS credentials")
        return 0
    try:
        described = session.client("cloudformation").describe_stacks(StackName=profile.prefix)["Stacks"]
    except (ClientError, BotoCoreError) as error:
        print(f"live: {profile.prefix} cannot be read: {error}", file=sys.stderr)
        return 1
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described[0].get("Outputs", [])}
    return 1 if run(Deployed(profile, outputs, session)) else 0


if __name__ == "__main__":
    sys.exit(main())
