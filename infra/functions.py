"""One Lambda function per manifest entry, each with a role, a log group and an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions import manifest
from infra import environment
from infra.assets import Sources, core_code, deps_code, functions_code, model_code
from infra.logs import retention
from infra.nag import accept
from infra.network import Network
from infra.settings import Profile

RUNTIME = lambda_.Runtime.PYTHON_3_13
_ARCHITECTURES = {"x86_64": lambda_.Architecture.X86_64, "arm64": lambda_.Architecture.ARM_64}

_INTERFACE_ACTIONS = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]
"""What the Lambda service, with the function's role, needs to put a function into a VPC."""


def pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


class Functions(Construct):
    """Looked up by manifest entry; others pass values and permissions in, never policy text."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        profile: Profile,
        *,
        network: Network,
        sources: Sources,
        asynchronous: frozenset[str],
    ) -> None:
        super().__init__(scope, id)
        self._profile = profile
        self._network = network
        self._asynchronous = asynchronous
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
        )
        accept(
            self.dead_letters,
            "It is the dead letter queue.",
            "Serverless-SQSRedrivePolicy",
        )
        accept(
            self,
            "Pinned to the runtime that every wheel and measurement was made for; raised deliberately.",
            "AwsSolutions-L1",
            "Serverless-LambdaLatestVersion",
        )
        self._code = functions_code(sources)
        self._core = self._layer("Core", core_code(sources), "the core package and its migrations")
        self._deps = self._layer("Deps", deps_code(profile.architecture), "pinned distributions")
        self._model = self._layer("Model", model_code(), "the embedding model")
        self._by_name = {entry.name: self._function(entry) for entry in manifest.FUNCTIONS}

    def __getitem__(self, name: str) -> lambda_.Function:
        return self._by_name[name]

    def chosen(
        self, wanted: Callable[[manifest.Function], bool]
    ) -> Iterator[tuple[manifest.Function, lambda_.Function]]:
        """The entries that `wanted` picks, with their functions, in manifest order."""
        return ((entry, self._by_name[entry.name]) for entry in manifest.FUNCTIONS if wanted(entry))

    @staticmethod
    def role_of(function: lambda_.Function) -> iam.IRole:
        assert function.role is not None  # every function is given one below
        return function.role

    def having(self, variable: str) -> Iterator[lambda_.Function]:
        """The functions that have this environment variable."""
        return (
            function for _, function in self.chosen(lambda entry: variable in environment.names_for(entry))
        )

    def give(self, variable: str, value: str) -> None:
        """Sets the variable on exactly the functions that environment.py names."""
        for function in self.having(variable):
            function.add_environment(variable, value)

    def _layer(self, id: str, code: lambda_.Code, description: str) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            id,
            code=code,
            description=f"Remembrancer: {description}",
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[_ARCHITECTURES[self._profile.architecture]],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )

    def _function(self, entry: manifest.Function) -> lambda_.Function:
        id, in_vpc = pascal(entry.name), entry.network == "vpc"
        log_group = logs.LogGroup(
            self,
            f"{id}Log",
            log_group_name=f"/aws/lambda/{self._profile.prefix}-{entry.name}",
            retention=retention(self._profile),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        layers = [self._core, self._deps, *([self._model] if entry.embeds else [])]
        function = lambda_.Function(
            self,
            id,
            function_name=f"{self._profile.prefix}-{entry.name}",
            description=entry.purpose,
            runtime=RUNTIME,
            architecture=_ARCHITECTURES[self._profile.architecture],
            handler=f"functions.{entry.name}.handler.handler",
            code=self._code,
            layers=layers,
            role=self._role(entry, log_group),
            timeout=cdk.Duration.seconds(entry.timeout_s),
            memory_size=entry.memory_mb,
            environment={"REM_PROFILE": self._profile.name, **environment.constants_for(entry)},
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            tracing=lambda_.Tracing.ACTIVE,
            reserved_concurrent_executions=self._profile.reserved_concurrency if entry.db_role else None,
            dead_letter_queue=self.dead_letters if entry.name in self._asynchronous else None,
            vpc=self._network.vpc if in_vpc else None,
            security_groups=[self._network.functions] if in_vpc else None,
        )
        if entry.name not in self._asynchronous:
            accept(
                function,
                "Only ever called synchronously: the caller sees the failure.",
                "Serverless-LambdaDLQ",
            )
        return function

    def _role(self, entry: manifest.Function, log_group: logs.LogGroup) -> iam.Role:
        role = iam.Role(
            self,
            f"{pascal(entry.name)}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"Remembrancer {entry.name}: {entry.purpose}",
        )
        log_group.grant_write(role)
        if entry.network == "vpc":
            role.add_to_policy(iam.PolicyStatement(actions=_INTERFACE_ACTIONS, resources=["*"]))
            # The service needs these with the function's role; the function's own code never does.
            itself = cdk.Stack.of(self).format_arn(
                service="lambda",
                resource="function",
                resource_name=f"{self._profile.prefix}-{entry.name}",
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            role.add_to_policy(
                iam.PolicyStatement(
                    effect=iam.Effect.DENY,
                    actions=_INTERFACE_ACTIONS,
                    resources=["*"],
                    conditions={"ArnEquals": {"lambda:SourceFunctionArn": itself}},
                )
            )
        accept(
            role,
            "X-Ray and network interfaces have no resource to name; the code itself is denied the latter.",
            "AwsSolutions-IAM5[Resource::*]",
        )
        return role
