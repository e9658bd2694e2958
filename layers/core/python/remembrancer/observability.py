"""One logger and one set of metrics. Content never enters them: ids, codes and counts only.

Traces are Lambda's own (active tracing): the X-Ray SDK imports botocore, which doubles a cold start.
"""

from __future__ import annotations

import traceback
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger(log_uncaught_exceptions=False, utc=True, serialize_stacktrace=False)
metrics = Metrics(namespace="Remembrancer")


def count(name: str, value: int = 1) -> None:
    """Add to a metric of infra/metrics.py; written by `flush`."""
    metrics.add_metric(name, MetricUnit.Count, value)


def seconds(name: str, value: float) -> None:
    metrics.add_metric(name, MetricUnit.Seconds, value)


def flush() -> None:
    """Write what was counted (EMF, one line), at the end of every invocation."""
    if metrics.metric_set:
        metrics.flush_metrics()


def failure(error: BaseException, **fields: Any) -> None:
    """Log where a failure came from: class, SQLSTATE and frames. Its message may hold values: never that."""
    frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    logger.error(
        "failure",
        extra={
            "error": f"{type(error).__module__}.{type(error).__qualname__}",
            "sqlstate": getattr(error, "sqlstate", None),
            "frames": frames[-12:],
            **fields,
        },
    )
