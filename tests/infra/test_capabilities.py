"""What each capability promises: database, keys, buckets, sign-in, page, schedules, workflows, alarms."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from templates import Synthesized, listed, references

from functions import manifest
from infra import firewall
from infra.database import PARAMETERS
from infra.environment import METRICS_NAMESPACE
from infra.metrics import EMITTED, ENDING_ATTEMPTS
from infra.schedules import expression
from infra.settings import REPORT_DAYS, ROOT


def test_the_master_user_is_the_migrate_role_and_signs_in_with_iam(stack: Synthesized) -> None:
    cluster = stack.one("AWS::RDS::DBCluster")
    assert cluster["MasterUsername"] == manifest.function("migrate").db_role
    assert cluster["EnableIAMDatabaseAuthentication"] is True
    assert cluster["StorageEncrypted"] is True
    assert cluster["EngineVersion"] == stack.profile.engine_version
    assert len(stack.of_type("AWS::RDS::DBInstance")) == 1 + stack.profile.readers
    for instance in stack.of_type("AWS::RDS::DBInstance").values():
        assert instance["Properties"]["PubliclyAccessible"] is False
        assert instance["Properties"]["AutoMinorVersionUpgrade"] is False


def test_dev_pauses_and_prod_does_not(dev: Synthesized, prod: Synthesized) -> None:
    scaling = dev.one("AWS::RDS::DBCluster")["ServerlessV2ScalingConfiguration"]
    assert scaling["MinCapacity"] == 0 and scaling["SecondsUntilAutoPause"] == 300
    scaling = prod.one("AWS::RDS::DBCluster")["ServerlessV2ScalingConfiguration"]
    assert scaling["MinCapacity"] >= 0.5 and "SecondsUntilAutoPause" not in scaling


def test_the_database_writes_no_content_and_drops_idle_sessions(stack: Synthesized) -> None:
    parameters = stack.one("AWS::RDS::DBClusterParameterGroup")["Parameters"]
    assert parameters == PARAMETERS
    assert parameters["rds.force_ssl"] == "1"
    assert parameters["idle_session_timeout"] == "60000"
    for name in ("log_parameter_max_length", "log_parameter_max_length_on_error"):
        assert parameters[name] == "0"
    assert parameters["log_min_duration_statement"] == "-1"
    assert parameters["log_min_error_statement"] == "panic"


def test_keys_do_one_thing_each(stack: Synthesized) -> None:
    keys = {
        k["Properties"]["Description"]: (k["Properties"].get("KeySpec"), k["Properties"].get("KeyUsage"))
        for k in stack.of_type("AWS::KMS::Key").values()
    }
    assert sorted(keys.values(), key=str) == [
        ("ECC_NIST_P256", "SIGN_VERIFY"),
        ("HMAC_256", "GENERATE_VERIFY_MAC"),
        (None, None),
    ]


def test_key_grants_follow_the_environment(stack: Synthesized) -> None:
    for action, variable in (("kms:GenerateMac", "REM_KMS_MAC_KEY"), ("kms:Sign", "REM_SIGN_KEY")):
        for name, (_, function) in stack.functions().items():
            allowed = {a for s in stack.statements_of(stack.role_of(name)) for a in listed(s["Action"])}
            assert (action in allowed) == (variable in function["Environment"]["Variables"]), (name, action)


def test_checkpoints_are_locked(stack: Synthesized) -> None:
    (bucket,) = [
        b["Properties"]
        for b in stack.of_type("AWS::S3::Bucket").values()
        if "ObjectLockEnabled" in b["Properties"]
    ]
    retention = bucket["ObjectLockConfiguration"]["Rule"]["DefaultRetention"]
    assert retention == {
        "Mode": stack.profile.checkpoint_lock,
        "Days": stack.profile.checkpoint_lock_days,
    }
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}


@pytest.mark.parametrize(
    ("name", "below"), [("checkpoint_sign", "/checkpoints/*"), ("list_erased", "/listings/*")]
)
def test_what_is_locked_away_is_only_added(stack: Synthesized, name: str, below: str) -> None:
    statements = [
        statement
        for statement in stack.statements_of(stack.role_of(name))
        if any(action.startswith("s3:") for action in listed(statement["Action"]))
    ]
    assert {action for statement in statements for action in listed(statement["Action"])} == {"s3:PutObject"}
    for statement in statements:
        assert below in json.dumps(statement["Resource"])


def test_from_the_vpc_listings_are_only_added(stack: Synthesized) -> None:
    """The endpoint's policy: nothing inside reads or removes what lies under the lock."""
    (endpoint,) = [
        e["Properties"]
        for e in stack.of_type("AWS::EC2::VPCEndpoint").values()
        if e["Properties"].get("VpcEndpointType") == "Gateway"
    ]
    actions = {
        action
        for statement in endpoint["PolicyDocument"]["Statement"]
        if "/listings/*" in json.dumps(statement["Resource"])
        for action in listed(statement["Action"])
    }
    assert actions == {"s3:PutObject"}
    assert "/checkpoints/*" not in json.dumps(endpoint["PolicyDocument"])


