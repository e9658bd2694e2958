"""Which rows a reader may be shown, written once for every query (aliases: m memory, v memory_version).

Tenant and space are enforced by row level security; these predicates add time, hold-outs and decay.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from remembrancer.domain.tenant_settings import TenantSettings

JOIN = """
join memory m on m.tenant_id = p.tenant_id and m.memory_id = p.memory_id
join memory_version v on v.tenant_id = p.tenant_id and v.memory_id = p.memory_id
"""


def _not_held(memory: str) -> str:
    return f"""not exists (select from hold_out h where h.tenant_id = {memory}.tenant_id
                                            and h.memory_id = {memory}.memory_id and h.closed_at is null)"""


NOT_HELD = _not_held("m")
SUCCESSOR = f"""(select n.memory_id from memory n where n.tenant_id = v.tenant_id and n.memory_id = v.superseded_by
  and {_not_held("n")}) as superseded_by"""
"""A version's successor as a reader may know it: one that is held is not named."""
_BELIEVED_NOW = "v.superseded_at is null"
_BELIEVED_THEN = (
    """v.created_at <= %(known_at)s and (v.superseded_at is null or v.superseded_at > %(known_at)s)"""
)
_VALID = (
    """(v.valid_from is null or v.valid_from <= %(at)s) and (v.valid_to is null or %(at)s < v.valid_to)"""
)
EXPIRY = """coalesce(v.expires_at, m.created_at + make_interval(days => (%(retention)s ->> m.kind)::int))"""
_NOT_DECAYED = f"%(at)s < {EXPIRY}"


def live(*, known_at: datetime | None = None, decayed: bool = False) -> str:
    """The SQL predicate of the asked view: believed (now, or at known_at), valid at `at`, not held, and not decayed
    unless `decayed`."""
    believed = _BELIEVED_NOW if known_at is None else _BELIEVED_THEN
    kept = "true" if decayed else _NOT_DECAYED
    return f"{believed} and {_VALID} and {kept} and {NOT_HELD}"


def kept() -> str:
    """Believed, not held and not decayed, whenever it holds; a closed copy of what was succeeded only while that
    holds still."""
    return f"{_BELIEVED_NOW} and (v.superseded_by is null or ({_VALID})) and {_NOT_DECAYED} and {NOT_HELD}"


def live_edge(*, known_at: datetime | None = None) -> str:
    """The same of a relationship version (alias r)."""
    believed = _BELIEVED_NOW if known_at is None else _BELIEVED_THEN
    return f"{believed} and {_VALID}".replace("v.", "r.")


def recallable(*, known_at: datetime | None = None, decayed: bool = False) -> str:
    """Live, and not evidence without a conclusion: what `/remember` admitted is recalled only through a
    relationship that it supports in the asked view (the hydration boundary)."""
    return f"""{live(known_at=known_at, decayed=decayed)} and (m.admitted_by <> 'remember' or exists (
      select from support s join relationship r on r.tenant_id = s.tenant_id
        and r.relationship_id = s.relationship_id and r.version = s.version
      where s.tenant_id = m.tenant_id and s.memory_id = m.memory_id and {live_edge(known_at=known_at)}))"""


def mentioned(
    row: str, *, named: bool = False, known_at: datetime | None = None, decayed: bool = False
) -> str:
    """Whether a memory that may be shown brought the entity of that row (an alias of entity or entity_name), or just
    the name of the row when `named`. What came to an entity by a merge was not known of it before."""
    name = f"and t.name_key = {row}.name_key" if named else ""
    merged = "" if known_at is None else "and (t.merged_at is null or t.merged_at <= %(known_at)s)"
    return f"""exists (select from mention t
      join memory m on m.tenant_id = t.tenant_id and m.memory_id = t.memory_id
      join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
      where t.tenant_id = {row}.tenant_id and t.entity_id = {row}.entity_id {name} {merged}
        and {live(known_at=known_at, decayed=decayed)})"""


def called(entity_id: str) -> str:
    """The name of that entity, the canonical one before others: of those that a memory brought which is not held."""
    return f"""(select n.name from entity_name n where n.tenant_id = %(tenant)s and n.entity_id = {entity_id}
      and exists (select from mention t where t.tenant_id = n.tenant_id and t.entity_id = n.entity_id
                    and t.name_key = n.name_key and {_not_held("t")})
      order by n.canonical desc, n.name_key collate "C" limit 1)"""


def seen(memory_id: str, columns: str, visible: str) -> str:
    """`columns` of that memory when the predicate `visible` lets it be shown, else no row: a subquery that the planner
    leaves where it stands, since it misjudges by far how many rows pass the policies."""
    return f"""(select {columns} from memory m
      join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
      where m.tenant_id = %(tenant)s and m.memory_id = {memory_id} and {visible} limit 1)"""


def view(
    settings: TenantSettings, now: datetime, *, at: datetime | None = None, known_at: datetime | None = None
) -> dict[str, Any]:
    """The parameters that `live` names."""
    return {
        "at": now if at is None else at,
        "known_at": known_at,
        "retention": Jsonb(settings.retention.model_dump()),
    }
