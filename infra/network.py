"""The VPC: isolated subnets, no NAT, and the only two services that a function inside may reach."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.logs import retention
from infra.settings import Profile

POSTGRES = ec2.Port.tcp(5432)
HTTPS = ec2.Port.tcp(443)


class Network(Construct):
    """Functions share one security group: the nightly sweep then keeps the interface of all of them alive."""

    def __init__(self, scope: Construct, id: str, profile: Profile) -> None:
        super().__init__(scope, id)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=profile.zones,
            nat_gateways=0,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=22
                )
            ],
        )
        self.vpc.add_flow_log(
            "Flow",
            traffic_type=ec2.FlowLogTrafficType.REJECT,
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(
                logs.LogGroup(
                    self,
                    "FlowLog",
                    retention=retention(profile),
                    removal_policy=cdk.RemovalPolicy.DESTROY,
                )
            ),
        )
        self.functions = self._group("Functions", "functions with a database role")
        self.database = self._group("Database", "the cluster")
        self._doors = self._group("Endpoints", "interface endpoints")
        for target, port, why in (
            (self.database, POSTGRES, "SQL"),
            (self._doors, HTTPS, "KMS and workflows"),
        ):
            self.functions.add_egress_rule(target, port, why)
            target.add_ingress_rule(self.functions, port, why)
        where = ec2.SubnetSelection(subnets=self.vpc.isolated_subnets[: profile.endpoint_zones])
        self._kms = self._door("Kms", ec2.InterfaceVpcEndpointAwsService.KMS, where)
        # Isolated subnets have no other way out: only the buckets that the policy names are behind this port.
        self.functions.add_egress_rule(ec2.Peer.any_ipv4(), HTTPS, "S3 through its gateway endpoint")
        self._s3 = self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        self._states = self._door("States", ec2.InterfaceVpcEndpointAwsService.STEP_FUNCTIONS, where)

    def pass_key_derivation(self, key_arn: str) -> None:
        """Lets the functions derive from this key, of this account, and reach nothing else in KMS."""
        self._allow(self._kms, "kms:GenerateMac", key_arn)

    def pass_machine_start(self, machine_arn: str) -> None:
        """Lets the functions start this machine, of this account, and nothing else in Step Functions."""
        self._allow(self._states, "states:StartExecution", machine_arn)

    def pass_objects(self, objects_arn: str) -> None:
        """Lets the functions write, read and remove these objects, of this account, and nothing else in S3."""
        for action in ("s3:PutObject", "s3:GetObject", "s3:DeleteObject"):
            self._allow(self._s3, action, objects_arn)

    def pass_additions(self, objects_arn: str) -> None:
        """Lets the functions add these objects, of this account; neither read nor remove them."""
        self._allow(self._s3, "s3:PutObject", objects_arn)

    def _group(self, id: str, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            self, id, vpc=self.vpc, description=f"Remembrancer: {description}", allow_all_outbound=False
        )

    def _door(
        self, id: str, service: ec2.InterfaceVpcEndpointAwsService, where: ec2.SubnetSelection
    ) -> ec2.InterfaceVpcEndpoint:
        return ec2.InterfaceVpcEndpoint(
            self,
            id,
            vpc=self.vpc,
            service=service,
            subnets=where,
            security_groups=[self._doors],
            open=False,
            private_dns_enabled=True,
        )

    def _allow(self, door: ec2.VpcEndpoint, action: str, arn: str) -> None:
        account = cdk.Stack.of(self).account
        door.add_to_policy(
            iam.PolicyStatement(
                principals=[iam.AnyPrincipal()],
                actions=[action],
                resources=[arn],
                conditions={
                    "StringEquals": {"aws:ResourceAccount": account, "aws:PrincipalAccount": account}
                },
            )
        )
