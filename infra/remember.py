"""What remember needs beside its machine: a rule for ends that no catch sees, the model's permission and guard."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.nag import accept
from infra.settings import Profile

TOLD = "remember_failed"
"""The function that the rule calls, and so asynchronously."""
ENDS = ["FAILED", "TIMED_OUT", "ABORTED"]
"""Ends of an execution that its own Catch does not see."""


class Remember(Construct):
    """`failed` writes the typed end of an attempt; the execution's name is the attempt's id."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        profile: Profile,
        *,
        machine: sfn.IStateMachine,
        failed: lambda_.IFunction,
        call_model: lambda_.Function,
        dead_letters: sqs.IQueue,
    ) -> None:
        super().__init__(scope, id)
        events.Rule(
            self,
            "Ended",
            description="Executions of remember that failed, timed out or were aborted",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={"stateMachineArn": [machine.state_machine_arn], "status": ENDS},
            ),
            targets=[
                targets.LambdaFunction(
                    failed,
                    dead_letter_queue=dead_letters,
                    retry_attempts=10,
                    event=events.RuleTargetInput.from_object(
                        {
                            "attempt_id": events.EventField.from_path("$.detail.name"),
                            "error": events.EventField.from_path("$.detail.status"),
                        }
                    ),
                )
            ],
        )
        self.guardrail = ""
        """ARN and version of what every untrusted text is shown to first; empty without a model on Bedrock."""
        if profile.assessor == "bedrock":
            self._may_ask_bedrock(call_model)
            self.guardrail = self._guard(profile, call_model)

    def _may_ask_bedrock(self, function: lambda_.Function) -> None:
        """Inference profiles of this account and the models behind them, in whatever region they route to."""
        stack = cdk.Stack.of(self)
        assert function.role is not None  # infra/functions.py gives every function one
        models = f"arn:{stack.partition}:bedrock:*::foundation-model/*"
        profiles = f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:inference-profile/*"
        iam.Grant.add_to_principal(
            grantee=function, actions=["bedrock:InvokeModel"], resource_arns=[models, profiles]
        )
        accept(
            function.role,
            "An inference profile routes to its model in regions of its own choice; which model is a setting.",
            f"AwsSolutions-IAM5[Resource::{models}]",
            f"AwsSolutions-IAM5[Resource::{profiles.replace(stack.account, '<AWS::AccountId>')}]",
        )

    def _guard(self, profile: Profile, function: lambda_.Function) -> str:
        """Prompt attacks alone: what else may not be remembered is for the screen to say, not a filter of topics."""
        refusal = "Refused."
        made = bedrock.CfnGuardrail(
            self,
            "Guardrail",
            name=f"{profile.prefix}-remember",
            description="Prompt attacks in what remember shows to its assessor",
            blocked_input_messaging=refusal,
            blocked_outputs_messaging=refusal,
            content_policy_config=bedrock.CfnGuardrail.ContentPolicyConfigProperty(
                filters_config=[
                    bedrock.CfnGuardrail.ContentFilterConfigProperty(
                        type="PROMPT_ATTACK", input_strength="MEDIUM", output_strength="NONE"
                    )
                ]
            ),
        )
        version = bedrock.CfnGuardrailVersion(
            self, "GuardrailVersion", guardrail_identifier=made.attr_guardrail_id
        )
        iam.Grant.add_to_principal(
            grantee=function, actions=["bedrock:ApplyGuardrail"], resource_arns=[made.attr_guardrail_arn]
        )
        return f"{made.attr_guardrail_arn}:{version.attr_version}"
