"""A function has a database role and the VPC, or it has reach: never both."""

from __future__ import annotations

import json

from templates import Synthesized, listed, references

from functions import manifest

IN_VPC_MAY = {
    "rds-db:connect",
    "kms:GenerateMac",
    "kms:GenerateDataKey",
    "kms:Decrypt",
    "s3:PutObject",
    "s3:GetObject",
    "s3:DeleteObject",
    "states:StartExecution",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:SendMessage",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
}
NETWORK_INTERFACES = "ec2:"


def _allowed(stack: Synthesized, name: str) -> list[tuple[str, str]]:
    return [
        (action, json.dumps(listed(statement["Resource"])))
        for statement in stack.statements_of(stack.role_of(name))
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
    ]


def test_a_database_role_is_set_exactly_in_the_vpc(entry: manifest.Function) -> None:
    assert (entry.db_role is not None) == (entry.network == "vpc")


def test_only_functions_with_a_role_are_in_the_vpc(stack: Synthesized, entry: manifest.Function) -> None:
    _, function = stack.functions()[entry.name]
    assert ("VpcConfig" in function) == (entry.network == "vpc")


def test_connects_as_its_own_role_or_not_at_all(stack: Synthesized, entry: manifest.Function) -> None:
    connects = [where for action, where in _allowed(stack, entry.name) if action == "rds-db:connect"]
    if entry.db_role is None:
        assert connects == []
        assert "REM_DB_HOST" not in stack.functions()[entry.name][1]["Environment"]["Variables"]
    else:
        assert len(connects) == 1
        assert f'/{entry.db_role}"' in connects[0]
        assert "*" not in connects[0]


def test_functions_in_the_vpc_reach_nothing_else(stack: Synthesized, entry: manifest.Function) -> None:
    if entry.network == "vpc":
        actions = {action for action, _ in _allowed(stack, entry.name)}
        assert {a for a in actions if not a.startswith(NETWORK_INTERFACES)} <= IN_VPC_MAY


def test_the_code_itself_may_not_touch_network_interfaces(
    stack: Synthesized, entry: manifest.Function
) -> None:
    statements = stack.statements_of(stack.role_of(entry.name))
    allowed = {
        a for s in statements if s["Effect"] == "Allow" for a in listed(s["Action"]) if a.startswith("ec2:")
    }
    denied = [s for s in statements if s["Effect"] == "Deny"]
    if entry.network == "none":
        assert allowed == set() and denied == []
    else:
        (statement,) = denied
        assert allowed <= set(statement["Action"])
        condition = json.dumps(statement["Condition"]["ArnEquals"]["lambda:SourceFunctionArn"])
        assert f"{stack.profile.prefix}-{entry.name}" in condition


def test_functions_with_routes_are_no_workflow_or_schedule_targets(stack: Synthesized) -> None:
    routed = {entry.name for entry in manifest.FUNCTIONS if entry.routes}
    ids = {stack.functions()[name][0] for name in routed}
    assert not routed & {task for machine in manifest.MACHINES for task in machine.tasks}
    assert not routed & {schedule.target for schedule in manifest.SCHEDULES}
    for kind in ("AWS::StepFunctions::StateMachine", "AWS::Scheduler::Schedule", "AWS::Events::Rule"):
        for resource in stack.of_type(kind).values():
            assert not ids & set(references(resource["Properties"])), kind


def test_the_vpc_has_no_way_out(stack: Synthesized) -> None:
    for kind in ("NatGateway", "InternetGateway", "EgressOnlyInternetGateway", "VPCPeeringConnection"):
        assert stack.of_type(f"AWS::EC2::{kind}") == {}
    assert stack.of_type("AWS::EC2::Route") == {}
    for subnet in stack.of_type("AWS::EC2::Subnet").values():
        assert subnet["Properties"]["MapPublicIpOnLaunch"] is False


def test_security_groups_open_only_sql_the_endpoints_and_s3(stack: Synthesized) -> None:
    rules = [
        r["Properties"]
        for kind in ("AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress")
        for r in stack.of_type(kind).values()
    ]
    ports = {(r["FromPort"], r["ToPort"], r["IpProtocol"]) for r in rules}
    assert ports == {(443, 443, "tcp"), (5432, 5432, "tcp")}
    assert all("CidrIp" not in rule for rule in rules)
    nowhere = "255.255.255.255/32"  # CDK's spelling of no egress at all
    open_to = []
    for group in stack.of_type("AWS::EC2::SecurityGroup").values():
        assert "SecurityGroupIngress" not in group["Properties"]
        for rule in group["Properties"].get("SecurityGroupEgress", []):
            if rule["CidrIp"] != nowhere:
                open_to.append((rule["CidrIp"], rule["FromPort"], rule["ToPort"]))
    # Without a route this leads to the S3 gateway endpoint alone; see the test above.
    assert open_to == [("0.0.0.0/0", 443, 443)]


def test_endpoints_let_only_our_own_resources_pass(stack: Synthesized) -> None:
    endpoints = [e["Properties"] for e in stack.of_type("AWS::EC2::VPCEndpoint").values()]
    by_service = {json.dumps(e["ServiceName"]).rsplit(".", 1)[-1].strip('"]} '): e for e in endpoints}
    expected = {
        "kms": ("Interface", {"kms:GenerateMac"}, "AWS::KMS::Key"),
        "states": ("Interface", {"states:StartExecution"}, "AWS::StepFunctions::StateMachine"),
        "s3": ("Gateway", {"s3:PutObject", "s3:GetObject", "s3:DeleteObject"}, "AWS::S3::Bucket"),
    }
    assert set(by_service) == set(expected)
    for service, (kind, actions, target_type) in expected.items():
        endpoint = by_service[service]
        assert endpoint["VpcEndpointType"] == kind
        if kind == "Interface":
            assert endpoint["PrivateDnsEnabled"] is True
            assert len(endpoint["SubnetIds"]) == stack.profile.endpoint_zones
        statements = endpoint["PolicyDocument"]["Statement"]
        assert {action for s in statements for action in listed(s["Action"])} == actions
        account = {"Ref": "AWS::AccountId"}
        for statement in statements:
            assert statement["Effect"] == "Allow"
            for target in references(statement["Resource"]):
                assert stack.resources[target]["Type"] == target_type
            assert statement["Condition"]["StringEquals"] == {
                "aws:ResourceAccount": account,
                "aws:PrincipalAccount": account,
            }
