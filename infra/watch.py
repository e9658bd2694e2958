"""Alarms, by metric math so that their number does not grow with the functions, and one dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.environment import METRICS_NAMESPACE
from infra.metrics import (
    ATTEMPTS_BROKEN,
    CHAIN_BROKEN,
    ENDING_ATTEMPTS,
    OUTBOX_AGE,
    QUARANTINED,
    RATE_LIMITED,
    SCREENED,
    SIGNATURE_REFUSED,
    EmittedMetric,
)
from infra.settings import Profile

_METRICS_PER_ALARM = 9
"""CloudWatch takes ten in an alarm, the expression among them."""

_SHARES_PER_ALARM = 4
"""A share takes two metrics of a function."""

_FIVE_MINUTES = cdk.Duration.minutes(5)


def _sum(metrics: Sequence[cloudwatch.IMetric], label: str) -> cloudwatch.MathExpression:
    total, using = _total(metrics, "".join(filter(str.isalpha, label)).lower())
    return cloudwatch.MathExpression(expression=total, using_metrics=using, label=label, period=_FIVE_MINUTES)


def _total(metrics: Sequence[cloudwatch.IMetric], letters: str) -> tuple[str, dict[str, cloudwatch.IMetric]]:
    """The sum as a part of an expression, and the metrics under the names that it has."""
    using = {f"{letters}{number}": metric for number, metric in enumerate(metrics)}
    return "+".join(f"FILL({name},0)" for name in using), using


def _share(some: Sequence[cloudwatch.IMetric], of: Sequence[cloudwatch.IMetric]) -> cloudwatch.MathExpression:
    """Percent of at least twenty. One expression: each sum by itself would count among the metrics of an alarm."""
    part, parts = _total(some, "q")
    whole, wholes = _total(of, "s")
    return cloudwatch.MathExpression(
        expression=f"IF(({whole})>=20, 100*({part})/({whole}), 0)",
        using_metrics=parts | wholes,
        label="quarantined, percent",
        period=_FIVE_MINUTES,
    )


def _emitted(metric: EmittedMetric, statistic: str = "Sum") -> list[cloudwatch.IMetric]:
    return [
        cloudwatch.Metric(
            namespace=METRICS_NAMESPACE,
            metric_name=metric.name,
            dimensions_map={"service": function},
            statistic=statistic,
            period=_FIVE_MINUTES,
        )
        for function in metric.emitted_by
    ]


class Watch(Construct):
    """dev has the alarms that mean harm; prod also those that mean trouble."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        profile: Profile,
        *,
        topic: sns.ITopic,
        functions: Mapping[str, lambda_.Function],
        machines: Iterable[sfn.StateMachine],
        api: apigateway.RestApi,
        dead_letters: sqs.Queue,
        cluster_id: str,
    ) -> None:
        super().__init__(scope, id)
        self._prefix = profile.prefix
        self._action = actions.SnsAction(topic)
        machines = list(machines)
        self._dashboard = cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=profile.prefix, default_interval=cdk.Duration.days(1)
        )
        errors = [function.metric_errors() for function in functions.values()]
        faults_of = [
            function.metric_errors() for name, function in functions.items() if name not in ENDING_ATTEMPTS
        ]
        throttles = [function.metric_throttles() for function in functions.values()]
        depth = dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum")
        failures = [
            metric
            for machine in machines
            for metric in (machine.metric_failed(), machine.metric_timed_out(), machine.metric_aborted())
        ]
        broken = _sum(_emitted(CHAIN_BROKEN), "chains broken")
        self._alarm_sums("FunctionErrors", faults_of, "A function failed.")
        attempts = _sum(_emitted(ATTEMPTS_BROKEN), "attempts broken")
        self._alarm(
            "AttemptsBroken",
            attempts,
            1,
            "An attempt of remember ended by a fault of ours or of the provider.",
        )
        self._alarm_sums("WorkflowFailures", failures, "A workflow failed, timed out or was aborted.")
        self._alarm("DeadLetters", depth, 1, "Work or an alert could not be delivered.")
        self._alarm("ChainBroken", broken, 1, "An audit chain does not verify: treat as an incident.")
        forged = _sum(_emitted(SIGNATURE_REFUSED), "signatures refused")
        self._alarm("SignaturesRefused", forged, 5, "Signed requests are refused: a lost key, or an attack.")
        self._alarm_sums(
            "RateLimited", _emitted(RATE_LIMITED), "Many requests beyond their rates: abuse, or a loop.", 200
        )

        latency = api.metric_latency(statistic="p99", period=_FIVE_MINUTES)
        faults = api.metric_server_error(statistic="Sum", period=_FIVE_MINUTES)
        acu = cloudwatch.Metric(
            namespace="AWS/RDS",
            metric_name="ACUUtilization",
            dimensions_map={"DBClusterIdentifier": cluster_id},
            statistic="Average",
            period=_FIVE_MINUTES,
        )
        quarantined, screened = _emitted(QUARANTINED), _emitted(SCREENED)
        age = _emitted(OUTBOX_AGE, "Maximum")[0]
        letter_age = dead_letters.metric_approximate_age_of_oldest_message(statistic="Maximum")
        if profile.all_alarms:
            self._alarm_sums("Throttles", throttles, "A function was throttled.")
            self._alarm("ApiFaults", faults, 5, "The API answered with server errors.")
            self._alarm("ApiLatency", latency, 5_000, "The slowest hundredth of requests took over 5 s.", 3)
            self._alarm("DatabaseBusy", acu, 90, "The cluster is near its largest size.", 3)
            for number, start in enumerate(range(0, len(screened), _SHARES_PER_ALARM), start=1):
                some = slice(start, start + _SHARES_PER_ALARM)
                self._alarm(
                    f"QuarantineRate{number}",
                    _share(quarantined[some], screened[some]),
                    30,
                    "Many writes were quarantined: an attack, or a bad rule.",
                    2,
                )
            self._alarm("OutboxAge", age, 600, "Alerts wait for more than ten minutes.")
            self._alarm("DeadLetterAge", letter_age, 86_400, "A dead letter has been lying for a day.")

        self._row("Requests", [api.metric_count(), faults, api.metric_client_error()], [latency])
        self._row("Functions: errors and throttles", errors, throttles)
        self._row("Admission and audit", [_share(quarantined, screened)], [broken])
        self._row("Alerts and workflows", [age, depth, letter_age], failures)
        self._row("Database", [acu], [])

    def _alarm(
        self, id: str, metric: cloudwatch.IMetric, threshold: float, description: str, periods: int = 1
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            id,
            alarm_name=f"{self._prefix}-{id}",
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(self._action)

    def _alarm_sums(
        self, id: str, metrics: Sequence[cloudwatch.IMetric], description: str, threshold: float = 1
    ) -> None:
        for number, start in enumerate(range(0, len(metrics), _METRICS_PER_ALARM), start=1):
            group = metrics[start : start + _METRICS_PER_ALARM]
            self._alarm(f"{id}{number}", _sum(group, id), threshold, description)

    def _row(
        self, title: str, left: Sequence[cloudwatch.IMetric], right: Sequence[cloudwatch.IMetric]
    ) -> None:
        self._dashboard.add_widgets(
            cloudwatch.GraphWidget(title=title, left=list(left), right=list(right), width=24, height=6)
        )
