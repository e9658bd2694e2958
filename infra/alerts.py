"""Where alerts go: the bus that the outbox publishes to, and the topic that people subscribe to."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.settings import Profile

SOURCE = "remembrancer"
"""`Source` of every event on the bus."""


class Alerts(Construct):
    """Events carry ids and codes; whoever may read them still has to ask the API for the content."""

    def __init__(
        self, scope: Construct, id: str, profile: Profile, *, key: kms.IKey, dead_letters: sqs.IQueue
    ) -> None:
        super().__init__(scope, id)
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        for service in ("events.amazonaws.com", "cloudwatch.amazonaws.com"):
            caller = iam.ServicePrincipal(
                service, conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}}
            )
            self.topic.grant_publish(caller)
            key.grant(caller, "kms:GenerateDataKey", "kms:Decrypt")
        if profile.alert_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(profile.alert_email))
        self.bus = events.EventBus(self, "Bus", event_bus_name=profile.prefix, dead_letter_queue=dead_letters)
        events.Rule(
            self,
            "ToPeople",
            event_bus=self.bus,
            event_pattern=events.EventPattern(source=[SOURCE]),
            targets=[targets.SnsTopic(self.topic, dead_letter_queue=dead_letters)],
        )

    def may_publish(self, grantee: iam.IGrantable) -> None:
        """May put events on the bus."""
        iam.Grant.add_to_principal(
            grantee=grantee, actions=["events:PutEvents"], resource_arns=[self.bus.event_bus_arn]
        )
