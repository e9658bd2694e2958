"""The bundle of a data subject as a page to read: every text escaped, nothing that runs, nothing loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from remembrancer.domain.invisible import JOINERS, REMOVABLE, SELECTORS

_HIDDEN = re.compile(f"[{REMOVABLE}{SELECTORS}{JOINERS}\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029]")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#1b1f24;background:#fff}"
    "main{max-width:56rem;margin:0 auto;padding:2rem 1rem}"
    "article{border-top:2px solid #59636e;padding:.5rem 0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f8fa;padding:.6rem}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{font-weight:600}dd{margin:0}"
    "dd{overflow-wrap:anywhere}"
    "@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}pre{background:#161b22}}"
)
TITLES = {  # the lists of records of a bundle
    "memories": "Memories",
    "submissions": "Further submissions of what others stored",
    "proposals": "Captures for review",
    "attempts": "Requests to remember",
    "staged": "Imports that are under way",
}


def to_html(bundle: Mapping[str, Any]) -> str:
    """`bundle` is the JSON document of the same bundle (flows/subject_bundle.py)."""
    about = {name: value for name, value in bundle.items() if name not in TITLES}
    sections = "".join(_section(title, bundle[name]) for name, title in TITLES.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Personal data {_text(bundle['dsar_id'])}</title><style>{_STYLE}</style></head><body><main>"
        "<h1>Personal data held in this memory</h1><p>Characters that cannot be seen are shown by their number, "
        "such as [U+200B]; the file data.json has the exact text.</p>"
        f"{_members(about)}{sections}</main></body></html>"
    )


def _section(title: str, records: Sequence[Mapping[str, Any]]) -> str:
    body = "".join(f"<article>{_record(record)}</article>" for record in records) or "<p>None.</p>"
    return f"<h2>{escape(title)}: {len(records)}</h2>{body}"


def _record(record: Mapping[str, Any]) -> str:
    text = record.get("text")
    shown = "" if text is None else f"<pre>{_text(text)}</pre>"
    return shown + _members({name: value for name, value in record.items() if name != "text"})


def _members(members: Mapping[str, Any]) -> str:
    return f"<dl>{''.join(f'<dt>{_text(n)}</dt><dd>{_value(v)}</dd>' for n, v in members.items())}</dl>"


def _value(value: Any) -> str:
    if value is None or value == [] or value == {}:  # as a pattern {} would match every dict
        return "–"
    match value:
        case dict():
            return _members(value)
        case list():
            return f"<ul>{''.join(f'<li>{_value(item)}</li>' for item in value)}</ul>"
    return _text(value)


def _text(value: Any) -> str:
    return escape(_HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", str(value)))