def test_who_erases_or_holds_wakes_the_listing(stack: Synthesized) -> None:
    waking = {
        n for n, (_, f) in stack.functions().items() if "REM_LISTING_MACHINE" in f["Environment"]["Variables"]
    }
    assert waking == {"purge", "erase_step"}


def test_work_objects_expire_and_stale_links_open_nothing(stack: Synthesized) -> None:
    (id,) = [i for i in stack.of_type("AWS::S3::Bucket") if i.startswith("StorageWork")]
    bucket = stack.resources[id]["Properties"]
    lives = {r["Prefix"]: r["ExpirationInDays"] for r in bucket["LifecycleConfiguration"]["Rules"]}
    assert lives == {"bundles/": 1, "attempts/": 1, "reports/": REPORT_DAYS}
    encryption = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]
    assert encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert "VersioningConfiguration" not in bucket, "a deleted bundle must be gone"
    (policy,) = [
        p["Properties"]["PolicyDocument"]["Statement"]
        for p in stack.of_type("AWS::S3::BucketPolicy").values()
        if p["Properties"]["Bucket"] == {"Ref": id}
    ]
    stale = [s for s in policy if "s3:signatureAge" in json.dumps(s.get("Condition", {}))]
    assert [(s["Effect"], s["Action"]) for s in stale] == [("Deny", "s3:GetObject")]


def test_prod_data_survives_the_stack_and_dev_goes(dev: Synthesized, prod: Synthesized) -> None:
    kinds = ("AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Cognito::UserPool")
    for stack, policy in ((dev, "Delete"), (prod, "Retain")):
        for kind in kinds:
            assert {r["DeletionPolicy"] for r in stack.of_type(kind).values()} == {policy}
    (cluster,) = prod.of_type("AWS::RDS::DBCluster").values()
    assert cluster["DeletionPolicy"] == "Snapshot"
    assert cluster["Properties"]["DeletionProtection"] is True


def test_people_sign_in_with_two_factors_and_nobody_registers_alone(stack: Synthesized) -> None:
    pool = stack.one("AWS::Cognito::UserPool")
    assert pool["MfaConfiguration"] == "ON"
    assert pool["EnabledMfas"] == ["SOFTWARE_TOKEN_MFA"]
    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    assert pool["UserPoolTier"] == "ESSENTIALS"
    trigger = pool["LambdaConfig"]["PreTokenGenerationConfig"]
    assert trigger["LambdaVersion"] == "V2_0"
    assert stack.functions()["pre_token"][0] in set(references(trigger))
    groups = {g["Properties"]["GroupName"] for g in stack.of_type("AWS::Cognito::UserPoolGroup").values()}
    assert groups == set(manifest.HUMAN_GROUPS)
    server = stack.one("AWS::Cognito::UserPoolResourceServer")
    assert server["Identifier"] == "memory"
    assert {scope["ScopeName"] for scope in server["Scopes"]} == set(manifest.SCOPES)


def test_the_page_is_a_public_client_without_scopes_of_its_own(stack: Synthesized) -> None:
    client = stack.one("AWS::Cognito::UserPoolClient")
    assert client["GenerateSecret"] is False
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["AllowedOAuthScopes"] == ["openid"]
    assert client["AccessTokenValidity"] == 15
    assert client["TokenValidityUnits"]["AccessToken"] == "minutes"
    assert client["PreventUserExistenceErrors"] == "ENABLED"
    # Absent, it would be Cognito's default, which lets people in past the page and its scopes.
    assert client["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"]


