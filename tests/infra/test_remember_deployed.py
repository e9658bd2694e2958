"""Remember on AWS: what its machine promises, who is told of its ends, and what the model's caller may touch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from templates import Synthesized, listed

import app as cdk_app
from infra import settings
from infra.nag import check_with_nag

ASL = json.loads((settings.ROOT / "infra" / "remember.asl.json").read_text())
TASKS = {name: state for name, state in ASL["States"].items() if state["Type"] == "Task"}


def _allowed(stack: Synthesized, function: str, service: str) -> dict[str, str]:
    """Actions of a service that the function's role may do, with what they are on."""
    return {
        action: json.dumps(listed(statement["Resource"]))
        for statement in stack.statements_of(stack.role_of(function))
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
        if action.startswith(f"{service}:")
    }


def test_the_machine_keeps_to_its_bounds() -> None:
    """The lease is 190 s: whatever the machine does is over before a key may be taken over."""
    assert ASL["TimeoutSeconds"] < 190
    for name, task in TASKS.items():
        assert task["TimeoutSeconds"] > 0, name
        for retry in task["Retry"]:
            assert retry["JitterStrategy"] == "FULL", name
    for name in TASKS.keys() - {"RecordFailure"}:
        [retry] = TASKS[name]["Retry"]
        assert set(retry["ErrorEquals"]) <= {"Lambda.TooManyRequestsException", "ProviderThrottled"}
        [catch] = TASKS[name]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "RecordFailure")
    [bound] = [c for c in ASL["States"]["Checked"]["Choices"] if "NumericLessThanEquals" in c]
    assert (bound["Variable"], bound["NumericLessThanEquals"]) == ("$.turn", 3)


def test_ends_that_no_catch_sees_are_told(stack: Synthesized) -> None:
    [rule] = [
        r["Properties"]
        for r in stack.of_type("AWS::Events::Rule").values()
        if r["Properties"]["EventPattern"]["source"] == ["aws.states"]
    ]
    detail = rule["EventPattern"]["detail"]
    assert detail["status"] == ["FAILED", "TIMED_OUT", "ABORTED"]
    [machine] = detail["stateMachineArn"]
    assert "Remember" in machine["Ref"]
    [target] = rule["Targets"]
    id, _ = stack.functions()["remember_failed"]
    assert target["Arn"] == {"Fn::GetAtt": [id, "Arn"]} and "DeadLetterConfig" in target
    # The execution's name is the attempt's id; nothing else of the event is handed on.
    assert target["InputTransformer"]["InputPathsMap"] == {
        "detail-name": "$.detail.name",
        "detail-status": "$.detail.status",
    }
    template = target["InputTransformer"]["InputTemplate"]
    assert json.loads(template.replace("<detail-name>", '"n"').replace("<detail-status>", '"s"')) == {
        "attempt_id": "n",
        "error": "s",
    }


def test_the_models_caller_reads_questions_and_writes_answers(stack: Synthesized) -> None:
    objects = _allowed(stack, "remember_call_model", "s3")
    assert objects.keys() == {"s3:GetObject", "s3:PutObject"}
    assert "/attempts/*.req" in objects["s3:GetObject"] and "/attempts/*.res" in objects["s3:PutObject"]
    assert _allowed(stack, "remember_call_model", "rds-db") == {}
    assert _allowed(stack, "remember_call_model", "bedrock") == {}  # both shipped profiles embed the rules


@pytest.mark.parametrize("function", ["remember_prepare", "remember_check", "remember_failed"])
def test_the_other_steps_reach_attempts_only(stack: Synthesized, function: str) -> None:
    for resource in _allowed(stack, function, "s3").values():
        assert "/attempts/*" in resource
    assert _allowed(stack, "remember_commit", "s3") == {} == _allowed(stack, "remember", "s3")


def test_only_the_front_starts_attempts(stack: Synthesized) -> None:
    for function in ("remember_prepare", "remember_check", "remember_commit", "remember_failed"):
        for resource in _allowed(stack, function, "states").values():
            assert "Remember" not in resource.replace("remember", "")
    assert "WorkflowsRemember" in _allowed(stack, "remember", "states")["states:StartExecution"]


def test_a_profile_with_bedrock_lets_one_function_ask_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: dict[str, Any] = settings.cdk_context()
    context["profiles"]["dev"] |= {"assessor": "bedrock", "assessor_model": "eu.example.model-v1:0"}
    monkeypatch.setattr(settings, "cdk_context", lambda root=settings.ROOT: context)
    monkeypatch.setattr(cdk_app, "cdk_context", lambda root=settings.ROOT: context)
    app = cdk_app.build("dev", str(tmp_path))
    check_with_nag(app)
    app.synth()
    template = json.loads((tmp_path / "remembrancer-dev.template.json").read_text())
    report = json.loads((tmp_path / "validation-report.json").read_text())
    stack = Synthesized(settings.load_profile("dev"), tmp_path, template, report)
    asking = {name for name in stack.functions() if _allowed(stack, name, "bedrock")}
    assert asking == {"remember_call_model"}
    allowed = _allowed(stack, "remember_call_model", "bedrock")
    assert allowed.keys() == {"bedrock:InvokeModel", "bedrock:ApplyGuardrail"}
    assert "RememberGuardrail" in allowed["bedrock:ApplyGuardrail"]
    _, function = stack.functions()["remember_call_model"]
    variables = function["Environment"]["Variables"]
    assert variables["REM_ASSESSOR_MODEL"] == "eu.example.model-v1:0"
    # A fixed version of it: a draft could be changed under the function.
    assert "GuardrailArn" in json.dumps(variables["REM_GUARDRAIL"])
    assert "Version" in json.dumps(variables["REM_GUARDRAIL"])
    [guardrail] = [r for r in template["Resources"].values() if r["Type"] == "AWS::Bedrock::Guardrail"]
    [attacks] = guardrail["Properties"]["ContentPolicyConfig"]["FiltersConfig"]
    assert (attacks["Type"], attacks["OutputStrength"]) == ("PROMPT_ATTACK", "NONE")
