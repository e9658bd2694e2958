"""State machines from `infra/{name}.asl.json`, the same files that the local engine runs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from functions import manifest
from infra.functions import Functions, pascal
from infra.logs import retention
from infra.nag import accept
from infra.settings import ROOT, Profile


class Workflows(Construct):
    """Each machine may invoke its own tasks and nothing else; its history holds ids only."""

    def __init__(self, scope: Construct, id: str, profile: Profile, *, functions: Functions) -> None:
        super().__init__(scope, id)
        self._profile = profile
        self.machines = {machine.name: self._machine(machine, functions) for machine in manifest.MACHINES}

    def may_start(self, grantee: iam.IGrantable, name: str) -> None:
        """May start executions of that machine."""
        arn = self.machines[name].state_machine_arn
        iam.Grant.add_to_principal(grantee=grantee, actions=["states:StartExecution"], resource_arns=[arn])

    def _machine(self, entry: manifest.Machine, functions: Functions) -> sfn.StateMachine:
        role = iam.Role(
            self,
            f"{pascal(entry.name)}Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            description=f"Remembrancer workflow {entry.name}",
        )
        arns = {task: functions[task].function_arn for task in entry.tasks}
        iam.Grant.add_to_principal(
            grantee=role, actions=["lambda:InvokeFunction"], resource_arns=list(arns.values())
        )
        log_group = logs.LogGroup(
            self,
            f"{pascal(entry.name)}Log",
            log_group_name=f"/aws/vendedlogs/states/{self._profile.prefix}-{entry.name}",
            retention=retention(self._profile),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        machine = sfn.StateMachine(
            self,
            pascal(entry.name),
            state_machine_name=f"{self._profile.prefix}-{entry.name}",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(
                (ROOT / f"infra/{entry.name}.asl.json").read_text()
            ),
            definition_substitutions=arns,
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=log_group, level=sfn.LogLevel.ALL, include_execution_data=False),
        )
        accept(
            role,
            "Delivery of workflow logs and X-Ray have no resource to name.",
            "AwsSolutions-IAM5[Resource::*]",
        )
        return machine
