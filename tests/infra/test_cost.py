"""The estimate counts what the template has."""

from __future__ import annotations

import pytest
from templates import Synthesized

from infra import cost


def test_quantities_are_the_templates(stack: Synthesized) -> None:
    counted = cost.quantities(stack.profile)
    endpoints = stack.of_type("AWS::EC2::VPCEndpoint").values()
    assert counted["endpoints"] == sum(len(e["Properties"].get("SubnetIds", [])) for e in endpoints)
    assert counted["keys"] == len(stack.of_type("AWS::KMS::Key"))
    assert counted["instances"] == len(stack.of_type("AWS::RDS::DBInstance"))
    assert counted["dashboards"] == len(stack.of_type("AWS::CloudWatch::Dashboard"))
    metrics = 0
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        using = alarm["Properties"].get("Metrics")
        metrics += sum("MetricStat" in metric for metric in using) if using else 1
    assert counted["alarm_metrics"] == metrics
    acls = stack.of_type("AWS::WAFv2::WebACL").values()
    assert counted["waf_rules"] == sum(len(acl["Properties"]["Rules"]) for acl in acls)


def test_idle_figures_are_near_the_designed_ones(dev: Synthesized, prod: Synthesized) -> None:
    """aws.md's figures: about 29 and 145 dollars; a change that moves them by a fifth must be meant."""
    assert sum(cost.idle(dev.profile).values()) == pytest.approx(29, rel=0.2)
    assert sum(cost.idle(prod.profile).values()) == pytest.approx(145, rel=0.2)


def test_the_report_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert cost.main(["--profile", "dev"]) == 0
    printed = capsys.readouterr().out
    assert "idle, a month" in printed and "a million requests" in printed
    assert cost.main(["--profile", "nowhere"]) == 2
    assert "no profile" in capsys.readouterr().err
