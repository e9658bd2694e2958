"""Runs the migrations at deploy time, before any function that needs the schema is usable."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import triggers
from constructs import Construct, IDependable


class Migrations(Construct):
    """Calls the migrate function's current version, and so again whenever its layer's SQL changes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        migrate: lambda_.Function,
        timeout: cdk.Duration,
        after: Iterable[IDependable],
        before: Iterable[Construct],
    ) -> None:
        super().__init__(scope, id)
        self.trigger = triggers.Trigger(
            self,
            "Migrate",
            handler=migrate,
            timeout=timeout,
            invocation_type=triggers.InvocationType.REQUEST_RESPONSE,
            execute_on_handler_change=True,
            execute_before=list(before),
        )
        for dependency in after:
            self.trigger.node.add_dependency(dependency)
