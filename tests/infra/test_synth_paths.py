"""One template however it is made; migrations run again exactly when their layer changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from templates import Synthesized

import app as cdk_app
from infra.assets import Sources
from infra.settings import ROOT

_CDK = ROOT / "infra/node_modules/.bin/cdk"
_SHAPE = Path(__file__).with_name("shape.json")


def _environment(**more: str) -> dict[str, str]:
    """Without anything that could name an account."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "CDK_"))}
    return {**kept, **more}


def _bare(outdir: Path, profile: str) -> bytes:
    environment = _environment(CDK_OUTDIR=str(outdir), REM_PROFILE=profile)
    subprocess.run([sys.executable, "app.py"], check=True, env=environment, cwd=ROOT, capture_output=True)
    return (outdir / f"remembrancer-{profile}.template.json").read_bytes()


def test_command_line_and_bare_run_give_the_same_bytes(tmp_path: Path) -> None:
    if not _CDK.exists():
        pytest.skip("the CDK command line is not installed: npm ci --prefix infra")
    outdir = tmp_path / "cli"
    command = [str(_CDK), "synth", "--quiet", "--output", str(outdir), "--app", f"{sys.executable} app.py"]
    environment = _environment(HOME=str(tmp_path), CDK_DISABLE_CLI_TELEMETRY="true")
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, env=environment)
    by_cli = (outdir / "remembrancer-dev.template.json").read_bytes()
    assert by_cli == _bare(tmp_path / "bare", "dev")


def test_no_account_is_written_down(dev: Synthesized) -> None:
    """An account-less synth: the environment is asked for at deploy time."""
    artifacts = json.loads((dev.outdir / "manifest.json").read_text())["artifacts"]
    assert artifacts[dev.profile.prefix]["environment"] == f"aws://unknown-account/{dev.profile.region}"


def _migrate_version(outdir: Path) -> str:
    """The version that the trigger calls: a new one is a new run."""
    template = json.loads((outdir / "remembrancer-dev.template.json").read_text())
    (trigger,) = (r for r in template["Resources"].values() if r["Type"] == "Custom::Trigger")
    version: str = trigger["Properties"]["HandlerArn"]["Ref"]
    assert template["Resources"][version]["Type"] == "AWS::Lambda::Version"
    return version


def test_changing_one_sql_file_runs_the_migrations_again(tmp_path: Path) -> None:
    core = tmp_path / "python"
    shutil.copytree(ROOT / "layers/core/python", core, ignore=shutil.ignore_patterns("__pycache__"))
    versions = []
    for number in range(3):
        if number == 2:
            sql = sorted((core / "remembrancer/store/migrations").glob("*.sql"))[-1]
            sql.write_text(sql.read_text() + "\n-- changed\n")
        outdir = tmp_path / str(number)
        cdk_app.build("dev", str(outdir), Sources(core=core)).synth()
        versions.append(_migrate_version(outdir))
    assert versions[0] == versions[1], "an unchanged tree must not run them again"
    assert versions[1] != versions[2]


def test_the_shape_is_the_recorded_one(both: dict[str, Synthesized]) -> None:
    """Types and counts, not hashes. After a deliberate change run once with UPDATE_SHAPE=1."""
    shapes = {
        name: dict(sorted(Counter(r["Type"] for r in stack.resources.values()).items()))
        for name, stack in both.items()
    }
    if os.environ.get("UPDATE_SHAPE"):
        _SHAPE.write_text(json.dumps(shapes, indent=1) + "\n")
    assert shapes == json.loads(_SHAPE.read_text())
