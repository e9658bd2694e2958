"""cdk-nag, cfn-lint and asl-validator, each with a proof that it would have spoken."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cfnlint.api import lint_file
from cfnlint.config import ManualArgs
from templates import Synthesized

from functions import manifest
from infra.nag import check_with_nag
from infra.settings import ROOT

FEWEST_RESOURCES = 240
MOST_RESOURCES = 450
"""CloudFormation stops at 500; issues still to come need some."""

_LINT = ManualArgs(ignore_checks=["W3005"])
_VALIDATOR = ROOT / "infra/node_modules/.bin/asl-validator"


def test_nag_is_clean_on_a_whole_stack(stack: Synthesized) -> None:
    packs = {pack["pluginName"]: pack for pack in stack.report["pluginReports"]}
    assert {"AwsSolutions", "Serverless"} <= set(packs)
    for pack in packs.values():
        assert pack["conclusion"] == "success"
        assert pack["violations"] == []
    assert FEWEST_RESOURCES <= len(stack.resources) < MOST_RESOURCES


def test_every_acknowledgement_has_a_reason(stack: Synthesized) -> None:
    findings = [f for pack in stack.report["pluginReports"] for f in pack["suppressedViolations"]]
    assert findings
    for finding in findings:
        assert len(finding["reason"]) >= 20, finding["ruleName"]


def test_nag_would_speak(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), analytics_reporting=False)
    s3.Bucket(cdk.Stack(app, "canary"), "Open")
    check_with_nag(app)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    rules = re.findall(r'"ruleName": "([\w-]+)', (tmp_path / "validation-report.json").read_text())
    assert "AwsSolutions-S1" in rules


def test_cfn_lint_is_clean(prod: Synthesized) -> None:
    """The larger template; `make check` lints dev's."""
    template = prod.outdir / f"{prod.profile.prefix}.template.json"
    assert [str(match) for match in lint_file(template, config=_LINT)] == []


def test_cfn_lint_would_speak(tmp_path: Path) -> None:
    template = tmp_path / "canary.template.json"
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"NoSuchProperty": 1}}
    template.write_text(json.dumps({"Resources": {"Queue": queue}}))
    assert lint_file(template, config=_LINT)


def _validate(path: Path) -> subprocess.CompletedProcess[str]:
    if not _VALIDATOR.exists():
        pytest.skip("asl-validator is not installed: npm ci --prefix infra")
    command = [str(_VALIDATOR), "--json-path", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("machine", manifest.MACHINES, ids=lambda machine: machine.name)
def test_state_machines_are_valid(machine: manifest.Machine, tmp_path: Path, dev: Synthesized) -> None:
    """With the tasks' names in place of the placeholders, as CloudFormation substitutes them."""
    text = (ROOT / f"infra/{machine.name}.asl.json").read_text()
    for task in machine.tasks:
        assert f"${{{task}}}" in text, f"{task} is listed and not used"
        text = text.replace(f"${{{task}}}", f"arn:aws:lambda:eu-central-1:000000000000:function:{task}")
    assert "${" not in text, "a placeholder that the manifest does not list"
    resolved = tmp_path / "machine.json"
    resolved.write_text(text)
    answer = _validate(resolved)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_asl_validator_would_speak(tmp_path: Path) -> None:
    broken = tmp_path / "machine.json"
    state = {"Type": "Pass", "Next": "Nowhere"}
    broken.write_text(json.dumps({"StartAt": "A", "States": {"A": state}}))
    assert _validate(broken).returncode != 0


@pytest.mark.parametrize("machine", manifest.MACHINES, ids=lambda machine: machine.name)
def test_every_task_of_a_machine_ends(machine: manifest.Machine) -> None:
    definition = json.loads((ROOT / f"infra/{machine.name}.asl.json").read_text())
    assert definition.get("TimeoutSeconds")
    limits = {task: manifest.function(task).timeout_s for task in machine.tasks}
    for name, state in definition["States"].items():
        if state["Type"] == "Task":
            task = state["Resource"].strip("${}")
            assert state["TimeoutSeconds"] >= limits[task], f"{name} would be cut before its function is"
