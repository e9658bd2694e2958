"""Universal Memory Protocol records, versions 0.1 and 1.0, to and from our ingest requests.

Record shape (universalmemoryprotocol.io, SPEC.md section 2): ump, id, kind, body {text, structured}, scope
{owner, visibility}, time {created, observed, valid_from, valid_to} in RFC 3339, lifecycle {confidence,
salience, decay, status}, provenance, consent, integrity. What UMP has no field for travels in
body.structured, its one free object. A record is a claim of whoever sent it: its id is computed anew, its
owner is the caller, its confidence is kept as claimed and never ranks.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import ValidationError

from remembrancer.domain.requests import EntityKind, IngestRequest
from remembrancer.domain.triples import predicate_slug

Version = Literal["0.1", "1.0"]
ErrorCode = Literal[
    "not_an_object",
    "unsupported_version",
    "missing",
    "wrong_type",
    "unknown_kind",
    "unknown_visibility",
    "invalid_time",
    "time_in_future",
    "tombstoned",
    "not_active",
    "superseded",
    "invalid",
]

DEFAULT_DOMAIN = "global"
CLOCK_SKEW = timedelta(minutes=5)
MAX_RELATED = 200

_KINDS = {
    "semantic": "fact",
    "episodic": "episodic",
    "procedural": "procedure",
    "working": "episodic",
    "identity": "fact",
}
_KINDS_0_1 = {**_KINDS, "declarative": "decision"}
_TO_UMP = {
    "fact": "semantic",
    "decision": "semantic",
    "episodic": "episodic",
    "procedure": "procedural",
    "step": "procedural",
}
_VISIBILITIES = frozenset({"private", "shared", "public", "team", "team_shared"})
_CLAIMS = ("provenance", "consent")
_FIRST_INSTANT = 10**9
"""Unix seconds below this (2001) are a number of seconds and no instant: read as one, the memory is over at once."""
_DURATION = re.compile(
    r"P(?=\d|T\d)(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,5})W)?(?:(\d{1,6})D)?"
    r"(?:T(?=\d)(?:(\d{1,8})H)?(?:(\d{1,9})M)?(?:(\d{1,10})S)?)?",
    re.ASCII,
)
_MAX_CLAIM_NODES = 200
_MAX_CLAIM_CHARACTERS = 4_096
_MAX_CLAIM_NUMBER = 2.0**63
"""A larger one is kept as an integer of more digits than a request may have: its bundle could not come back."""


class UmpRecordError(ValueError):
    """A record that cannot be imported: a code and the JSON Pointer of the field, never its value."""

    def __init__(self, code: ErrorCode, pointer: str) -> None:
        super().__init__(f"{code} at {pointer or '/'}")
        self.code = code
        self.pointer = pointer


@dataclass(frozen=True)
class UmpImport:
    """A request ready for admission (its texts, and those in `claimed`, not yet screened).

    `claimed` holds what the record said of itself and nobody checked: id, owner, kind, created, confidence,
    salience, provenance, consent. `notes` say what was not taken over: id_recomputed, owner_ignored,
    integrity_not_checked, decay_ignored, retention_ignored, provenance_dropped, consent_dropped.
    """

    request: IngestRequest
    ump_id: str
    claimed: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    silent: bool = False
    """The record does not say whom it is for, so it is private unless whoever sends it speaks for it."""
    complete: bool = False
    """The record says all that was known of graph and time, as those of our bundles do: nothing more is read from its
    text, which would date what is stored undated and link what nobody linked."""


def ump_id(domain: str, content: str) -> str:
    """`urn:ump:` and the lower-case base32 of SHA-256 over domain, NUL, content (UTF-8)."""
    digest = hashlib.sha256(f"{domain}\0{content}".encode("utf-8", "surrogatepass")).digest()
    return "urn:ump:" + base64.b32encode(digest).decode().rstrip("=").lower()


def from_ump(record: Any, now: datetime, domain: str | None = None) -> UmpImport:
    """Reads one parsed JSON record. `domain`, when given, wins over the record's own.

    `now` is timezone-aware; a record created or observed more than five minutes after it is refused.
    Raises UmpRecordError.
    """
    if not isinstance(record, dict):
        raise UmpRecordError("not_an_object", "")
    version = record.get("ump", "1.0")
    if version not in ("0.1", "1.0"):
        raise UmpRecordError("unsupported_version", "/ump")
    body, scope = _object(record, "body", required=True), _object(record, "scope")
    time, lifecycle = _object(record, "time"), _object(record, "lifecycle")
    extra = _object(body, "structured", "/body")
    content = body.get("text")
    if not isinstance(content, str):
        raise UmpRecordError("missing" if content is None else "wrong_type", "/body/text")
    _believed(record, lifecycle)
    notes: list[str] = []
    created = _instant(time, "created", version)
    observed = _instant(time, "observed", version)
    for name, at in (("created", created), ("observed", observed)):
        if at is not None and at > now + CLOCK_SKEW:
            raise UmpRecordError("time_in_future", f"/time/{name}")
    expires = _earliest(
        _decay(lifecycle, extra, version, notes), _retention(record.get("consent"), created or now, notes)
    )
    fields = {
        "content": content,
        "title": _text(extra, "title", "/body/structured"),
        "kind": _kind(record, extra, version),
        "domain": domain or _text(extra, "domain", "/body/structured"),
        "author": _text(extra, "author", "/body/structured"),
        "source": "ump",
        "assertion_kind": _text(extra, "assertion_kind", "/body/structured") or "stated",
        "observed_at": observed,
        "valid_from": _instant(time, "valid_from", version),
        "valid_to": _instant(time, "valid_to", version),
        "expires_at": expires,
        "data_subjects": _list(extra, "data_subjects"),
        "source_uri": _text(extra, "source_uri", "/body/structured"),
        "revision": _text(extra, "revision", "/body/structured"),
        "entities": [_entity(item) for item in _list(extra, "entities")],
        "relations": [_relation(item) for item in _list(extra, "relations")],
        "target_space": _space(scope, extra),
    }
    request = _validated(fields)
    identity = ump_id(request.domain or DEFAULT_DOMAIN, content)
    return UmpImport(
        request,
        identity,
        _claims(record, identity, created, lifecycle, scope, notes),
        tuple(notes),
        silent="visibility" not in scope and "access_scope" not in extra,
        complete=extra.get("complete") is True,
    )


def to_ump(
    request: IngestRequest, created_at: datetime, claimed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The record (version 1.0) of a stored memory; `from_ump` reads the same request out of it again.

    Open fields are left out. `claimed` is what an earlier import kept: its provenance, consent and original
    kind go back where they came from.
    """
    claimed = claimed or {}
    record: dict[str, Any] = {
        "ump": "1.0",
        "id": ump_id(request.domain or DEFAULT_DOMAIN, request.content),
        "kind": _exported_kind(request.kind, claimed.get("kind")),
        "body": {"text": request.content, "structured": _structured(request)},
        "scope": {"visibility": "private" if request.target_space == "private" else "shared"},
        "time": _without_none(
            {
                "created": _rfc3339(created_at),
                "observed": _rfc3339(request.observed_at),
                "valid_from": _rfc3339(request.valid_from),
                "valid_to": _rfc3339(request.valid_to),
            }
        ),
    }
    lifecycle = _without_none(
        {
            "decay": _rfc3339(request.expires_at),
            "confidence": claimed.get("confidence"),
            "salience": claimed.get("salience"),
        }
    )
    if lifecycle:
        record["lifecycle"] = lifecycle
    if claimed.get("owner") is not None:
        record["scope"]["owner"] = claimed["owner"]
    return record | {name: claimed[name] for name in _CLAIMS if claimed.get(name) is not None}


