"""EventBridge schedules from the manifest's list.

Level-1 constructs, since the level-2 targets grant every version of a function and not the function alone.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from functions import manifest
from infra.functions import Functions, pascal
from infra.settings import Profile
from infra.workflows import Workflows

_MACHINE = ".asl"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_NIGHTLY = "cron(10 3 * * ? *)"


def target_names() -> frozenset[str]:
    """Functions that a schedule calls, and so asynchronously."""
    return frozenset(s.target for s in manifest.SCHEDULES if not s.target.endswith(_MACHINE))


def expression(profile: Profile, schedule: manifest.Schedule) -> str:
    """A rate, or one nightly minute: daily runs share it, so that a pausing cluster wakes once."""
    seconds = schedule.dev_every_s if profile.auto_pause_s is not None else schedule.every_s
    for unit, name in _UNITS:
        if seconds % unit == 0:
            count = seconds // unit
            if (count, name) == (1, "day"):
                return _NIGHTLY
            return f"rate({count} {name}{'s' if count > 1 else ''})"
    raise ValueError(f"schedule {schedule.name}: {seconds} s is not a whole number of minutes")


class Schedules(Construct):
    """One schedule an entry; what cannot be delivered ends in the dead letter queue."""

    def __init__(
        self, scope: Construct, id: str, profile: Profile, *, functions: Functions, workflows: Workflows
    ) -> None:
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}},
            ),
            description="Remembrancer: calls what the schedules name",
        )
        functions.dead_letters.grant_send_messages(role)
        for entry in manifest.SCHEDULES:
            if entry.target.endswith(_MACHINE):
                machine = entry.target.removesuffix(_MACHINE)
                arn = workflows.machines[machine].state_machine_arn
                workflows.may_start(role, machine)
            else:
                arn = functions[entry.target].function_arn
                iam.Grant.add_to_principal(
                    grantee=role, actions=["lambda:InvokeFunction"], resource_arns=[arn]
                )
            scheduler.CfnSchedule(
                self,
                pascal(entry.name),
                name=f"{profile.prefix}-{entry.name}",
                schedule_expression=expression(profile, entry),
                schedule_expression_timezone="UTC",
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
                target=scheduler.CfnSchedule.TargetProperty(
                    arn=arn,
                    role_arn=role.role_arn,
                    input="{}",
                    dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                        arn=functions.dead_letters.queue_arn
                    ),
                    retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                        maximum_retry_attempts=2, maximum_event_age_in_seconds=600
                    ),
                ),
            )
