"""The decay report for people and for machines: ids, kinds, counts, dates and reasons, never text.

A report is kept where erasure does not look, so nothing of a memory's content may be in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

REASONS = {
    "per_chunk": "An expiry date of its own",
    "kind_policy": "The retention of its kind",
}


def to_html(document: Mapping[str, Any]) -> str:
    """One page without scripts, styles of other places or links out. `document` is the report's JSON."""
    counts = document["counts"]
    sections = [
        _section(
            f"Decayed: {REASONS[reason]}",
            f"{_memories(counts['decayed'].get(reason, 0))} that recall no longer returns.",
            [row for row in document["decayed"] if row["retention_reason"] == reason],
            counts["decayed"].get(reason, 0),
        )
        for reason in REASONS
    ]
    sections.append(
        _section(
            f"Expiring before {_day(document['until'])}",
            f"{_memories(sum(counts['expiring'].values()))} that will decay unless renewed.",
            document["expiring"],
            sum(counts["expiring"].values()),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Decay report {escape(_day(document['at']))}</title><style>{_STYLE}</style></head><body>"
        f"<main><h1>Decay report</h1><p>As of {escape(document['at'])}. Ids and dates only: open a memory "
        "to read it. Renew what still holds; what does not needs nothing.</p>"
        f"{_kinds(document)}{''.join(sections)}</main></body></html>"
    )


def _kinds(document: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{escape(kind)}</th><td>{days} days</td>"
        f"<td>{counts.get('decayed', 0)}</td><td>{counts.get('expiring', 0)}</td></tr>"
        for kind, days in sorted(document["retention"].items())
        for counts in [document["by_kind"].get(kind, {})]
    )
    return (
        "<h2>By kind</h2><table><thead><tr><th scope='col'>Kind</th><th scope='col'>Retention</th>"
        "<th scope='col'>Decayed</th><th scope='col'>Expiring</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _section(title: str, lead: str, rows: Sequence[Mapping[str, Any]], total: int) -> str:
    head = f"<h2>{escape(title)}</h2><p>{escape(lead)}</p>"
    more = f"<p>The first {len(rows)} of {total}.</p>" if len(rows) < total else ""
    if not rows:
        return head + more
    body = "".join(
        f"<tr><td><code>{escape(row['memory_id'])}</code></td><td>{escape(row['kind'])}</td>"
        f"<td>{escape(row['space'])}</td><td>{escape(_day(row['created_at']))}</td>"
        f"<td>{escape(_day(row['expiry']))}</td><td>{escape(REASONS[row['retention_reason']])}</td></tr>"
        for row in rows
    )
    return (
        f"{head}<table><thead><tr><th scope='col'>Memory</th><th scope='col'>Kind</th><th scope='col'>Space</th>"
        "<th scope='col'>Created</th><th scope='col'>Over</th><th scope='col'>Why</th></tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )


def _day(instant: str) -> str:
    return instant[:10]


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#1b1f24;background:#fff}"
    "main{max-width:64rem;margin:0 auto;padding:2rem 1rem}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #d8dee4}"
    "thead th{border-bottom:2px solid #59636e}code{font-size:.85em}"
    "@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}}"
)


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"
