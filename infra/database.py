"""Aurora PostgreSQL Serverless v2 that no password opens: the master user signs in with IAM, too.

Level-1 constructs, since the level-2 cluster insists on a secret for its master user.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from constructs import Construct

from infra.environment import DB_NAME
from infra.nag import accept
from infra.settings import Profile

PARAMETERS = {
    # Connections without TLS are refused.
    "rds.force_ssl": "1",
    # A cluster pauses only without user connections: forgotten ones end themselves.
    "idle_session_timeout": "60000",
    "idle_in_transaction_session_timeout": "15000",
    # Statements and parameters are content; content stays out of the logs.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_min_duration_statement": "-1",
    "log_statement": "none",
}


class Database(Construct):
    """The cluster, its instances and its parameter group."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        profile: Profile,
        *,
        vpc: ec2.IVpc,
        security_group: ec2.ISecurityGroup,
        key: kms.IKey,
        master: str,
    ) -> None:
        super().__init__(scope, id)
        major = profile.engine_version.split(".")[0]
        parameters = rds.CfnDBClusterParameterGroup(
            self,
            "Parameters",
            family=f"aurora-postgresql{major}",
            description="Remembrancer: TLS only, idle sessions end, no content in logs",
            parameters=PARAMETERS,
        )
        subnets = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description="Remembrancer: isolated subnets",
            subnet_ids=[subnet.subnet_id for subnet in vpc.isolated_subnets],
        )
        scaling = rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty(
            min_capacity=profile.min_acu,
            max_capacity=profile.max_acu,
            seconds_until_auto_pause=profile.auto_pause_s,
        )
        self.cluster = rds.CfnDBCluster(
            self,
            "Cluster",
            engine="aurora-postgresql",
            engine_version=profile.engine_version,
            database_name=DB_NAME,
            master_username=master,
            master_user_authentication_type="iam-db-auth",
            enable_iam_database_authentication=True,
            serverless_v2_scaling_configuration=scaling,
            db_cluster_parameter_group_name=parameters.ref,
            db_subnet_group_name=subnets.ref,
            vpc_security_group_ids=[security_group.security_group_id],
            storage_encrypted=True,
            kms_key_id=key.key_arn,
            backup_retention_period=profile.backup_days,
            copy_tags_to_snapshot=True,
            deletion_protection=profile.keep_data,
            enable_cloudwatch_logs_exports=["postgresql"],
            port=5432,
        )
        removal = cdk.RemovalPolicy.SNAPSHOT if profile.keep_data else cdk.RemovalPolicy.DESTROY
        self.cluster.apply_removal_policy(removal)
        self.instances = [
            rds.CfnDBInstance(
                self,
                f"Instance{number}",
                engine="aurora-postgresql",
                db_instance_class="db.serverless",
                db_cluster_identifier=self.cluster.ref,
                auto_minor_version_upgrade=False,
                promotion_tier=number,
                publicly_accessible=False,
            )
            for number in range(1 + profile.readers)
        ]
        for instance in self.instances:
            instance.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        if not profile.keep_data:
            accept(self.cluster, "A dev stack must be destroyable.", "AwsSolutions-RDS10")
        self.host = self.cluster.attr_endpoint_address

    def may_connect(self, grantee: iam.IGrantable, role: str) -> None:
        """May sign in as that database role and no other."""
        arn = cdk.Stack.of(self).format_arn(
            service="rds-db",
            resource="dbuser",
            resource_name=f"{self.cluster.attr_db_cluster_resource_id}/{role}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        iam.Grant.add_to_principal(grantee=grantee, actions=["rds-db:connect"], resource_arns=[arn])
