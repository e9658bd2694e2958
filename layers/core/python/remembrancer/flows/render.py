"""How stored rows are shown: every text through the one sanitizer, ids and times in their public form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from remembrancer.domain.ids import Prefix, format_id
from remembrancer.domain.sanitize import sanitize_read
from remembrancer.domain.values import canonical_value
from remembrancer.flows.instants import instant as instant
from remembrancer.store.database import Row, Unit

T = TypeVar("T")


def clean(value: Any, *, reveal_pii: bool) -> Any:
    """Every string of a structure, sanitized for this reader."""
    match value:
        case str():
            return sanitize_read(value, reveal_pii=reveal_pii)
        case {"type": "number", "value": str(written)}:
            rest = {name: item for name, item in value.items() if name != "value"}
            return {"value": _number(written, reveal_pii=reveal_pii), **clean(rest, reveal_pii=reveal_pii)}
        case dict():
            return {name: clean(item, reveal_pii=reveal_pii) for name, item in value.items()}
        case list():
            return [clean(item, reveal_pii=reveal_pii) for item in value]
    return value


def _number(written: str, *, reveal_pii: bool) -> str:
    """As it was written, unless its digits are something to mask: a sign or an exponent would hide that."""
    try:
        digits = canonical_value("number", written)
    except ValueError:  # no value of ours
        return sanitize_read(written, reveal_pii=reveal_pii)
    shown = sanitize_read(digits, reveal_pii=reveal_pii)
    return written if shown == digits else shown


def reveals(unit: Unit, prefix: Prefix, row: Row) -> bool:
    """Whether this reader sees the personal data of a memory's or a proposal's row as it is. That it was shown goes
    to the read log."""
    if unit.principal.sees_pii and row.get("pii", True):
        unit.saw_personal([format_id(prefix, row["memory_id" if prefix == "mem" else "proposal_id"])])
    return unit.principal.sees_pii


def revealed(unit: Unit, public_id: str, show: Callable[[bool], T]) -> T:
    """What `show` (told whether personal data is revealed) makes of an entity or a relationship for this reader. They
    carry no flag: what masking would change is personal data, and that it was shown goes to the read log."""
    if not unit.principal.sees_pii:
        return show(False)
    shown = show(True)
    if shown != show(False):
        unit.saw_personal([public_id])
    return shown


def memory(row: Row, team_space: UUID, *, reveal_pii: bool) -> dict[str, Any]:
    """A memory under the version of the row. The text is data, whoever wrote it: `untrusted` is always true."""
    text = clean(
        {
            "text": row["content"],
            "title": row["title"],
            "author": row["author"],
            "source_uri": row["source_uri"],
            "revision": row["revision"],
            "heading_path": row["heading_path"],
            "data_subjects": row["data_subjects"],
        },
        reveal_pii=reveal_pii,
    )
    return {
        "memory_id": format_id("mem", row["memory_id"]),
        "version": row["version"],
        "text": text["text"],
        "title": text["title"],
        "author": text["author"],
        "kind": row["kind"],
        "space": "team_shared" if row["space_id"] == team_space else "private",
        "domain": row["domain"],
        "origin": row["origin"],
        "source": row["source"],
        "assertion_kind": row["assertion_kind"],
        "confidence": row["confidence"],
        "data_subjects": text["data_subjects"],
        "evidence": {
            "source_uri": text["source_uri"],
            "revision": text["revision"],
            "heading_path": text["heading_path"],
            "lines": None if row["line_start"] is None else [row["line_start"], row["line_end"]],
        },
        "observed_at": instant(row["observed_at"]),
        "valid_from": instant(row["valid_from"]),
        "valid_to": instant(row["valid_to"]),
        "created_at": instant(row["created_at"]),
        "superseded_at": instant(row["superseded_at"]),
        "superseded_by": None if row["superseded_by"] is None else format_id("mem", row["superseded_by"]),
        "expires_at": instant(row["expires_at"]),
        "pii": row["pii"],
        "provenance": provenance(row),
        "untrusted": True,
    }


def provenance(row: Row) -> list[str]:
    """Marks that only the server sets: how the memory came in and who stood for it."""
    marks = [f"admitted_by:{row['admitted_by']}", f"origin:{row['origin']}"]
    if row["approved_by"] is not None:
        marks.append("human_approved")
    if row["screen_overridden"]:
        marks.append("screen_overridden")
    return marks


def relationships(unit: Unit, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """For this reader. Their names may come from other memories than the one they are shown with, or with none."""
    return [
        revealed(unit, format_id("rel", row["relationship_id"]), partial(_relationship, row)) for row in rows
    ]


def _relationship(row: Row, reveal_pii: bool) -> dict[str, Any]:
    return {
        "relationship_id": format_id("rel", row["relationship_id"]),
        "version": row["version"],
        "subject": sanitize_read(row["subject"], reveal_pii=reveal_pii),
        "predicate": row["predicate_key"],
        "object": None if row["object"] is None else sanitize_read(row["object"], reveal_pii=reveal_pii),
        "value": None
        if row["value_type"] is None
        else {
            "type": row["value_type"],
            "value": sanitize_read(row["value_canonical"], reveal_pii=reveal_pii),
            "unit": clean(row["value_unit"], reveal_pii=reveal_pii),
        },
        "polarity": row["polarity"],
        "valid_from": instant(row["valid_from"]),
        "valid_to": instant(row["valid_to"]),
    }
