"""A deployment's settings: one typed, validated record, read from cdk.json's `profiles`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

REPORT_DAYS = 400
"""How long a report's page lies in the bucket: as long as its row in the database, which links to it."""

_FIRST_MINOR_THAT_PAUSES = {16: 3, 17: 4}
"""Aurora PostgreSQL releases from which `MinCapacity: 0` is accepted, by major version."""


class InvalidProfile(ValueError):
    """cdk.json names no such profile, or the profile contradicts itself; the text lists every fault."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class Profile:
    """What differs between deployments. Days, seconds, ACU and requests a second as the names say."""

    name: str = Field(pattern=r"^[a-z][a-z0-9]{1,11}$")
    region: str = Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    architecture: Literal["x86_64", "arm64"]
    engine_version: str = Field(pattern=r"^\d{2}\.\d{1,2}$")
    min_acu: float = Field(ge=0, le=256, multiple_of=0.5)
    max_acu: float = Field(ge=1, le=256, multiple_of=0.5)
    auto_pause_s: int | None = Field(ge=300, le=86_400)
    """None: never pauses. Set exactly when `min_acu` is 0."""
    readers: int = Field(ge=0, le=2)
    """Standby instances in other zones; 0 is a single-zone cluster."""
    backup_days: int = Field(ge=1, le=35)
    endpoint_zones: int = Field(ge=1, le=2)
    """Zones with an interface endpoint: each costs by the hour."""
    waf: bool
    throttle_rate: float = Field(gt=0, le=10_000)
    throttle_burst: int = Field(gt=0, le=5_000)
    reserved_concurrency: int | None = Field(ge=1, le=500)
    """Of each function with a database role: the connection budget. None: unreserved."""
    log_days: Literal[7, 14, 30, 60, 90, 180, 365]
    checkpoint_lock: Literal["GOVERNANCE", "COMPLIANCE"]
    checkpoint_lock_days: int = Field(ge=1, le=3_650)
    keep_data: bool
    """Destroying the stack keeps cluster snapshot, buckets and user pool."""
    assessor: Literal["rules", "bedrock"]
    """Who judges what a remember says: the embedded rules, or a model on Bedrock."""
    assessor_model: str | None = Field(pattern=r"^[A-Za-z0-9._:/-]{1,200}$")
    """Inference profile id on Bedrock. Set exactly when the assessor is bedrock."""
    all_alarms: bool
    alert_email: str | None = Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        faults = []
        if (self.min_acu == 0) != (self.auto_pause_s is not None):
            faults.append("auto_pause_s is set exactly when min_acu is 0")
        if self.max_acu < self.min_acu:
            faults.append("max_acu is below min_acu")
        major, minor = (int(part) for part in self.engine_version.split("."))
        if major not in _FIRST_MINOR_THAT_PAUSES:
            faults.append(f"engine_version {self.engine_version}: only 16 and 17 are supported")
        elif minor < _FIRST_MINOR_THAT_PAUSES[major]:
            faults.append(f"engine_version {self.engine_version} is too old to pause")
        if self.keep_data and self.checkpoint_lock == "GOVERNANCE":
            faults.append("keep_data with a GOVERNANCE lock: checkpoints could be removed by an operator")
        if not self.keep_data and self.checkpoint_lock == "COMPLIANCE":
            faults.append("a COMPLIANCE lock without keep_data: the stack could not be destroyed")
        if (self.assessor == "bedrock") != (self.assessor_model is not None):
            faults.append("assessor_model is set exactly when assessor is bedrock")
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def prefix(self) -> str:
        """Begins every name a person meets: stack, functions, pool."""
        return f"remembrancer-{self.name}"

    @property
    def zones(self) -> int:
        """Zones of the VPC: a subnet group needs two even for one instance."""
        return 2

    @property
    def tags(self) -> dict[str, str]:
        return {"application": "remembrancer", "profile": self.name}


def cdk_context(root: Path = ROOT) -> dict[str, Any]:
    """cdk.json's context, which the CDK command line passes on its own and a bare run must pass itself."""
    context: dict[str, Any] = json.loads((root / "cdk.json").read_text())["context"]
    return context


def load_profile(name: str, profiles: dict[str, Any] | None = None) -> Profile:
    """The named profile, checked. `profiles` defaults to cdk.json's. Raises InvalidProfile."""
    known = cdk_context()["profiles"] if profiles is None else profiles
    if name not in known:
        raise InvalidProfile(f"no profile {name!r}; cdk.json has: {', '.join(sorted(known))}")
    if not isinstance(known[name], dict):
        raise InvalidProfile(f"profile {name!r} is not an object")
    try:
        return Profile(name=name, **known[name])
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, fault['loc'])) or 'profile'}: {re.sub('^Value error, ', '', fault['msg'])}"
            for fault in error.errors(include_url=False, include_context=False)
        ]
        raise InvalidProfile(f"profile {name!r} in cdk.json:\n" + "\n".join(lines)) from None
