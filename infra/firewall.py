"""WAF in front of the API: rates, addresses of bad repute, and managed rules that leave bodies alone."""

from __future__ import annotations

from aws_cdk import aws_wafv2 as wafv2
from constructs import Construct

REQUESTS_PER_5_MINUTES = 3_000
"""Of one client, as CloudFront forwards its address or as it calls directly."""

MANAGED: dict[str, tuple[str, ...]] = {
    "AWSManagedRulesAmazonIpReputationList": (),
    "AWSManagedRulesCommonRuleSet": (
        "SizeRestrictions_BODY",
        "EC2MetaDataSSRF_BODY",
        "GenericLFI_BODY",
        "GenericRFI_BODY",
        "CrossSiteScripting_BODY",
    ),
    "AWSManagedRulesKnownBadInputsRuleSet": (
        "JavaDeserializationRCE_BODY",
        "Log4JRCE_BODY",
        "ReactJSRCE_BODY",
    ),
    "AWSManagedRulesSQLiRuleSet": ("SQLi_BODY", "SQLiExtendedPatterns_BODY"),
}
"""Managed groups, and their rules that only count: a memory may be about SQL or HTML, and a body rule sees
only the first kilobytes anyway. Our own screen reads all of it."""


def _visible(name: str) -> wafv2.CfnWebACL.VisibilityConfigProperty:
    # Sampled requests would keep headers, tokens among them.
    return wafv2.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=name, sampled_requests_enabled=False
    )


def _rate_rule(
    name: str,
    priority: int,
    limit: int,
    forwarded: wafv2.CfnWebACL.ForwardedIPConfigurationProperty | None,
) -> wafv2.CfnWebACL.RuleProperty:
    statement = wafv2.CfnWebACL.RateBasedStatementProperty(
        aggregate_key_type="FORWARDED_IP" if forwarded else "IP",
        limit=limit,
        evaluation_window_sec=300,
        forwarded_ip_config=forwarded,
    )
    return wafv2.CfnWebACL.RuleProperty(
        name=name,
        priority=priority,
        action=wafv2.CfnWebACL.RuleActionProperty(block={}),
        statement=wafv2.CfnWebACL.StatementProperty(rate_based_statement=statement),
        visibility_config=_visible(name),
    )


def _managed_rule(name: str, priority: int, counted: tuple[str, ...]) -> wafv2.CfnWebACL.RuleProperty:
    count = wafv2.CfnWebACL.RuleActionProperty(count={})
    group = wafv2.CfnWebACL.ManagedRuleGroupStatementProperty(
        vendor_name="AWS",
        name=name,
        rule_action_overrides=[
            wafv2.CfnWebACL.RuleActionOverrideProperty(name=rule, action_to_use=count) for rule in counted
        ]
        or None,
    )
    return wafv2.CfnWebACL.RuleProperty(
        name=name,
        priority=priority,
        override_action=wafv2.CfnWebACL.OverrideActionProperty(none={}),
        statement=wafv2.CfnWebACL.StatementProperty(managed_rule_group_statement=group),
        visibility_config=_visible(name),
    )


class Firewall(Construct):
    """One web ACL on the API's stage.

    Two rates, since a forwarded address can be made up by whoever calls the API directly: one by the
    address that CloudFront names, one, wider, by the address that connects (CloudFront's serve many).
    """

    def __init__(self, scope: Construct, id: str, *, stage_arn: str) -> None:
        super().__init__(scope, id)
        by_header = wafv2.CfnWebACL.ForwardedIPConfigurationProperty(
            header_name="X-Forwarded-For", fallback_behavior="NO_MATCH"
        )
        rules = [
            _rate_rule("RateByForwardedAddress", 0, REQUESTS_PER_5_MINUTES, by_header),
            _rate_rule("RateByAddress", 1, 10 * REQUESTS_PER_5_MINUTES, None),
        ]
        rules += [
            _managed_rule(name, priority, counted)
            for priority, (name, counted) in enumerate(MANAGED.items(), start=2)
        ]
        acl = wafv2.CfnWebACL(
            self,
            "Acl",
            scope="REGIONAL",
            default_action=wafv2.CfnWebACL.DefaultActionProperty(allow={}),
            rules=rules,
            visibility_config=_visible("Remembrancer"),
        )
        wafv2.CfnWebACLAssociation(self, "OnApi", resource_arn=stage_arn, web_acl_arn=acl.attr_arn)
