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


def test_command_line_and_bare_run_give_the_same_bytes(dev: Synthesized, tmp_path: Path) -> None:
    """The session's templates are made as a bare `python app.py` makes them; neither knows an account."""
    if not _CDK.exists():
        pytest.skip("the CDK command line is not installed: npm ci --prefix infra")
    outdir = tmp_path / "cli"
    command = [str(_CDK), "synth", "--quiet", "--no-notices", "--output", str(outdir)]
    command += ["--app", f"{sys.executable} app.py"]
    accountless = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "CDK_"))}
    nothing = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    offline = {"AWS_EC2_METADATA_DISABLED": "true", "CDK_DISABLE_CLI_TELEMETRY": "true", "CI": "true"}
    environment = {**accountless, **nothing, **offline}
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, env=environment)
    name = f"{dev.profile.prefix}.template.json"
    assert (outdir / name).read_bytes() == (dev.outdir / name).read_bytes()


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


def test_changing_one_sql_file_runs_the_migrations_again(dev: Synthesized, tmp_path: Path) -> None:
    """That an unchanged tree does not is part of the two paths' agreement."""
    core = tmp_path / "python"
    shutil.copytree(ROOT / "layers/core/python", core, ignore=shutil.ignore_patterns("__pycache__"))
    sql = sorted((core / "remembrancer/store/migrations").glob("*.sql"))[-1]
    sql.write_text(sql.read_text() + "\n-- changed\n")
    outdir = tmp_path / "out"
    cdk_app.build("dev", str(outdir), Sources(core=core)).synth()
    assert _migrate_version(outdir) != _migrate_version(dev.outdir)


def test_the_shape_is_the_recorded_one(both: dict[str, Synthesized]) -> None:
    """Types and counts, not hashes. After a deliberate change run once with UPDATE_SHAPE=1."""
    shapes = {
        name: dict(sorted(Counter(r["Type"] for r in stack.resources.values()).items()))
        for name, stack in both.items()
    }
    if os.environ.get("UPDATE_SHAPE"):
        _SHAPE.write_text(json.dumps(shapes, indent=1) + "\n")
    assert shapes == json.loads(_SHAPE.read_text())