def _structured(request: IngestRequest) -> dict[str, Any]:
    values = request.model_dump(
        mode="json",
        include={
            "title",
            "domain",
            "author",
            "source_uri",
            "revision",
            "entities",
            "relations",
            "data_subjects",
        },
        exclude_none=True,
    )
    kept = {name: value for name, value in values.items() if value != []}
    return kept | {"raw_kind": request.kind, "assertion_kind": request.assertion_kind, "complete": True}


def _exported_kind(kind: str, claimed: Any) -> str:
    """The kind it was imported as, where that still maps to ours (`working`, `identity`)."""
    if isinstance(claimed, str) and _KINDS.get(claimed) == kind:
        return claimed
    return _TO_UMP[kind]


def _kind(record: Mapping[str, Any], extra: Mapping[str, Any], version: Version) -> str:
    kinds = _KINDS_0_1 if version == "0.1" else _KINDS
    kind = record.get("kind", "semantic")
    if not isinstance(kind, str) or kind not in kinds:
        raise UmpRecordError("unknown_kind", "/kind")
    raw = extra.get("raw_kind")
    # Only where the two agree: a raw kind that contradicts the declared one is not believed.
    if isinstance(raw, str) and _TO_UMP.get(raw) in (kind, _TO_UMP.get(kinds[kind])):
        return raw
    return kinds[kind]


