"""Nothing secret in the template; every wildcard of a policy is one of the few that are argued for."""

from __future__ import annotations

import json
import re

import pytest
from templates import Synthesized, listed

UPLOADER = "CustomCDKBucketDeployment"
"""CDK's own uploader of the page; its permissions are CDK's, acknowledged in infra/page.py."""

NO_RESOURCE_TO_NAME = {
    "cloudfront:CreateInvalidation",
    "cloudfront:GetInvalidation",
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}


def _allowed(stack: Synthesized) -> list[tuple[str, str, object]]:
    return [
        (id, action, resource)
        for id, policy in stack.of_type("AWS::IAM::Policy").items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]


def test_no_secret_anywhere(stack: Synthesized) -> None:
    text = json.dumps(stack.template)
    assert not stack.of_type("AWS::SecretsManager::Secret")
    assert "secretsmanager" not in text.lower()
    cluster = stack.one("AWS::RDS::DBCluster")
    assert cluster["MasterUserAuthenticationType"] == "iam-db-auth"
    assert "MasterUserPassword" not in cluster
    for _, function in stack.functions().values():
        for name in function["Environment"]["Variables"]:
            assert not re.search(r"SECRET|PASSWORD|TOKEN", name)


def test_actions_are_spelled_out(stack: Synthesized) -> None:
    starred = {action for id, action, _ in _allowed(stack) if "*" in action and not id.startswith(UPLOADER)}
    assert starred == set()


def test_a_bare_star_stands_only_where_no_resource_can(stack: Synthesized) -> None:
    starred = {action for _, action, resource in _allowed(stack) if resource == "*"}
    assert starred <= NO_RESOURCE_TO_NAME


def test_partial_wildcards_are_the_objects_of_one_bucket(stack: Synthesized) -> None:
    partial = [
        (action, json.dumps(resource))
        for id, action, resource in _allowed(stack)
        if resource != "*" and "*" in json.dumps(resource) and not id.startswith(UPLOADER)
    ]
    assert {action for action, _ in partial} == {"s3:PutObject", "s3:GetObject", "s3:DeleteObject"}
    for _, resource in partial:
        assert re.search(r'"/(checkpoints/|listings/|attempts/)?\*(\.re[qs])?"', resource), resource


def test_managed_policies_are_the_two_of_aws_that_have_no_substitute(stack: Synthesized) -> None:
    names = {
        name
        for role in stack.of_type("AWS::IAM::Role").values()
        for policy in role["Properties"].get("ManagedPolicyArns", [])
        for name in re.findall(r"service-role/(\w+)", json.dumps(policy))
    }
    assert names == {"AmazonAPIGatewayPushToCloudWatchLogs", "AWSLambdaBasicExecutionRole"}


@pytest.mark.parametrize("kind", ["AWS::S3::Bucket"])
def test_buckets_are_private_and_encrypted(stack: Synthesized, kind: str) -> None:
    for id, bucket in stack.of_type(kind).items():
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, id
        assert properties["BucketEncryption"], id
    guarded = [
        statement
        for policy in stack.of_type("AWS::S3::BucketPolicy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport") == "false"
    ]
    assert len(guarded) == len(stack.of_type(kind))
