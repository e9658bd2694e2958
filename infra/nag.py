"""Acknowledged findings of cdk-nag: each says, beside the resource, why the rule does not apply."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import IConstruct


def check_with_nag(app: cdk.App) -> None:
    """Both packs run at synth; an unacknowledged finding fails it."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def managed_policy_id(name: str) -> str:
    """The finding for that AWS managed service policy."""
    return f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/{name}]"


def objects_id(bucket: s3.IBucket, below: str = "*") -> str:
    """The finding for a grant on the objects of that bucket of this stack."""
    resource = bucket.node.default_child
    assert isinstance(resource, cdk.CfnElement)
    return f"AwsSolutions-IAM5[Resource::<{cdk.Stack.of(bucket).get_logical_id(resource)}.Arn>/{below}]"


def accept(where: IConstruct, reason: str, *ids: str) -> None:
    """Acknowledges findings of `where` and below it: `AwsSolutions-IAM5[Resource::*]`, for instance.

    cdk-nag wants the pack's name before the rule's; an id without it would match nothing, silently.
    """
    for finding in ids:
        pack = finding.split("-", maxsplit=1)[0]
        cdk.Validations.of(where).acknowledge(cdk.Acknowledgment(id=f"{pack}::{finding}", reason=reason))
