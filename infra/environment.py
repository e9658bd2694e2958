"""The environment of every function, as data: the handlers' settings and `local/` compare with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.manifest import SCHEDULES, Function

MODEL_DIR = "/opt/model"
"""Where the model layer unpacks."""

DB_CA_FILE = "/opt/rds-ca.pem"
"""Where the dependency layer unpacks the certificate authorities of RDS."""

DB_NAME = "remembrancer"
METRICS_NAMESPACE = "Remembrancer"

_LISTING_TASKS = ("list_erased",)
_CHECKPOINT_TASKS = ("checkpoint_head", "checkpoint_sign", "checkpoint_record")
_STARTING_JOBS = ("ingest", "report")
_STARTING_ERASURES = ("purge",)
_ERASING = ("purge", "erase_step")
_USING_OBJECTS = ("job_step", "erase_step", "report", "system", "decay_report", "purge")
HANDING_ON = ("remember_prepare", "remember_call_model", "remember_check", "remember_failed")
"""Steps of an attempt that hand texts on to each other through the work bucket."""
_ASSESSING = ("remember_prepare", "remember_call_model")
_OUTBOX_TASKS = ("outbox_claim", "outbox_publish", "outbox_mark")


_SCHEDULED = frozenset(schedule.target for schedule in SCHEDULES)


def _every(_: Function) -> bool:
    return True


def _in_vpc(function: Function) -> bool:
    return function.network == "vpc"


def _answers_requests(function: Function) -> bool:
    return bool(function.routes)


def changes_state(function: Function) -> bool:
    """Commits audited changes and so keys digests and wakes the outbox; workflow tasks only relay ids."""
    return _in_vpc(function) and function.name not in _CHECKPOINT_TASKS + _OUTBOX_TASKS + _LISTING_TASKS


def uses_work_bucket(function: Function) -> bool:
    return function.name in _USING_OBJECTS + HANDING_ON


@dataclass(frozen=True)
class Variable:
    """One environment variable: why it is there, and which functions have it."""

    name: str
    purpose: str
    given_to: Callable[[Function], bool]


VARIABLES: tuple[Variable, ...] = (
    Variable("REM_PROFILE", "name of the deployment's profile", _every),
    Variable("REM_DB_HOST", "writer endpoint of the cluster, port 5432", _in_vpc),
    Variable("REM_DB_NAME", "database", _in_vpc),
    Variable("REM_DB_USER", "the function's own database role, for IAM authentication", _in_vpc),
    Variable("REM_DB_CA", "file of the certificate authorities, for sslmode=verify-full", _in_vpc),
    Variable(
        "REM_STATEMENT_S",
        "seconds that one statement may take, where it is more than for a request: half of the function's, so that one "
        "tenant's leaves the others theirs",
        lambda f: f.name in _SCHEDULED,
    ),
    Variable("REM_PUBLIC_BASES", "space-separated origins that a signature may name", _answers_requests),
    Variable("REM_MODEL_DIR", "folder of the embedding model", lambda f: f.embeds),
    Variable("REM_KMS_MAC_KEY", "ARN of the key that derives the tenants' HMAC keys", changes_state),
    Variable(
        "REM_OUTBOX_MACHINE",
        "ARN of the state machine to start after a commit",
        lambda f: changes_state(f) and f.name != "migrate",
    ),
    Variable(
        "REM_JOBS_MACHINE",
        "ARN of the state machine that works on long jobs",
        lambda f: f.name in _STARTING_JOBS,
    ),
    Variable(
        "REM_ERASURE_MACHINE",
        "ARN of the state machine that erases and bundles for data subjects",
        lambda f: f.name in _STARTING_ERASURES,
    ),
    Variable(
        "REM_REMEMBER_MACHINE",
        "ARN of the state machine that works on a remember attempt",
        lambda f: f.name == "remember",
    ),
    Variable(
        "REM_LISTING_MACHINE",
        "ARN of the state machine that lists erasures and holds",
        lambda f: f.name in _ERASING,
    ),
    Variable("REM_ASSESSOR", "rules or bedrock", lambda f: f.name in _ASSESSING),
    Variable("REM_ASSESSOR_MODEL", "inference profile id on Bedrock", lambda f: f.name in _ASSESSING),
    Variable(
        "REM_GUARDRAIL",
        "ARN and version of the guardrail on Bedrock",
        lambda f: f.name == "remember_call_model",
    ),
    Variable(
        "REM_DUPLICATE_FLOOR",
        "least cosine at which stored evidence is offered as a duplicate",
        lambda f: f.name == "remember_prepare",
    ),
    Variable(
        "REM_WORK_BUCKET",
        "bucket of bundles, reports and what workflows hand on",
        uses_work_bucket,
    ),
    Variable("REM_EVENT_BUS", "name of the bus that alerts go to", lambda f: f.name == "outbox_publish"),
    Variable("REM_SIGN_KEY", "ARN of the key that signs checkpoints", lambda f: f.name == "checkpoint_sign"),
    Variable("REM_CHECKPOINT_BUCKET", "Object Lock bucket", lambda f: f.name == "checkpoint_sign"),
    Variable("REM_LISTING_BUCKET", "Object Lock bucket", lambda f: f.name in _LISTING_TASKS),
    Variable("POWERTOOLS_SERVICE_NAME", "the function's name in logs and metrics", _every),
    Variable("POWERTOOLS_METRICS_NAMESPACE", "namespace of the metrics", _every),
    Variable("POWERTOOLS_LOG_LEVEL", "log level", _every),
    Variable("POWERTOOLS_LOGGER_LOG_EVENT", "false: events carry content", _every),
    Variable("POWERTOOLS_TRACER_CAPTURE_RESPONSE", "false: answers carry content", _every),
    Variable("POWERTOOLS_TRACER_CAPTURE_ERROR", "false: exceptions may carry content", _every),
)


def names_for(function: Function) -> tuple[str, ...]:
    """The variables that a function has, in the order of VARIABLES."""
    return tuple(variable.name for variable in VARIABLES if variable.given_to(function))


def constants_for(function: Function) -> dict[str, str]:
    """The values that do not depend on a deployment."""
    values = {
        "REM_DB_NAME": DB_NAME,
        "REM_DB_USER": function.db_role or "",
        "REM_DB_CA": DB_CA_FILE,
        "REM_STATEMENT_S": str(function.timeout_s // 2),
        "REM_MODEL_DIR": MODEL_DIR,
        "REM_DUPLICATE_FLOOR": "0.75",
        "POWERTOOLS_SERVICE_NAME": function.name,
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "POWERTOOLS_LOGGER_LOG_EVENT": "false",
        "POWERTOOLS_TRACER_CAPTURE_RESPONSE": "false",
        "POWERTOOLS_TRACER_CAPTURE_ERROR": "false",
    }
    return {name: values[name] for name in names_for(function) if name in values}
