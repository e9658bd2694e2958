"""Cognito: people in groups with a second factor, the resource server, the page's client.

Agents' clients are made by an operator (docs/operate.md): the stack knows none of them.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions import manifest
from infra.nag import accept
from infra.settings import Profile

PERSON_TOKEN = cdk.Duration.minutes(15)
SESSION = cdk.Duration.hours(10)
RESOURCE_SERVER = "memory"


class Identity(Construct):
    """The pool. Everybody in it is a person, so the second factor is required of all."""

    def __init__(self, scope: Construct, id: str, profile: Profile, *, pre_token: lambda_.IFunction) -> None:
        super().__init__(scope, id)
        stack = cdk.Stack.of(self)
        self.pool = cognito.UserPool(
            self,
            "Pool",
            user_pool_name=profile.prefix,
            feature_plan=cognito.FeaturePlan.ESSENTIALS,
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            auto_verify=cognito.AutoVerifiedAttrs(email=True),
            mfa=cognito.Mfa.REQUIRED,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=14,
                require_digits=True,
                require_lowercase=True,
                require_uppercase=True,
                require_symbols=True,
                temp_password_validity=cdk.Duration.days(3),
            ),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            deletion_protection=profile.keep_data,
            removal_policy=cdk.RemovalPolicy.RETAIN if profile.keep_data else cdk.RemovalPolicy.DESTROY,
        )
        accept(
            self.pool,
            "Threat protection needs the Plus plan; a second factor is required of everybody instead.",
            "AwsSolutions-COG8",
        )
        self.pool.add_trigger(
            cognito.UserPoolOperation.PRE_TOKEN_GENERATION_CONFIG, pre_token, cognito.LambdaVersion.V2_0
        )
        for group in manifest.HUMAN_GROUPS:
            cognito.CfnUserPoolGroup(
                self, group.capitalize(), user_pool_id=self.pool.user_pool_id, group_name=group
            )
        scopes = [
            cognito.ResourceServerScope(scope_name=name, scope_description=f"Remembrancer: {name}")
            for name in manifest.SCOPES
        ]
        self.pool.add_resource_server("Memory", identifier=RESOURCE_SERVER, scopes=scopes)
        prefix = f"{profile.prefix}-{stack.account}"
        self.pool.add_domain(
            "Domain",
            cognito_domain=cognito.CognitoDomainOptions(domain_prefix=prefix),
            managed_login_version=cognito.ManagedLoginVersion.NEWER_MANAGED_LOGIN,
        )
        self.domain = f"https://{prefix}.auth.{profile.region}.amazoncognito.com"
        """Composed, not read from the domain resource: the page's headers name it before it exists."""
        self.issuer = f"https://cognito-idp.{profile.region}.amazonaws.com/{self.pool.user_pool_id}"

    def add_page_client(self, page_url: str) -> cognito.UserPoolClient:
        """A public client: authorization code with PKCE, no secret, no scope of its own beside `openid`."""
        client = self.pool.add_client(
            "Page",
            generate_secret=False,
            # Spelled out, since Cognito takes none for its default: sign-in past the sign-in page by everybody who
            # knows this public client's id, with tokens that may change the account itself.
            auth_flows=cognito.AuthFlow(user_srp=False, custom=False),
            supported_identity_providers=[cognito.UserPoolClientIdentityProvider.COGNITO],
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID],
                callback_urls=[f"{page_url}/"],
                logout_urls=[f"{page_url}/"],
            ),
            access_token_validity=PERSON_TOKEN,
            id_token_validity=PERSON_TOKEN,
            refresh_token_validity=SESSION,
            enable_token_revocation=True,
            prevent_user_existence_errors=True,
        )
        cognito.CfnManagedLoginBranding(
            self,
            "Branding",
            user_pool_id=self.pool.user_pool_id,
            client_id=client.user_pool_client_id,
            use_cognito_provided_values=True,
        )
        return client
