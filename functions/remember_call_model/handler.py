"""One call of the assessor's model. It reaches the provider and the work bucket, and no database."""

from __future__ import annotations

import functools
from typing import Any

from remembrancer.adapters.assessors import assessor
from remembrancer.adapters.objects import S3Objects
from remembrancer.api.tasks import task
from remembrancer.api.wiring import now, settings
from remembrancer.domain.ports import Assessor, ObjectStore
from remembrancer.domain.remember_work import Turn
from remembrancer.flows.assess import call_model
from remembrancer.settings import SettingsError


@functools.cache
def tools() -> tuple[Assessor, ObjectStore]:
    read = settings()
    if read.work_bucket is None:
        raise SettingsError("REM_WORK_BUCKET must be set")
    return assessor(read), S3Objects(read.work_bucket)


@task
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """A turn in, the same turn out."""
    judge, store = tools()
    return call_model(judge, store, now, Turn.of_state(event)).to_state()
