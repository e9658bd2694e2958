"""The REST API from the manifest: routes, scopes, throttling, problem documents for its own answers."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_logs as logs
from constructs import Construct

from functions import manifest
from infra.functions import Functions
from infra.logs import retention
from infra.nag import accept, managed_policy_id
from infra.problems import CONTENT_TYPE, PROBLEMS
from infra.settings import Profile

STAGE = "live"

ACCESS_LOG = {
    "request_id": "$context.requestId",
    "time": "$context.requestTimeEpoch",
    "method": "$context.httpMethod",
    "route": "$context.resourcePath",
    "status": "$context.status",
    "response_bytes": "$context.responseLength",
    "latency_ms": "$context.responseLatency",
    "integration_ms": "$context.integrationLatency",
    "error_type": "$context.error.responseType",
    "waf": "$context.waf.status",
}
"""No claims, no path parameters, no address of the caller, no error text."""

HEALTH_BODY = json.dumps({"status": "ok"})


def scopes_of(route: manifest.Route) -> list[str]:
    """OAuth scopes as the authorizer compares them.

    With none the authorizer would want an identity token instead of an access token, so "any signed-in
    principal" is spelled as every scope there is.
    """
    return [f"memory/{scope}" for scope in route.scopes or manifest.SCOPES]


class Gateway(Construct):
    """One Lambda integration a function; the gateway alone may call it."""

    def __init__(
        self, scope: Construct, id: str, profile: Profile, *, functions: Functions, pool: cognito.IUserPool
    ) -> None:
        super().__init__(scope, id)
        access_log = logs.LogGroup(
            self, "Access", retention=retention(profile), removal_policy=cdk.RemovalPolicy.DESTROY
        )
        self.api = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=profile.prefix,
            description="Remembrancer",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=True,
            cloud_watch_role_removal_policy=cdk.RemovalPolicy.RETAIN,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=profile.throttle_rate,
                throttling_burst_limit=profile.throttle_burst,
                data_trace_enabled=False,
                logging_level=apigateway.MethodLoggingLevel.OFF,
                metrics_enabled=True,
                tracing_enabled=True,
                access_log_destination=apigateway.LogGroupLogDestination(access_log),
                access_log_format=apigateway.AccessLogFormat.custom(json.dumps(ACCESS_LOG)),
            ),
        )
        authorizer = apigateway.CognitoUserPoolsAuthorizer(
            self, "Authorizer", cognito_user_pools=[pool], results_cache_ttl=cdk.Duration.minutes(5)
        )
        for entry, function in functions.chosen(lambda entry: bool(entry.routes)):
            # One permission a function, for this API as a whole, instead of two a method.
            integration = apigateway.LambdaIntegration(function, scope_permission_to_method=False)
            for route in entry.routes:
                self.api.root.resource_for_path(route.path).add_method(
                    route.method,
                    integration,
                    authorizer=authorizer,
                    authorization_type=apigateway.AuthorizationType.COGNITO,
                    authorization_scopes=scopes_of(route),
                )
        self._add_health()
        for problem in PROBLEMS:
            self.api.add_gateway_response(
                problem.kind.title().replace("_", ""),
                type=apigateway.ResponseType.of(problem.kind),
                status_code=str(problem.status),
                response_headers={"Content-Type": f"'{CONTENT_TYPE}'", "Cache-Control": "'no-store'"},
                templates={"application/json": problem.template()},
            )
        self._acknowledge(profile)

    @property
    def origin(self) -> str:
        """scheme://host/stage, as agents call it and as signatures name it."""
        return f"https://{self.host}/{STAGE}"

    @property
    def host(self) -> str:
        stack = cdk.Stack.of(self)
        return f"{self.api.rest_api_id}.execute-api.{stack.region}.amazonaws.com"

    def _add_health(self) -> None:
        """Answered by the gateway itself: it must not wake a paused database."""
        health = self.api.root.resource_for_path(manifest.HEALTH.path).add_method(
            manifest.HEALTH.method,
            apigateway.MockIntegration(
                passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
                request_templates={"application/json": json.dumps({"statusCode": 200})},
                integration_responses=[
                    apigateway.IntegrationResponse(
                        status_code="200", response_templates={"application/json": HEALTH_BODY}
                    )
                ],
            ),
            authorization_type=apigateway.AuthorizationType.NONE,
            method_responses=[apigateway.MethodResponse(status_code="200")],
        )
        accept(
            health,
            "Says only that the gateway answers; load balancers and people have no token.",
            "AwsSolutions-APIG4",
            "AwsSolutions-COG4",
        )

    def _acknowledge(self, profile: Profile) -> None:
        if not profile.waf:
            accept(
                self.api,
                "A dev deployment has no firewall: it costs more than the rest.",
                "AwsSolutions-APIG3",
            )
        accept(
            self.api,
            "The functions parse bodies themselves, more strictly than a JSON schema can (duplicate keys, "
            "depth, surrogates).",
            "AwsSolutions-APIG2",
        )
        accept(
            self.api,
            "Execution logs may echo requests into a group without retention; access logs, traces and the "
            "functions' logs replace them.",
            "AwsSolutions-APIG6",
        )
        accept(
            self.api,
            "API Gateway writes access logs only through an account-wide role with this AWS policy.",
            managed_policy_id("AmazonAPIGatewayPushToCloudWatchLogs"),
        )
