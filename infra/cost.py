"""`python -m infra.cost --profile dev`: what a deployment costs idle and per million requests.

An estimate from list prices and stated assumptions, both data below: us-east-1, US dollars, without taxes,
free tiers and data transfer. Frankfurt is 10 to 20 % dearer. Nothing is fetched: compare before you rely on it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from functions import manifest
from infra.metrics import (
    ATTEMPTS_BROKEN,
    CHAIN_BROKEN,
    EMITTED,
    ENDING_ATTEMPTS,
    OUTBOX_AGE,
    QUARANTINED,
    RATE_LIMITED,
    SCREENED,
    SIGNATURE_REFUSED,
)
from infra.settings import InvalidProfile, Profile, load_profile

HOURS = 730.0
"""In a month."""

PRICES: dict[str, float] = {
    "endpoint_hour": 0.01,
    "kms_key_month": 1.00,
    "kms_10k_requests": 0.03,
    "acu_hour": 0.12,
    "aurora_gb_month": 0.10,
    "aurora_million_io": 0.20,
    "lambda_gb_second_x86_64": 0.0000166667,
    "lambda_gb_second_arm64": 0.0000133334,
    "lambda_million_requests": 0.20,
    "rest_million_requests": 3.50,
    "waf_acl_month": 5.00,
    "waf_rule_month": 1.00,
    "waf_million_requests": 0.60,
    "alarm_metric_month": 0.10,
    "emitted_metric_month": 0.30,
    "dashboard_month": 3.00,
    "log_gb": 0.50,
    "xray_million_traces": 5.00,
    "transitions_million": 25.00,
    "schedule_million": 1.00,
    "agent_client_month": 6.00,
    "agent_thousand_tokens": 2.25,
}

DATABASES_GB = 2.0
"""Storage of a young deployment."""

WAKE_ACU_HOURS = 0.15
"""One nightly run of a paused cluster: resume, work, and the idle minutes until it pauses again."""

TRANSITIONS_A_RUN = 6
"""State transitions of one scheduled workflow run that finds nothing to do."""

XRAY_SAMPLED = 0.05


@dataclass(frozen=True)
class Load:
    """One kind of request: Lambda time and memory, database time, KMS calls, log and disk work of one."""

    name: str
    function: str
    lambda_ms: float
    database_acu_ms: float
    kms_calls: float
    log_bytes: float
    io: float
    outbox_runs: float


LOADS = (
    Load("recall", "recall", 60, 20, 0.01, 1_200, 2, 0),
    Load("ingest of one memory", "ingest", 120, 40, 0.02, 1_500, 12, 0),
    Load("proposal", "proposal", 120, 40, 0.02, 1_500, 12, 0.2),
    Load("decision", "approve", 100, 40, 0.02, 1_500, 10, 0.2),
)


def quantities(profile: Profile) -> dict[str, float]:
    """What is paid for by being there; a test compares it with the template."""
    metrics = len(manifest.FUNCTIONS) - len(ENDING_ATTEMPTS) + 3 * len(manifest.MACHINES) + 1
    emitted = (ATTEMPTS_BROKEN, CHAIN_BROKEN, RATE_LIMITED, SIGNATURE_REFUSED)
    metrics += sum(len(metric.emitted_by) for metric in emitted)
    if profile.all_alarms:
        metrics += len(manifest.FUNCTIONS) + 3 + 2
        metrics += len(QUARANTINED.emitted_by) + len(SCREENED.emitted_by) + len(OUTBOX_AGE.emitted_by) - 1
    return {
        "endpoints": 2.0 * profile.endpoint_zones,
        "keys": 3.0,
        "instances": 1.0 + profile.readers,
        "alarm_metrics": float(metrics),
        "waf_rules": 6.0 if profile.waf else 0.0,
        "dashboards": 1.0,
    }


def idle(profile: Profile) -> dict[str, float]:
    """Dollars a month without a single request, by part."""
    count = quantities(profile)
    pauses = profile.auto_pause_s is not None
    acu_hours = 30 * WAKE_ACU_HOURS if pauses else profile.min_acu * count["instances"] * HOURS
    runs = {
        schedule.name: 30 * 86_400 / (schedule.dev_every_s if pauses else schedule.every_s)
        for schedule in manifest.SCHEDULES
    }
    workflow_runs = sum(runs[s.name] for s in manifest.SCHEDULES if s.target.endswith(".asl"))
    return {
        "interface endpoints": count["endpoints"] * HOURS * PRICES["endpoint_hour"],
        "KMS keys": count["keys"] * PRICES["kms_key_month"],
        "Aurora capacity": acu_hours * PRICES["acu_hour"],
        "Aurora storage": DATABASES_GB * PRICES["aurora_gb_month"],
        "alarms": count["alarm_metrics"] * PRICES["alarm_metric_month"],
        "dashboard": count["dashboards"] * PRICES["dashboard_month"],
        "WAF": PRICES["waf_acl_month"] * profile.waf + count["waf_rules"] * PRICES["waf_rule_month"],
        "schedules and workflows": (
            sum(runs.values()) * PRICES["schedule_million"] / 1e6
            + workflow_runs * TRANSITIONS_A_RUN * PRICES["transitions_million"] / 1e6
        ),
    }


def per_million(profile: Profile, load: Load) -> dict[str, float]:
    """Dollars a million requests of that kind, by part."""
    gigabytes = manifest.function(load.function).memory_mb / 1024
    second = PRICES[f"lambda_gb_second_{profile.architecture}"]
    return {
        "API Gateway": PRICES["rest_million_requests"],
        "Lambda": 1e6 * load.lambda_ms / 1e3 * gigabytes * second + PRICES["lambda_million_requests"],
        "Aurora": (
            1e6 * load.database_acu_ms / 3.6e6 * PRICES["acu_hour"] + load.io * PRICES["aurora_million_io"]
        ),
        "KMS": 1e6 * load.kms_calls / 1e4 * PRICES["kms_10k_requests"],
        "logs and traces": (
            1e6 * load.log_bytes / 1e9 * PRICES["log_gb"] + XRAY_SAMPLED * PRICES["xray_million_traces"]
        ),
        "workflows": load.outbox_runs * TRANSITIONS_A_RUN * PRICES["transitions_million"],
        "WAF": PRICES["waf_million_requests"] * profile.waf,
    }


def report(profile: Profile) -> str:
    """Both tables as text."""
    lines = [
        f"profile {profile.name}: US dollars, us-east-1 list prices (infra/cost.py)",
        "",
        "idle, a month",
    ]
    parts = idle(profile)
    lines += [f"  {name:<26}{value:>9.2f}" for name, value in parts.items()]
    lines += [f"  {'total':<26}{sum(parts.values()):>9.2f}", "", "a million requests"]
    for load in LOADS:
        costs = per_million(profile, load)
        detail = ", ".join(f"{name} {value:.2f}" for name, value in costs.items() if value >= 0.005)
        lines.append(f"  {load.name:<26}{sum(costs.values()):>9.2f}  ({detail})")
    emitted = sum(len(metric.emitted_by) for metric in EMITTED)
    lines += [
        "",
        f"emitted metrics: at most {emitted * PRICES['emitted_metric_month']:.2f} a month, by the hours in which they "
        "are sent; idle, none is",
        f"each agent: {PRICES['agent_client_month']:.2f} a month for its client and "
        f"{PRICES['agent_thousand_tokens']:.2f} a thousand tokens (one an hour: "
        f"{PRICES['agent_thousand_tokens'] * 0.73:.2f} a month)",
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.cost", description="Estimates a profile's cost.")
    parser.add_argument("--profile", default="dev", help="a profile of cdk.json")
    arguments = parser.parse_args(argv)
    try:
        print(report(load_profile(arguments.profile)))
    except InvalidProfile as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
