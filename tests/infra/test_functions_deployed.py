"""Each function of the template is its manifest entry: limits, environment, role, logs, layers."""

from __future__ import annotations

from templates import Synthesized, listed, references

from functions import manifest
from infra import environment
from infra.remember import TOLD
from infra.schedules import target_names


def test_deployed_functions_are_the_manifest(stack: Synthesized) -> None:
    assert set(stack.functions()) == {entry.name for entry in manifest.FUNCTIONS}


def test_limits_and_handler(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    assert function["Timeout"] == entry.timeout_s
    assert function["MemorySize"] == entry.memory_mb
    assert function["Handler"] == f"functions.{entry.name}.handler.handler"
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == [stack.profile.architecture]
    reserved = stack.profile.reserved_concurrency if entry.db_role else None
    assert function.get("ReservedConcurrentExecutions") == reserved


def test_environment_is_what_environment_py_names(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    variables = function["Environment"]["Variables"]
    assert set(variables) == set(environment.names_for(entry))
    for name, value in environment.constants_for(entry).items():
        assert variables[name] == value
    assert variables.get("REM_DB_USER") == entry.db_role


def test_public_bases_are_both_origins(stack: Synthesized) -> None:
    _, function = stack.functions()["purge"]
    _, pieces = function["Environment"]["Variables"]["REM_PUBLIC_BASES"]["Fn::Join"]
    names = [piece if isinstance(piece, str) else next(references(piece)) for piece in pieces]
    page, api = "".join(names).split(" ")
    (distribution,) = stack.of_type("AWS::CloudFront::Distribution")
    (rest_api,) = stack.of_type("AWS::ApiGateway::RestApi")
    assert page == f"https://{distribution}"
    assert api == f"https://{rest_api}.execute-api.{stack.profile.region}.amazonaws.com/live"


def test_every_function_has_its_own_role(stack: Synthesized) -> None:
    roles = [stack.role_of(entry.name) for entry in manifest.FUNCTIONS]
    assert len(set(roles)) == len(roles)


def test_logs_are_json_and_expire(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    logging = function["LoggingConfig"]
    assert logging["LogFormat"] == "JSON"
    group = stack.resources[logging["LogGroup"]["Ref"]]["Properties"]
    assert group["RetentionInDays"] == stack.profile.log_days


def test_every_log_group_expires(stack: Synthesized) -> None:
    for id, group in stack.of_type("AWS::Logs::LogGroup").items():
        assert group["Properties"].get("RetentionInDays") == stack.profile.log_days, id


def test_tracing_is_on_and_takes_no_payload(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    assert function["TracingConfig"] == {"Mode": "Active"}
    variables = function["Environment"]["Variables"]
    assert variables["POWERTOOLS_TRACER_CAPTURE_RESPONSE"] == "false"
    assert variables["POWERTOOLS_TRACER_CAPTURE_ERROR"] == "false"


def test_only_embedding_functions_carry_the_model(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    described = {stack.resources[layer["Ref"]]["Properties"]["Description"] for layer in function["Layers"]}
    assert ("Remembrancer: the embedding model" in described) == entry.embeds
    assert len(described) == 3 if entry.embeds else 2


def test_asynchronous_functions_have_a_dead_letter_queue(
    stack: Synthesized, entry: manifest.Function
) -> None:
    _, function = stack.functions()[entry.name]
    assert ("DeadLetterConfig" in function) == (entry.name in target_names() | {TOLD})


def test_layers_are_for_the_profile(stack: Synthesized) -> None:
    layers = stack.of_type("AWS::Lambda::LayerVersion").values()
    ours = [
        layer["Properties"]
        for layer in layers
        if str(layer["Properties"].get("Description", "")).startswith("Remembrancer")
    ]
    assert len(ours) == 3
    for layer in ours:
        assert layer["CompatibleRuntimes"] == ["python3.13"]
        assert layer["CompatibleArchitectures"] == [stack.profile.architecture]


def test_migrations_run_before_any_function_that_needs_the_schema(stack: Synthesized) -> None:
    (trigger_id,) = stack.of_type("Custom::Trigger")
    trigger = stack.resources[trigger_id]
    assert int(trigger["Properties"]["Timeout"]) == manifest.function("migrate").timeout_s * 1000
    version = stack.resources[trigger["Properties"]["HandlerArn"]["Ref"]]
    assert version["Type"] == "AWS::Lambda::Version"
    waits_for = set(listed(trigger["DependsOn"]))
    assert set(stack.of_type("AWS::RDS::DBInstance")) <= waits_for
    for entry in manifest.FUNCTIONS:
        if entry.network == "vpc" and entry.name != "migrate":
            id, _ = stack.functions()[entry.name]
            assert trigger_id in listed(stack.resources[id]["DependsOn"]), entry.name
