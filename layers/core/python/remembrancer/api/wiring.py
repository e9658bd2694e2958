"""Wires a function's services from its settings, once an environment."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import uuid_utils

from remembrancer.adapters.keys import FileMacKeys, KmsMacKeys
from remembrancer.domain.ports import Embedder, EmbeddingUnavailable, MacKeys, ObjectStore, ScreenModel
from remembrancer.domain.screen_policy import ScreenPolicy
from remembrancer.flows.context import Services
from remembrancer.settings import Settings, SettingsError
from remembrancer.store.database import Connection, Database, connect

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors


def new_id() -> UUID:
    """A UUIDv7."""
    return UUID(bytes=uuid_utils.uuid7().bytes)


def now() -> datetime:
    return datetime.now(UTC)


@functools.cache
def settings() -> Settings:
    return Settings.read(os.environ)


@functools.cache
def services() -> Services:
    """Raises SettingsError when the environment lacks what every function needs."""
    read = settings()
    embedder = _embedder(read)
    return Services(
        database=Database(
            _connector(read), new_id, kick=_kick(read), statement_timeout_ms=read.statement_s * 1000
        ),
        embedder=embedder,
        macs=_mac_keys(read),
        clock=now,
        new_id=new_id,
        screen_model=_screen_model(read, embedder),
        screen_policy=ScreenPolicy(read.screen_model, read.screen_reject_at, read.screen_quarantine_at),
        start_job=_job_starter(read),
        objects=_objects(read.work_bucket),
        evidence=_objects(read.listing_bucket),
        start_attempt=_attempt_starter(read),
        duplicate_floor=read.duplicate_floor,
        verify_signature=_verifier(read),
    )


class _NoEmbedder:
    """For functions that do not embed: asking one of them to is a fault of the wiring."""

    contract = ""

    def embed(self, texts: object) -> Vectors:
        raise EmbeddingUnavailable("this function does not embed")

    def count_tokens(self, text: str) -> int:
        raise EmbeddingUnavailable("this function does not embed")


def _embedder(read: Settings) -> Embedder:
    if read.model_dir is None:
        return _NoEmbedder()
    from remembrancer.adapters.embedding import OnnxEmbedder

    return OnnxEmbedder(read.model_dir, threads=max(1, os.cpu_count() or 1))


def _screen_model(read: Settings, embedder: Embedder) -> ScreenModel | None:
    if not read.screen_model or read.model_dir is None:
        return None
    from remembrancer.adapters.screen_model import LearnedScreen

    return LearnedScreen(embedder)


def _connector(read: Settings) -> Callable[[], Connection]:
    if read.database_url is not None:
        return connect(read.database_url)
    if not read.db_host or not read.db_user or not read.db_ca:
        raise SettingsError("REM_DB_HOST, REM_DB_USER and REM_DB_CA, or REM_DATABASE_URL, must be set")
    from remembrancer.adapters.iam import IamToken

    conninfo = (
        f"host={read.db_host} port=5432 dbname={read.db_name} user={read.db_user} "
        f"sslmode=verify-full sslrootcert={read.db_ca}"
    )
    return connect(conninfo, IamToken(read.db_host, read.db_user, read.region))


def _mac_keys(read: Settings) -> MacKeys:
    if read.mac_key_file is not None:
        return FileMacKeys(read.mac_key_file)
    if read.mac_key is not None:
        import boto3
        from botocore.config import Config

        # Asked within transactions, which the database ends after fifteen seconds without a statement.
        quick = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 3})
        return KmsMacKeys(boto3.client("kms", config=quick), read.mac_key)
    return _NoMacKeys()


class _NoMacKeys:
    """For functions that witness nothing."""

    def mac(self, purpose: str, tenant: UUID, message: bytes) -> bytes:
        raise SettingsError("REM_KMS_MAC_KEY or REM_MAC_KEY_FILE must be set")


def _verifier(read: Settings) -> Any:
    if not read.public_bases:
        return None
    from remembrancer.adapters.signatures import verify_signed_request

    return verify_signed_request


def _job_starter(read: Settings) -> Callable[[UUID, UUID], None]:
    """No function starts both kinds."""
    machine = read.jobs_machine or read.erasure_machine
    if machine is None:
        return lambda tenant_id, job_id: None
    from remembrancer.adapters.machines import JobStart

    return JobStart(machine)


def _attempt_starter(read: Settings) -> Callable[[UUID], None] | None:
    if read.remember_machine is None:
        return None
    from remembrancer.adapters.machines import AttemptStart

    return AttemptStart(read.remember_machine)


def _objects(bucket: str | None) -> ObjectStore | None:
    if bucket is None:
        return None
    from remembrancer.adapters.objects import S3Objects

    return S3Objects(bucket)


def _kick(read: Settings) -> Callable[[UUID, datetime], None] | None:
    """What a commit that raised an alert wakes: the alert's delivery, and where erasures and holds are made, their
    listing."""
    arns = [arn for arn in (read.outbox_machine, read.listing_machine) if arn is not None]
    if not arns:
        return None
    from remembrancer.adapters.machines import TenantKick

    kicks = [TenantKick(arn) for arn in arns]

    def kick(tenant_id: UUID, now: datetime) -> None:
        for one in kicks:
            one(tenant_id, now)

    return kick
