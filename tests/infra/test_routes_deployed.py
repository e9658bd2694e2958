"""The API of the template and the routes of the manifest are the same list, in both directions."""

from __future__ import annotations

import json
import re

from templates import Synthesized, references

from functions import manifest
from infra.problems import PROBLEMS


def _paths(stack: Synthesized) -> dict[str, str]:
    """Full path of each API resource, by logical id."""
    resources = stack.of_type("AWS::ApiGateway::Resource")

    def path(id: str) -> str:
        properties = resources[id]["Properties"]
        parent = properties["ParentId"].get("Ref")
        return f"{path(parent) if parent else ''}/{properties['PathPart']}"

    return {id: path(id) for id in resources}


def _methods(stack: Synthesized) -> dict[tuple[str, str], dict]:
    paths = _paths(stack)
    return {
        (m["Properties"]["HttpMethod"], paths[m["Properties"]["ResourceId"]["Ref"]]): m["Properties"]
        for m in stack.of_type("AWS::ApiGateway::Method").values()
    }


def _routes() -> dict[tuple[str, str], tuple[manifest.Function, manifest.Route]]:
    return {(r.method, r.path): (f, r) for f in manifest.FUNCTIONS for r in f.routes}


def test_deployed_methods_are_the_manifest_routes_and_health(stack: Synthesized) -> None:
    health = (manifest.HEALTH.method, manifest.HEALTH.path)
    assert set(_methods(stack)) == set(_routes()) | {health}


def test_each_route_goes_to_its_function(stack: Synthesized) -> None:
    ids = {name: id for name, (id, _) in stack.functions().items()}
    methods = _methods(stack)
    for key, (function, _) in _routes().items():
        integration = methods[key]["Integration"]
        assert integration["Type"] == "AWS_PROXY"
        assert ids[function.name] in set(references(integration["Uri"])), key


def test_each_route_needs_an_access_token_with_its_scopes(stack: Synthesized) -> None:
    methods = _methods(stack)
    authorizers = stack.of_type("AWS::ApiGateway::Authorizer")
    for key, (_, route) in _routes().items():
        method = methods[key]
        assert method["AuthorizationType"] == "COGNITO_USER_POOLS"
        assert method["AuthorizerId"]["Ref"] in authorizers
        # Without scopes the authorizer would take identity tokens: "any principal" is every scope.
        expected = {f"memory/{scope}" for scope in route.scopes or manifest.SCOPES}
        assert set(method["AuthorizationScopes"]) == expected, key


def test_health_is_answered_by_the_gateway(stack: Synthesized) -> None:
    method = _methods(stack)[(manifest.HEALTH.method, manifest.HEALTH.path)]
    assert method["AuthorizationType"] == "NONE"
    assert method["Integration"]["Type"] == "MOCK"
    body = method["Integration"]["IntegrationResponses"][0]["ResponseTemplates"]["application/json"]
    assert json.loads(body) == {"status": "ok"}


def test_only_the_gateway_may_call_functions_with_routes(stack: Synthesized) -> None:
    ids = {name: id for name, (id, _) in stack.functions().items()}
    permissions = [p["Properties"] for p in stack.of_type("AWS::Lambda::Permission").values()]
    for function in manifest.FUNCTIONS:
        given = [p for p in permissions if ids[function.name] in set(references(p["FunctionName"]))]
        if function.routes:
            assert [p["Principal"] for p in given] == ["apigateway.amazonaws.com"], function.name
            assert "execute-api" in json.dumps(given[0]["SourceArn"])
        elif function.name == "remember_failed":  # EventBridge tells of executions that no Catch sees
            assert [p["Principal"] for p in given] == ["events.amazonaws.com"]
            assert "RememberEnded" in json.dumps(given[0]["SourceArn"])
        elif function.name != "pre_token":
            assert given == [], function.name


def test_gateway_answers_are_problem_documents(stack: Synthesized) -> None:
    deployed = {
        r["Properties"]["ResponseType"]: r["Properties"]
        for r in stack.of_type("AWS::ApiGateway::GatewayResponse").values()
    }
    assert set(deployed) == {problem.kind for problem in PROBLEMS}
    for problem in PROBLEMS:
        response = deployed[problem.kind]
        template = response["ResponseTemplates"]["application/json"]
        document = json.loads(template)
        assert int(response["StatusCode"]) == document["status"] == problem.status
        assert document["code"] == problem.code
        assert "messageString" not in template, "the gateway's own text echoes the request"
        content_type = response["ResponseParameters"]["gatewayresponse.header.Content-Type"]
        assert content_type == "'application/problem+json'"
    assert deployed["MISSING_AUTHENTICATION_TOKEN"]["StatusCode"] == "404"


def test_gateway_codes_are_those_of_the_catalogue() -> None:
    """The core's catalogue of errors is read as text: its package is not importable here."""
    from infra.settings import ROOT

    catalogue = (ROOT / "layers/core/python/remembrancer/domain/problems.py").read_text()
    for problem in PROBLEMS:
        assert re.search(rf'"{problem.code}"', catalogue), problem.code
        assert re.search(rf'"{problem.next_action}"', catalogue), problem.next_action


def test_the_stage_keeps_content_out_of_logs_and_throttles(stack: Synthesized) -> None:
    stage = stack.one("AWS::ApiGateway::Stage")
    (settings,) = stage["MethodSettings"]
    assert (settings["HttpMethod"], settings["ResourcePath"]) == ("*", "/*")
    assert settings["DataTraceEnabled"] is False
    assert settings["LoggingLevel"] == "OFF"
    assert settings["ThrottlingRateLimit"] == stack.profile.throttle_rate
    assert settings["ThrottlingBurstLimit"] == stack.profile.throttle_burst
    log = json.loads(stage["AccessLogSetting"]["Format"])
    text = json.dumps(log)
    for leak in ("claims", "authorizer", "sourceIp", "messageString", "context.path", "querystring"):
        assert leak not in text
    assert log["route"] == "$context.resourcePath"