def test_the_page_is_private_and_strict(stack: Synthesized) -> None:
    config = stack.one("AWS::CloudFront::Distribution")["DistributionConfig"]
    page, api = config["Origins"]
    assert "OriginAccessControlId" in page
    assert api["OriginPath"] == "/live"
    (behavior,) = config["CacheBehaviors"]
    assert behavior["PathPattern"] == "/v1/*"
    assert behavior["ViewerProtocolPolicy"] == "https-only"
    headers = stack.one("AWS::CloudFront::ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]
    policy = headers["SecurityHeadersConfig"]["ContentSecurityPolicy"]["ContentSecurityPolicy"]
    text = "".join(piece if isinstance(piece, str) else "ACCOUNT" for piece in policy["Fn::Join"][1])
    directives = dict(part.strip().partition(" ")[::2] for part in text.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == "'self'"
    sign_in = f"https://{stack.profile.prefix}-ACCOUNT.auth.{stack.profile.region}.amazoncognito.com"
    assert directives["connect-src"] == f"'self' {sign_in}"
    assert "unsafe" not in text and "*" not in text


def test_no_answer_of_the_api_is_given_to_another_caller(stack: Synthesized) -> None:
    """Not even a failure, which CloudFront keeps by path for ten seconds unless it is told not to."""
    config = stack.one("AWS::CloudFront::Distribution")["DistributionConfig"]
    (behavior,) = config["CacheBehaviors"]
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"  # AWS's: caching disabled
    kept = {e["ErrorCode"]: e["ErrorCachingMinTTL"] for e in config.get("CustomErrorResponses", [])}
    assert kept == dict.fromkeys((400, 403, 404, 405, 414, 500, 501, 502, 503, 504), 0)
    for error in config["CustomErrorResponses"]:
        assert not error.keys() & {"ResponsePagePath", "ResponseCode"}  # a problem document stays one


def test_schedules_are_the_manifest(stack: Synthesized) -> None:
    deployed = {
        s["Properties"]["Name"]: s["Properties"] for s in stack.of_type("AWS::Scheduler::Schedule").values()
    }
    assert set(deployed) == {f"{stack.profile.prefix}-{entry.name}" for entry in manifest.SCHEDULES}
    for entry in manifest.SCHEDULES:
        schedule = deployed[f"{stack.profile.prefix}-{entry.name}"]
        assert schedule["ScheduleExpression"] == expression(stack.profile, entry)
        assert schedule["Target"]["DeadLetterConfig"]
        (target,) = references(schedule["Target"]["Arn"])
        if entry.target.endswith(".asl"):
            name = stack.resources[target]["Properties"]["StateMachineName"]
            assert name == f"{stack.profile.prefix}-{entry.target.removesuffix('.asl')}"
        else:
            assert target == stack.functions()[entry.target][0]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (60, "rate(1 minute)"),
        (300, "rate(5 minutes)"),
        (7_200, "rate(2 hours)"),
        (86_400, "cron(10 3 * * ? *)"),
    ],
)
def test_schedule_expressions(prod: Synthesized, seconds: int, expected: str) -> None:
    assert expression(prod.profile, manifest.Schedule("x", "sweep", seconds, 86_400)) == expected


def test_a_schedule_below_a_minute_is_refused(prod: Synthesized) -> None:
    with pytest.raises(ValueError, match="whole number of minutes"):
        expression(prod.profile, manifest.Schedule("x", "sweep", 90, 86_400))


def test_a_pausing_cluster_is_woken_once_a_night(dev: Synthesized) -> None:
    expressions = {
        s["Properties"]["ScheduleExpression"] for s in dev.of_type("AWS::Scheduler::Schedule").values()
    }
    assert expressions == {"cron(10 3 * * ? *)"}


def test_machines_invoke_their_own_tasks_only(stack: Synthesized) -> None:
    deployed = {
        m["Properties"]["StateMachineName"]: m["Properties"]
        for m in stack.of_type("AWS::StepFunctions::StateMachine").values()
    }
    assert set(deployed) == {f"{stack.profile.prefix}-{machine.name}" for machine in manifest.MACHINES}
    for machine in manifest.MACHINES:
        properties = deployed[f"{stack.profile.prefix}-{machine.name}"]
        ids = {stack.functions()[task][0] for task in machine.tasks}
        assert set(properties["DefinitionSubstitutions"]) == set(machine.tasks)
        invoked = {
            target
            for statement in stack.statements_of(properties["RoleArn"]["Fn::GetAtt"][0])
            if "lambda:InvokeFunction" in listed(statement["Action"])
            for target in references(statement["Resource"])
        }
        assert invoked == ids
        assert properties["LoggingConfiguration"]["IncludeExecutionData"] is False
        assert properties["StateMachineType"] == "STANDARD"