def _space(scope: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
    """Private unless the record says otherwise: silence must not publish."""
    visibility = scope.get("visibility", extra.get("access_scope", "private"))
    if not isinstance(visibility, str) or visibility not in _VISIBILITIES:
        raise UmpRecordError("unknown_visibility", "/scope/visibility")
    return "private" if visibility == "private" else "team_shared"


def _believed(record: Mapping[str, Any], lifecycle: Mapping[str, Any]) -> None:
    """Raises UmpRecordError for what its sender does not believe: a candidate, what was forgotten or replaced."""
    status = lifecycle.get("status", "active")
    if status == "tombstoned":
        raise UmpRecordError("tombstoned", "/lifecycle/status")
    if status not in (None, "active"):
        raise UmpRecordError("not_active", "/lifecycle/status")
    if record.get("superseded_by"):
        raise UmpRecordError("superseded", "/superseded_by")


def _retention(consent: Any, since: datetime, notes: list[str]) -> datetime | None:
    """The end of the longest time to keep, an ISO 8601 duration (SPEC.md section 2.7); months of 30, years of 365
    days, since a shorter time is the safe reading."""
    said = consent.get("retention") if isinstance(consent, dict) else None
    if said is None:
        return None
    match = _DURATION.fullmatch(said) if isinstance(said, str) else None
    if match is None:
        notes.append("retention_ignored")
        return None
    years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    try:
        return since + timedelta(
            days=365 * years + 30 * months + 7 * weeks + days, hours=hours, minutes=minutes, seconds=seconds
        )
    except OverflowError:
        return None  # as good as for ever


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)


def _decay(
    lifecycle: Mapping[str, Any], extra: Mapping[str, Any], version: Version, notes: list[str]
) -> datetime | None:
    """When the memory expires: RFC 3339 or Unix seconds. Other policies of decay are not ours."""
    decay = lifecycle.get("decay", extra.get("expires_at"))
    if decay is None:
        return None
    if isinstance(decay, dict):
        decay = decay.get("expires_at")
    if isinstance(decay, str) and decay[:1].isdigit():
        return _instant({"decay": decay}, "decay", version, "/lifecycle")
    if isinstance(decay, int) and not isinstance(decay, bool) and decay >= _FIRST_INSTANT:
        return _from_seconds(decay, "/lifecycle/decay")
    notes.append("decay_ignored")
    return None


def _from_seconds(seconds: int, pointer: str) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise UmpRecordError("invalid_time", pointer) from None


def _instant(
    values: Mapping[str, Any], name: str, version: Version, parent: str = "/time"
) -> datetime | None:
    """RFC 3339; in 0.1 also Unix seconds and a date-time without a zone, which is UTC by convention."""
    value = values.get(name)
    pointer = f"{parent}/{name}"
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and version == "0.1":
        return _from_seconds(value, pointer)
    if not isinstance(value, str):
        raise UmpRecordError("wrong_type", pointer)
    try:
        at = datetime.fromisoformat(value)
        zoned = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UmpRecordError("invalid_time", pointer) from None
    if at.tzinfo is None and version != "0.1":
        raise UmpRecordError("invalid_time", pointer)
    return zoned


