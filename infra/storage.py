"""Buckets: audit checkpoints under Object Lock, bundles and reports, the page, and all access logs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.nag import accept, objects_id
from infra.settings import REPORT_DAYS, Profile

ATTEMPTS = "attempts/"
"""What the steps of a remember attempt hand on lies below it (domain/remember_work.py), for a day at most."""
CHECKPOINTS = "checkpoints/"
LISTINGS = "listings/"
"""In the locked bucket: signed heads of audit chains; tombstones and legal holds (flows/listing.py)."""
LINK_LIFE_MS = 300_000
"""A presigned link older than this opens nothing, whatever it was signed for."""


class Storage(Construct):
    """Everything private, encrypted, TLS only; a dev stack empties its buckets when destroyed."""

    def __init__(self, scope: Construct, id: str, profile: Profile, *, key: kms.IKey) -> None:
        super().__init__(scope, id)
        self._profile = profile
        self._key = key
        self.logs = self._bucket(
            "Logs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            # CloudFront still writes its standard logs through an access control list.
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_PREFERRED,
            lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(profile.log_days))],
        )
        accept(self.logs, "It is the log bucket: logging itself would never end.", "AwsSolutions-S1")
        lock_for = cdk.Duration.days(profile.checkpoint_lock_days)
        compliance = profile.checkpoint_lock == "COMPLIANCE"
        self._checkpoints = self._bucket(
            "Checkpoints",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            versioned=True,
            object_lock_enabled=True,
            object_lock_default_retention=(
                s3.ObjectLockRetention.compliance(lock_for)
                if compliance
                else s3.ObjectLockRetention.governance(lock_for)
            ),
            server_access_logs_bucket=self.logs,
            server_access_logs_prefix="checkpoints/",
        )
        # Unversioned: what is removed or has expired is gone.
        self._work = self._bucket(
            "Work",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            lifecycle_rules=[
                s3.LifecycleRule(prefix="bundles/", expiration=cdk.Duration.days(1)),
                s3.LifecycleRule(prefix=ATTEMPTS, expiration=cdk.Duration.days(1)),
                s3.LifecycleRule(prefix="reports/", expiration=cdk.Duration.days(REPORT_DAYS)),
            ],
            server_access_logs_bucket=self.logs,
            server_access_logs_prefix="work/",
        )
        self._work.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["s3:GetObject"],
                resources=[self.work_objects],
                conditions={"NumericGreaterThan": {"s3:signatureAge": LINK_LIFE_MS}},
            )
        )
        self.page = self._bucket(
            "Page",
            encryption=s3.BucketEncryption.S3_MANAGED,
            server_access_logs_bucket=self.logs,
            server_access_logs_prefix="page/",
        )

    @property
    def checkpoints_name(self) -> str:
        return self._checkpoints.bucket_name

    @property
    def work_name(self) -> str:
        return self._work.bucket_name

    @property
    def work_objects(self) -> str:
        return self._work.arn_for_objects("*")

    def may_use_work(self, grantee: iam.IRole) -> None:
        """May write, link and remove bundles and reports; not list them."""
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:PutObject", "s3:GetObject", "s3:DeleteObject"],
            resource_arns=[self.work_objects],
        )
        self._key.grant(grantee, "kms:GenerateDataKey", "kms:Decrypt")
        accept(grantee, "One object a bundle or report.", objects_id(self._work))

    def may_hand_on(self, grantee: iam.IRole) -> None:
        """May write, read and remove what attempts hand on, and nothing else of the bucket."""
        below = f"{ATTEMPTS}*"
        self._may(grantee, below, "s3:PutObject", "s3:GetObject", "s3:DeleteObject")
        accept(grantee, "Two objects a turn of an attempt, under this prefix.", objects_id(self._work, below))

    def may_answer(self, grantee: iam.IRole) -> None:
        """May read what the model is asked and write what it answers; neither remove nor read anything else."""
        asked, answered = f"{ATTEMPTS}*.req", f"{ATTEMPTS}*.res"
        self._may(grantee, asked, "s3:GetObject")
        self._may(grantee, answered, "s3:PutObject")
        for below in (asked, answered):
            accept(grantee, "One object a turn of an attempt.", objects_id(self._work, below))

    def _may(self, grantee: iam.IRole, below: str, *actions: str) -> None:
        objects = self._work.arn_for_objects(below)
        iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[objects])
        self._key.grant(grantee, "kms:GenerateDataKey", "kms:Decrypt")

    @property
    def listings(self) -> str:
        return self._checkpoints.arn_for_objects(f"{LISTINGS}*")

    def may_store_checkpoints(self, grantee: iam.IRole) -> None:
        """May add checkpoints; neither read nor remove them."""
        self._may_lock_away(grantee, f"{CHECKPOINTS}*", "One object a checkpoint, under this prefix.")

    def may_store_listings(self, grantee: iam.IRole) -> None:
        """May add listings of erasures and holds; neither read nor remove them."""
        self._may_lock_away(grantee, f"{LISTINGS}*", "One object a listing, under this prefix.")

    def _may_lock_away(self, grantee: iam.IRole, where: str, why: str) -> None:
        objects = self._checkpoints.arn_for_objects(where)
        iam.Grant.add_to_principal(grantee=grantee, actions=["s3:PutObject"], resource_arns=[objects])
        self._key.grant(grantee, "kms:GenerateDataKey", "kms:Decrypt")
        accept(grantee, why, objects_id(self._checkpoints, where))

    def _bucket(self, id: str, **properties: object) -> s3.Bucket:
        keep = self._profile.keep_data
        return s3.Bucket(
            self,
            id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=cdk.RemovalPolicy.RETAIN if keep else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not keep,
            **properties,  # type: ignore[arg-type]
        )