def test_only_prod_has_a_firewall_and_it_leaves_bodies_alone(dev: Synthesized, prod: Synthesized) -> None:
    assert dev.of_type("AWS::WAFv2::WebACL") == {}
    acl = prod.one("AWS::WAFv2::WebACL")
    groups = {}
    for rule in acl["Rules"]:
        assert rule["VisibilityConfig"]["SampledRequestsEnabled"] is False
        group = rule["Statement"].get("ManagedRuleGroupStatement")
        if group:
            overrides = group.get("RuleActionOverrides", [])
            assert all(o["ActionToUse"] == {"Count": {}} for o in overrides)
            groups[group["Name"]] = {o["Name"] for o in overrides}
    assert groups == {name: set(counted) for name, counted in firewall.MANAGED.items()}
    rates = [
        r["Statement"]["RateBasedStatement"] for r in acl["Rules"] if "RateBasedStatement" in r["Statement"]
    ]
    assert Counter(rate["AggregateKeyType"] for rate in rates) == {"FORWARDED_IP": 1, "IP": 1}
    (association,) = prod.of_type("AWS::WAFv2::WebACLAssociation").values()
    assert "stages" in json.dumps(association["Properties"]["ResourceArn"])


def test_alarms_fit_cloudwatch_and_reach_people(stack: Synthesized) -> None:
    (topic,) = stack.of_type("AWS::SNS::Topic")
    alarms = [a["Properties"] for a in stack.of_type("AWS::CloudWatch::Alarm").values()]
    assert len(alarms) >= (10 if stack.profile.all_alarms else 5)
    for alarm in alarms:
        assert alarm["AlarmActions"] == [{"Ref": topic}]
        assert len(alarm.get("Metrics", [])) <= 10, alarm["AlarmName"]


def test_an_attempt_that_is_called_off_or_refused_rings_nothing(stack: Synthesized) -> None:
    """Its steps leave by exceptions, which Lambda counts and the machine catches."""
    asl = json.loads((ROOT / "infra/remember.asl.json").read_text())["States"]
    caught = {state["Resource"].strip("${}") for state in asl.values() if "Catch" in state}
    assert caught == ENDING_ATTEMPTS
    ids = {stack.functions()[name][0] for name in caught}
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        if "FunctionErrors" in alarm["Properties"]["AlarmName"]:
            assert not ids & set(references(alarm["Properties"]["Metrics"]))


def test_alarms_watch_every_function_and_emitted_metric(prod: Synthesized) -> None:
    watched = Counter()
    emitted = set()
    for alarm in prod.of_type("AWS::CloudWatch::Alarm").values():
        properties = alarm["Properties"]
        single = {"Namespace": properties.get("Namespace"), "MetricName": properties.get("MetricName")}
        metrics = [m["MetricStat"]["Metric"] for m in properties.get("Metrics", []) if "MetricStat" in m]
        for metric in metrics or [{**single, "Dimensions": properties.get("Dimensions", [])}]:
            if metric["Namespace"] == "AWS/Lambda":
                watched[metric["MetricName"]] += 1
            if metric["Namespace"] == METRICS_NAMESPACE:
                emitted.add((metric["MetricName"], metric["Dimensions"][0]["Value"]))
    ending = ENDING_ATTEMPTS
    assert watched == {
        "Errors": len(manifest.FUNCTIONS) - len(ending),
        "Throttles": len(manifest.FUNCTIONS),
    }
    assert emitted == {(metric.name, function) for metric in EMITTED for function in metric.emitted_by}
    for _, function in emitted:
        manifest.function(function)


def test_the_share_of_quarantined_writes_is_of_every_function_that_takes_text(prod: Synthesized) -> None:
    taking = {f.name for f in manifest.FUNCTIONS if any(route.text for route in f.routes)} | {"job_step"}
    watched: dict[str, set[str]] = {"Screened": set(), "Quarantined": set()}
    for alarm in prod.of_type("AWS::CloudWatch::Alarm").values():
        if "QuarantineRate" in alarm["Properties"]["AlarmName"]:
            for metric in alarm["Properties"]["Metrics"]:
                if "MetricStat" in metric:
                    read = metric["MetricStat"]["Metric"]
                    watched[read["MetricName"]].add(read["Dimensions"][0]["Value"])
    assert watched == {"Screened": taking, "Quarantined": taking}


def test_outputs_are_what_a_person_needs(stack: Synthesized) -> None:
    assert set(stack.template["Outputs"]) >= {
        "ApiUrl",
        "PageUrl",
        "Issuer",
        "UserPoolId",
        "SignInUrl",
        "MigrateFunction",
        "CheckpointBucket",
        "CheckpointKey",
        "AlertTopic",
    }


def test_the_stack_is_tagged_and_protected(stack: Synthesized) -> None:
    """CloudFormation passes a stack's tags on to everything in it."""
    artifacts = json.loads((stack.outdir / "manifest.json").read_text())["artifacts"]
    properties = artifacts[stack.profile.prefix]["properties"]
    assert properties["tags"] == stack.profile.tags
    assert properties.get("terminationProtection", False) == stack.profile.keep_data
