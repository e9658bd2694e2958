"""The review page: a private bucket behind CloudFront, which also carries /v1/* to the API."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from infra.gateway import STAGE
from infra.logs import retention
from infra.nag import accept, managed_policy_id, objects_id
from infra.settings import ROOT, Profile

PLACEHOLDER = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Remembrancer</title>'
    "<p>The review page is not built yet: run the page's build and deploy again.</p></html>\n"
)

_NEVER_KEPT = (400, 403, 404, 405, 414, 500, 501, 502, 503, 504)
"""CloudFront keeps errors for ten seconds by itself, some whatever `Cache-Control` says, by the path alone: one
person's failure would be everybody's."""

_UPLOADER_FINDINGS = (
    "AwsSolutions-L1",
    "Serverless-LambdaLatestVersion",
    "Serverless-LambdaDLQ",
    "Serverless-LambdaTracing",
    managed_policy_id("AWSLambdaBasicExecutionRole"),
    "AwsSolutions-IAM5[Action::s3:GetBucket*]",
    "AwsSolutions-IAM5[Action::s3:GetObject*]",
    "AwsSolutions-IAM5[Action::s3:List*]",
    "AwsSolutions-IAM5[Action::s3:Abort*]",
    "AwsSolutions-IAM5[Action::s3:DeleteObject*]",
    # Invalidations of the distribution's cache have no resource to name.
    "AwsSolutions-IAM5[Resource::*]",
)


def content_security_policy(sign_in: str) -> str:
    """Own files, the own API, and the sign-in's token endpoint; nothing inline, nothing framed."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "font-src 'self'",
            f"connect-src 'self' {sign_in}",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "upgrade-insecure-requests",
        )
    )


class Page(Construct):
    """The distribution; its content comes later, when the sign-in's client is known."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        profile: Profile,
        *,
        bucket: s3.IBucket,
        access_logs: s3.IBucket,
        api_host: str,
        sign_in: str,
    ) -> None:
        super().__init__(scope, id)
        self._retention = retention(profile)
        self._bucket = bucket
        headers = cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            comment="Remembrancer: strict content security policy",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=content_security_policy(sign_in), override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=cdk.Duration.days(730), include_subdomains=True, override=True
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=header, value=value, override=True)
                    for header, value in (
                        ("Cross-Origin-Opener-Policy", "same-origin"),
                        ("Cross-Origin-Resource-Policy", "same-origin"),
                        ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
                    )
                ]
            ),
        )
        self.distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment="Remembrancer: review page and API",
            default_root_object="index.html",
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            log_bucket=access_logs,
            log_file_prefix="distribution/",
            log_includes_cookies=False,
            default_behavior=cloudfront.BehaviorOptions(
                origin=origins.S3BucketOrigin.with_origin_access_control(bucket),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                response_headers_policy=headers,
                compress=True,
            ),
            additional_behaviors={
                "/v1/*": cloudfront.BehaviorOptions(
                    # By host name: an origin made from the API's construct would close a cycle, since the
                    # functions behind the API are told this distribution's name.
                    origin=origins.HttpOrigin(
                        api_host,
                        origin_path=f"/{STAGE}",
                        protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
                        origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2],
                    ),
                    allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
                    cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
                    origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
                    viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
                    compress=False,
                )
            },
            error_responses=[
                cloudfront.ErrorResponse(http_status=status, ttl=cdk.Duration.seconds(0))
                for status in _NEVER_KEPT
            ],
        )
        accept(
            self.distribution,
            "Reviewers may travel; every data path needs a token and the API has its own firewall in prod.",
            "AwsSolutions-CFR1",
            "AwsSolutions-CFR2",
        )
        accept(
            self.distribution,
            "TLS 1.2 cannot be enforced on the default certificate; docs/operate.md: bring a domain.",
            "AwsSolutions-CFR4",
        )

    @property
    def url(self) -> str:
        """scheme://host, without a trailing slash."""
        return f"https://{self.distribution.distribution_domain_name}"

    def publish(self, config: dict[str, str]) -> None:
        """Uploads `web/dist` (a placeholder while it is not built) and `config.json` for it."""
        built = ROOT / "web/dist"
        content = (
            deployment.Source.asset(str(built))
            if built.is_dir()
            else deployment.Source.data("index.html", PLACEHOLDER)
        )
        upload = deployment.BucketDeployment(
            self,
            "Content",
            sources=[content, deployment.Source.json_data("config.json", config)],
            destination_bucket=self._bucket,
            distribution=self.distribution,
            cache_control=[deployment.CacheControl.no_cache()],
            memory_limit=256,
            log_group=logs.LogGroup(
                self, "UploadLog", retention=self._retention, removal_policy=cdk.RemovalPolicy.DESTROY
            ),
        )
        accept(
            upload.handler_role.node.scope,
            "CDK's own uploader, which runs at deploy time only and whose permissions CDK composes.",
            *_UPLOADER_FINDINGS,
            objects_id(self._bucket),
            "AwsSolutions-IAM5[Resource::arn:aws:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-"
            f"{cdk.Stack.of(self).region}/*]",
        )