def _entity(item: Any) -> Any:
    """An entity in our shape; `type` is what others call the kind."""
    if not isinstance(item, dict):
        return item
    kind = item.get("kind", item.get("type", "other"))
    aliases = item.get("aliases")
    entity = {"name": item.get("name"), "kind": kind if kind in get_args(EntityKind) else "other"}
    return entity | ({"aliases": aliases} if aliases is not None else {})


def _relation(item: Any) -> Any:
    """A relation in our shape; others write from, to and type."""
    if not isinstance(item, dict) or "from" not in item:
        return item
    predicate = item.get("type", item.get("kind", "related_to"))
    if isinstance(predicate, str):
        predicate = predicate_slug(predicate) or predicate
    relation = {"subject": item["from"], "predicate": predicate, "object": item.get("to")}
    for ours, theirs in (("valid_from", "valid_at"), ("valid_to", "invalid_at")):
        value = item.get(ours, item.get(theirs))
        if value is not None:
            relation[ours] = value
    return relation


def _validated(fields: dict[str, Any]) -> IngestRequest:
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return IngestRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = [str(part) for part in first["loc"]]
        raise UmpRecordError("invalid", _pointer(path)) from None


_PLACES = {
    "content": "/body/text",
    "kind": "/kind",
    "observed_at": "/time/observed",
    "valid_from": "/time/valid_from",
    "valid_to": "/time/valid_to",
    "expires_at": "/lifecycle/decay",
    "target_space": "/scope/visibility",
}


def _pointer(path: list[str]) -> str:
    if not path:
        return "/time"  # the only check across fields is that of the window
    place = _PLACES.get(path[0], f"/body/structured/{path[0]}")
    return "/".join([place, *path[1:]])


def _claims(
    record: Mapping[str, Any],
    identity: str,
    created: datetime | None,
    lifecycle: Mapping[str, Any],
    scope: Mapping[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    claims: dict[str, Any] = {"kind": record.get("kind", "semantic")}
    if created is not None:
        claims["created"] = _rfc3339(created)
    for name, value in (("id", record.get("id")), ("owner", scope.get("owner"))):
        if isinstance(value, str) and len(value) <= 500:
            claims[name] = value
    if record.get("id") not in (None, identity):
        notes.append("id_recomputed")
    if scope.get("owner") is not None:
        notes.append("owner_ignored")
    if record.get("integrity") is not None:
        notes.append("integrity_not_checked")
    for name in ("confidence", "salience"):
        value = lifecycle.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            claims[name] = float(value)
    for name in _CLAIMS:
        value = record.get(name)
        if value is None:
            continue
        if _is_small(value):
            claims[name] = value
        else:
            notes.append(f"{name}_dropped")
    return claims


def _is_small(value: Any) -> bool:
    """Whether a JSON value is bounded enough to be kept as it is. Not recursive: depth is hostile too."""
    nodes = characters = 0
    queue = [(value, 0)]
    while queue:
        item, depth = queue.pop()
        nodes += 1
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, float) and abs(item) >= _MAX_CLAIM_NUMBER:
            return False
        elif isinstance(item, dict):
            characters += sum(len(str(key)) for key in item)
            queue.extend((inner, depth + 1) for inner in item.values())
        elif isinstance(item, list):
            queue.extend((inner, depth + 1) for inner in item)
        if nodes + len(queue) > _MAX_CLAIM_NODES or characters > _MAX_CLAIM_CHARACTERS or depth > 8:
            return False
    return True


def _object(
    parent: Mapping[str, Any], name: str, pointer: str = "", *, required: bool = False
) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise UmpRecordError("missing" if value is None else "wrong_type", f"{pointer}/{name}")
    return value


def _text(parent: Mapping[str, Any], name: str, pointer: str) -> str | None:
    value = parent.get(name)
    if value is not None and not isinstance(value, str):
        raise UmpRecordError("wrong_type", f"{pointer}/{name}")
    return value


def _list(parent: Mapping[str, Any], name: str) -> list[Any]:
    value = parent.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UmpRecordError("wrong_type", f"/body/structured/{name}")
    if len(value) > MAX_RELATED:
        raise UmpRecordError("invalid", f"/body/structured/{name}")
    return value


def _rfc3339(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
