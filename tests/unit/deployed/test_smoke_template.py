"""What `make smoke` takes out of the template for the emulator, and nothing else."""

from __future__ import annotations

from infra.smoke import LEFT_OUT, without_what_is_missing


def test_left_out_resources_go_with_the_dependencies_on_them() -> None:
    template = {
        "Outputs": {"A": {"Value": "x"}},
        "Resources": {
            "Kept": {"Type": "AWS::Lambda::Function", "DependsOn": ["Gone", "Other"]},
            "Other": {"Type": "AWS::SQS::Queue", "DependsOn": "Gone"},
            "Gone": {"Type": sorted(LEFT_OUT)[0]},
            "Sum": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": []}},
            "Plain": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "m"}},
        },
    }
    left = without_what_is_missing(template)
    assert left["Outputs"] == template["Outputs"]
    assert {id: r["DependsOn"] for id, r in left["Resources"].items()} == {
        "Kept": ["Other"],
        "Other": [],
        "Plain": [],
    }
