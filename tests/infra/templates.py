"""A small reader of synthesized templates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.settings import Profile


@dataclass(frozen=True, repr=False)
class Synthesized:
    """One profile's template, its nag report, and the folder that both are in."""

    profile: Profile
    outdir: Path
    template: dict[str, Any]
    report: dict[str, Any]

    @property
    def resources(self) -> dict[str, Any]:
        return self.template["Resources"]

    def of_type(self, kind: str) -> dict[str, Any]:
        return {id: r for id, r in self.resources.items() if r["Type"] == kind}

    def one(self, kind: str) -> Any:
        (only,) = self.of_type(kind).values()
        return only["Properties"]

    def functions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Ours, by manifest name: logical id and properties."""
        prefix = f"{self.profile.prefix}-"
        return {
            r["Properties"]["FunctionName"].removeprefix(prefix): (id, r["Properties"])
            for id, r in self.of_type("AWS::Lambda::Function").items()
            if str(r["Properties"].get("FunctionName", "")).startswith(prefix)
        }

    def statements_of(self, role_id: str) -> list[dict[str, Any]]:
        """Every statement of that role's policies, inline ones too."""
        found = [
            statement
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role_id} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        for policy in self.resources[role_id]["Properties"].get("Policies", []):
            found += policy["PolicyDocument"]["Statement"]
        return found

    def role_of(self, function: str) -> str:
        _, properties = self.functions()[function]
        role: str = properties["Role"]["Fn::GetAtt"][0]
        return role


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def references(value: Any) -> Iterator[str]:
    """Logical ids that a value refers to."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref":
                yield inner
            elif key == "Fn::GetAtt":
                yield inner[0]
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)
