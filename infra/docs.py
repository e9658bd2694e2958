"""The generated parts of the documents: `python -m infra.docs` writes them, tests keep them true.

docs/architecture.md has the picture of what calls what, from the manifest; docs/operate.md the findings
of cdk-nag that were acknowledged, from the reports of the last synths.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from functions import manifest
from infra.environment import names_for
from infra.settings import ROOT

ARCHITECTURE = ROOT / "docs/architecture.md"
OPERATE = ROOT / "docs/operate.md"


def mermaid() -> str:
    """The flowchart: callers, functions on their side of the rule of reach, workflows, schedules."""
    lines = ["flowchart LR", '  people["people: page"] --> api', '  agents["agents"] --> api']
    lines.append('  api["API Gateway, Cognito"]')
    for side, title in (
        ("vpc", "in the VPC: a database role, no reach"),
        ("none", "outside: reach, no database"),
    ):
        lines.append(f'  subgraph {side}["{title}"]')
        for entry in manifest.FUNCTIONS:
            if entry.network == side:
                role = f"<br/>{entry.db_role}" if entry.db_role else ""
                lines.append(f'    {entry.name}["{entry.name}{role}"]')
        lines.append("  end")
    for machine in manifest.MACHINES:
        lines.append(f'  {machine.name}_asl{{{{"workflow {machine.name}"}}}}')
    lines.append('  database[("Aurora PostgreSQL")]')
    for entry in manifest.FUNCTIONS:
        if entry.routes:
            count = len(entry.routes)
            lines.append(f"  api -->|{count} route{'s' if count > 1 else ''}| {entry.name}")
    for machine in manifest.MACHINES:
        for number, task in enumerate(machine.tasks, start=1):
            lines.append(f"  {machine.name}_asl -->|{number}| {task}")
    for schedule in manifest.SCHEDULES:
        target = schedule.target.replace(".asl", "_asl")
        lines.append(f'  schedule_{schedule.name}(["every {_duration(schedule.every_s)}"]) --> {target}')
    lines.append("  vpc --> database")
    starters = [f.name for f in manifest.FUNCTIONS if "REM_OUTBOX_MACHINE" in names_for(f)]
    lines.append(f"  {' & '.join(starters)} -.->|after a commit| outbox_asl")
    return "\n".join(lines)


def _duration(seconds: int) -> str:
    for unit, name in ((3_600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def nag_table(reports: Iterable[dict[str, Any]]) -> str:
    """Rule and reason of every acknowledged finding, once each, in Markdown."""
    rows = {
        (_rule(finding["ruleName"]), finding["reason"])
        for report in reports
        for pack in report["pluginReports"]
        for finding in pack.get("suppressedViolations", ())
    }
    lines = ["| rule | why it does not apply |", "|---|---|"]
    return "\n".join(lines + [f"| {rule} | {reason} |" for rule, reason in sorted(rows)])


def _rule(name: str) -> str:
    """Without the finding's detail, which names generated identifiers."""
    return re.sub(r"\[.*", "", name)


def _find(text: str, name: str) -> re.Match[str]:
    found = re.search(rf"(?<=<!-- {name}: generated -->\n).*?(?=\n<!-- end {name} -->)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"no block {name!r}")
    return found


def block(text: str, name: str) -> str:
    """The generated block of that name. Raises ValueError when the document has none."""
    return _find(text, name).group()


def with_block(text: str, name: str, body: str) -> str:
    """The document with that block replaced. Raises ValueError when it has none."""
    found = _find(text, name)
    return text[: found.start()] + body + text[found.end() :]


def fenced(diagram: str) -> str:
    return f"```mermaid\n{diagram}\n```"


def main(reports: list[str]) -> None:
    """Rewrites both documents; `reports` are validation-report.json files of dev and prod."""
    ARCHITECTURE.write_text(with_block(ARCHITECTURE.read_text(), "diagram", fenced(mermaid())))
    if reports:
        table = nag_table(json.loads(Path(path).read_text()) for path in reports)
        OPERATE.write_text(with_block(OPERATE.read_text(), "nag", table))


if __name__ == "__main__":
    main(sys.argv[1:])
