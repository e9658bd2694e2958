"""One logger and one set of metrics. Content never enters them: ids, codes and counts only.

Traces are Lambda's own (active tracing): the X-Ray SDK imports botocore, which doubles a cold start.
"""

from __future__ import annotations

import traceback
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger(log_uncaught_exceptions=False, utc=True, serialize_stacktrace=False)
metrics = Metrics()


def count(name: str, value: int = 1, **dimensions: str) -> None:
    """One metric of counts."""
    for dimension, text in dimensions.items():
        metrics.add_dimension(dimension, text)
    metrics.add_metric(name, MetricUnit.Count, value)


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
