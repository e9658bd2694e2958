"""KMS: one key for data at rest, one that derives the tenants' HMAC keys, one that signs checkpoints."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.settings import Profile


class Keys(Construct):
    """Grants by intent; who else may use a key is its owner's business (the account's IAM policies)."""

    def __init__(self, scope: Construct, id: str, profile: Profile) -> None:
        super().__init__(scope, id)
        removal = cdk.RemovalPolicy.RETAIN if profile.keep_data else cdk.RemovalPolicy.DESTROY
        self.data = kms.Key(
            self,
            "Data",
            description="Remembrancer: data at rest",
            enable_key_rotation=True,
            removal_policy=removal,
        )
        self.mac = kms.Key(
            self,
            "Mac",
            description="Remembrancer: derives the tenants' HMAC keys",
            key_spec=kms.KeySpec.HMAC_256,
            key_usage=kms.KeyUsage.GENERATE_VERIFY_MAC,
            removal_policy=removal,
        )
        self.sign = kms.Key(
            self,
            "Sign",
            description="Remembrancer: signs audit checkpoints",
            key_spec=kms.KeySpec.ECC_NIST_P256,
            key_usage=kms.KeyUsage.SIGN_VERIFY,
            removal_policy=removal,
        )

    def may_derive(self, grantee: iam.IGrantable) -> None:
        """May derive tenant keys (GenerateMac)."""
        self.mac.grant(grantee, "kms:GenerateMac")

    def may_sign(self, grantee: iam.IGrantable) -> None:
        """May sign checkpoints."""
        self.sign.grant(grantee, "kms:Sign")
