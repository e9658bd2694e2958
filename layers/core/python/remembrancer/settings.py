"""What the environment says, read once at start; a wrong or missing variable is one clear error.

The names are those of infra/environment.py. Locally REM_DATABASE_URL and REM_MAC_KEY_FILE take the place
of the cluster and of KMS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from remembrancer.domain.remember_limits import DUPLICATE_FLOOR
from remembrancer.domain.screen_thresholds import QUARANTINE_AT, REJECT_AT


class SettingsError(Exception):
    """A variable is missing or cannot be read. The text names the variable, never its value."""


@dataclass(frozen=True)
class Settings:
    profile: str
    database_url: str | None
    db_host: str | None
    db_name: str
    db_user: str
    db_ca: str | None
    statement_s: int
    region: str
    public_bases: tuple[str, ...]
    model_dir: Path | None
    mac_key_file: Path | None
    mac_key: str | None
    outbox_machine: str | None
    jobs_machine: str | None
    erasure_machine: str | None
    remember_machine: str | None
    duplicate_floor: float
    work_bucket: str | None
    listing_machine: str | None
    listing_bucket: str | None
    assessor: str
    assessor_model: str | None
    assessor_max_tokens: int
    assessor_url: str | None
    assessor_key: str | None = field(repr=False)
    guardrail: str | None
    event_bus: str | None
    webhook_url: str | None
    webhook_secret: str | None
    screen_model: bool
    screen_reject_at: float
    screen_quarantine_at: float

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Settings:
        """Raises SettingsError."""
        reject_at = _share(env, "REM_SCREEN_REJECT_AT", REJECT_AT)
        quarantine_at = _share(env, "REM_SCREEN_QUARANTINE_AT", QUARANTINE_AT)
        if quarantine_at > reject_at:
            raise SettingsError("REM_SCREEN_QUARANTINE_AT is above REM_SCREEN_REJECT_AT")
        return cls(
            profile=env.get("REM_PROFILE", "local"),
            database_url=env.get("REM_DATABASE_URL"),
            db_host=env.get("REM_DB_HOST"),
            db_name=env.get("REM_DB_NAME", "remembrancer"),
            db_user=env.get("REM_DB_USER", ""),
            db_ca=env.get("REM_DB_CA"),
            statement_s=_count(env, "REM_STATEMENT_S", 25),
            region=env.get("AWS_REGION", ""),
            public_bases=tuple(base.rstrip("/") for base in env.get("REM_PUBLIC_BASES", "").split()),
            model_dir=_path(env, "REM_MODEL_DIR"),
            mac_key_file=_path(env, "REM_MAC_KEY_FILE"),
            mac_key=env.get("REM_KMS_MAC_KEY"),
            outbox_machine=env.get("REM_OUTBOX_MACHINE"),
            jobs_machine=env.get("REM_JOBS_MACHINE"),
            erasure_machine=env.get("REM_ERASURE_MACHINE"),
            remember_machine=env.get("REM_REMEMBER_MACHINE"),
            duplicate_floor=_share(env, "REM_DUPLICATE_FLOOR", DUPLICATE_FLOOR),
            work_bucket=env.get("REM_WORK_BUCKET"),
            listing_machine=env.get("REM_LISTING_MACHINE"),
            listing_bucket=env.get("REM_LISTING_BUCKET"),
            assessor=_assessor(env),
            assessor_model=env.get("REM_ASSESSOR_MODEL"),
            assessor_max_tokens=_count(env, "REM_ASSESSOR_MAX_TOKENS", 16_000),
            assessor_url=env.get("REM_ASSESSOR_URL"),
            assessor_key=env.get("REM_ASSESSOR_KEY"),
            guardrail=env.get("REM_GUARDRAIL"),
            event_bus=env.get("REM_EVENT_BUS"),
            webhook_url=env.get("REM_WEBHOOK_URL"),
            webhook_secret=env.get("REM_WEBHOOK_SECRET"),
            screen_model=_switch(env, "REM_SCREEN_MODEL"),
            screen_reject_at=reject_at,
            screen_quarantine_at=quarantine_at,
        )


def _path(env: Mapping[str, str], name: str) -> Path | None:
    return Path(env[name]) if env.get(name) else None


def _switch(env: Mapping[str, str], name: str) -> bool:
    value = env.get(name, "on")
    if value not in ("on", "off"):
        raise SettingsError(f"{name} is neither on nor off")
    return value == "on"


def _assessor(env: Mapping[str, str]) -> str:
    """Who judges remembered evidence, with what names it; what it needs to be asked is checked by its adapter."""
    value = env.get("REM_ASSESSOR", "rules")
    needs = {
        "rules": (),
        "bedrock": ("REM_ASSESSOR_MODEL",),
        "openai": ("REM_ASSESSOR_MODEL", "REM_ASSESSOR_URL"),
    }
    if value not in needs:
        raise SettingsError("REM_ASSESSOR is none of rules, bedrock and openai")
    for name in needs[value]:
        if not env.get(name):
            raise SettingsError(f"{name} must be set for this REM_ASSESSOR")
    return value


def _count(env: Mapping[str, str], name: str, default: int) -> int:
    value = env.get(name, str(default))
    if not value.isascii() or not value.isdigit() or not 0 < int(value) <= 1_000_000:
        raise SettingsError(f"{name} is not a positive number up to 1,000,000")
    return int(value)


def _share(env: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(env.get(name, default))
    except ValueError:
        raise SettingsError(f"{name} is not a number") from None
    if not 0 < value <= 1:
        raise SettingsError(f"{name} is not within 0 and 1")
    return value
