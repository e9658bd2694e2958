"""Memories, their versions, passages, occurrences and hold-outs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.memory import NewMemory, Place
from remembrancer.domain.terms import index_row
from remembrancer.domain.time_rules import Window
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.locks import lock as lock
from remembrancer.store.vectors import vector_text


def find_duplicates(unit: Unit, dedup_keys: Sequence[bytes]) -> dict[bytes, Row]:
    """By key, a live memory that has it, else a held one: {memory_id, version, held, kept_out, domain, revision,
    valid_from, valid_to}, where `kept_out` says that more than the screen holds it. Succeeded, decayed, erased text is
    new."""
    rows = unit.rows(
        "select * from memory_known(%(keys)s, %(at)s, %(retention)s)",
        {"keys": list(dedup_keys), **visibility.view(unit.principal.settings, unit.now)},
    )
    return {bytes(row["dedup_key"]): row for row in rows}


def insert_many(
    unit: Unit, news: Sequence[NewMemory], correlation_id: str, submitted_at: datetime
) -> list[UUID]:
    """Write the memories with their first versions, passages, occurrences and hold-outs in one statement; the
    occurrences' ids in order."""
    if not news:
        return []
    occurrence_ids = [unit.new_id() for _ in news]
    unit.run(
        "select memory_insert(%(rows)s, %(passages)s, %(now)s, %(by)s, %(correlation)s, %(submitted)s)",
        {
            "now": unit.now,
            "by": None if unit.who is None else unit.who.principal_id,
            "correlation": correlation_id,
            "submitted": submitted_at,
            "rows": Jsonb(
                [
                    _columns(unit, new, occurrence_id)
                    for new, occurrence_id in zip(news, occurrence_ids, strict=True)
                ]
            ),
            "passages": Jsonb([row for new in news for row in _passages(unit, new)]),
        },
    )
    return occurrence_ids


def _columns(unit: Unit, new: NewMemory, occurrence_id: UUID) -> dict[str, Any]:
    graph = None
    if new.held and (new.entities or new.relations):
        graph = {
            "entities": [e.model_dump(mode="json") for e in new.entities],
            "relations": [r.model_dump(mode="json") for r in new.relations],
        }
    return {
        **_place(new.place),
        "memory_id": str(new.memory_id),
        "space_id": str(new.space_id),
        "owner_id": str(new.owner_id),
        "domain": new.domain,
        "kind": new.kind,
        "title": new.title,
        "content": new.content,
        "author": new.author,
        "origin": new.origin,
        "source": new.source,
        "assertion_kind": new.assertion_kind,
        "admitted_by": new.admitted_by,
        "approved_by": _text(new.approved_by),
        "proposal_id": _text(new.proposal_id),
        "data_subjects": list(new.data_subjects),
        "observed_at": _text(new.observed_at),
        "source_uri": new.source_uri,
        "revision": new.revision,
        "pii": new.pii,
        "screen": dict(new.screen),
        "screen_overridden": new.screen_overridden,
        "held_graph": graph,
        "confidence": new.confidence,
        "confidence_parts": dict(new.confidence_parts),
        "dedup_key": f"\\x{new.dedup_key.hex()}",
        "claimed": None if new.claimed is None else dict(new.claimed),
        "valid_from": _text(new.valid_from),
        "valid_to": _text(new.valid_to),
        "expires_at": _text(new.expires_at),
        "occurrence_id": str(occurrence_id),
        "hold_out_id": str(unit.new_id()) if new.held else None,
    }


def _text(value: UUID | datetime | None) -> str | None:
    return None if value is None else str(value)


def _place(place: Place | None) -> dict[str, Any]:
    if place is None:
        return dict.fromkeys(("parent_id", "ordinal", "heading_path", "line_start", "line_end"))
    return {
        "parent_id": str(place.parent_id),
        "ordinal": place.ordinal,
        "heading_path": place.heading_path,
        "line_start": place.line_start,
        "line_end": place.line_end,
    }


def _passages(unit: Unit, new: NewMemory) -> Iterator[dict[str, Any]]:
    passages = new.passages
    if len(passages.texts) != len(passages.vectors):
        raise ValueError("one vector a passage")
    for ordinal, (text, vector) in enumerate(zip(passages.texts, passages.vectors, strict=True)):
        yield {
            "passage_id": str(unit.new_id()),
            "memory_id": str(new.memory_id),
            "space_id": str(new.space_id),
            "ordinal": ordinal,
            "span_start": text.start,
            "span_end": text.end,
            "rendered": text.rendered,
            **index_row(new.space_id, text.rendered),
            "vector": vector_text(vector),
            "contract": passages.contract,
        }


@dataclass(frozen=True)
class Submission:
    """One more sending of a memory's exact text, and where it lies in this revision of its source."""

    memory_id: UUID
    space_id: UUID
    submitted_by: UUID
    source: str
    revision: str | None = None
    place: Place | None = None
    data_subjects: tuple[str, ...] = ()
    """Whom this submission says that the text is about: an erasure and a hold find the memory by them too."""


def add_occurrences(
    unit: Unit, submissions: Sequence[Submission], correlation_id: str, submitted_at: datetime
) -> list[UUID]:
    """The occurrences' ids in order."""
    occurrence_ids = [unit.new_id() for _ in submissions]
    unit.run_many(
        """
        insert into occurrence (tenant_id, occurrence_id, memory_id, space_id, submitted_by, submitted_at, source,
          correlation_id, revision, ordinal, line_start, line_end, data_subjects)
        values (%(tenant)s, %(id)s, %(memory)s, %(space)s, %(by)s, %(submitted)s, %(source)s, %(correlation)s,
          %(revision)s, %(ordinal)s, %(line_start)s, %(line_end)s, %(subjects)s)
        """,
        [
            {
                **_place(one.place),
                "tenant": unit.tenant_id,
                "id": occurrence_id,
                "memory": one.memory_id,
                "space": one.space_id,
                "by": one.submitted_by,
                "submitted": submitted_at,
                "source": one.source,
                "correlation": correlation_id,
                "revision": one.revision,
                "subjects": list(one.data_subjects),
            }
            for one, occurrence_id in zip(submissions, occurrence_ids, strict=True)
        ],
    )
    return occurrence_ids


def open_hold_out(unit: Unit, memory_id: UUID, space_id: UUID, reason: str) -> None:
    unit.run(
        """
        insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at, opened_by)
        values (%(tenant)s, %(id)s, %(memory)s, %(space)s, %(reason)s, %(now)s, %(by)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": unit.new_id(),
            "memory": memory_id,
            "space": space_id,
            "reason": reason,
            "now": unit.now,
            "by": unit.principal.principal_id,
        },
    )


def get(unit: Unit, memory_id: UUID) -> Row | None:
    """The memory with its current version and open hold-out reasons; None when absent to this reader."""
    return unit.row(
        """
        select m.*, v.version, v.valid_from, v.valid_to, v.created_at as version_created_at, v.superseded_at,
               v.superseded_by, v.retracted_by, v.expires_at,
               array(select h.reason from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                     and h.closed_at is null order by h.opened_at) as held_for
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
        where m.tenant_id = %(tenant)s and m.memory_id = %(id)s
        order by v.version desc limit 1
        """,
        {"tenant": unit.tenant_id, "id": memory_id},
    )


def get_live(
    unit: Unit, memory_id: UUID, *, at: datetime | None = None, known_at: datetime | None = None
) -> Row | None:
    """The memory as the asked view believes it; None when that view does not hold it."""
    return unit.row(
        f"""
        select m.*, v.version, v.valid_from, v.valid_to, v.created_at as version_created_at, v.superseded_at,
               {visibility.SUCCESSOR}, v.expires_at
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
        where m.tenant_id = %(tenant)s and m.memory_id = %(id)s and {visibility.live(known_at=known_at)}
        """,
        {
            "tenant": unit.tenant_id,
            "id": memory_id,
            **visibility.view(unit.principal.settings, unit.now, at=at, known_at=known_at),
        },
    )


def list_live(unit: Unit, after: tuple[datetime, UUID] | None, limit: int) -> list[Row]:
    """Live memories, newest first, keyset by (created_at, memory_id)."""
    return unit.rows(
        f"""
        select m.*, v.version, v.valid_from, v.valid_to, v.created_at as version_created_at, v.superseded_at,
               {visibility.SUCCESSOR}, v.expires_at
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
        where m.tenant_id = %(tenant)s and m.space_id = any (rem_spaces()) and {visibility.live()}
          and (%(after_at)s::timestamptz is null or (m.created_at, m.memory_id) < (%(after_at)s, %(after_id)s))
        order by m.created_at desc, m.memory_id desc limit %(limit)s
        """,
        {
            "tenant": unit.tenant_id,
            "after_at": None if after is None else after[0],
            "after_id": None if after is None else after[1],
            "limit": limit,
            **visibility.view(unit.principal.settings, unit.now),
        },
    )


def versions(unit: Unit, memory_id: UUID) -> list[Row]:
    """For readers: a successor that is held is not named."""
    return unit.rows(
        f"""
        select v.version, v.valid_from, v.valid_to, v.created_at, v.superseded_at, {visibility.SUCCESSOR}, v.expires_at
        from memory_version v where v.tenant_id = %(tenant)s and v.memory_id = %(id)s order by v.version
        """,
        {"tenant": unit.tenant_id, "id": memory_id},
    )


def succeed(unit: Unit, target: Row, successor: UUID, instant: datetime) -> None:
    """The world changed at `instant`: retire the current version, keep its past as a closed copy (model.md, Time).

    `target` is a row of `get`, locked by the caller. When the old window would be empty, no copy is left.
    """
    unit.run(
        """
        update memory_version set superseded_at = %(now)s, superseded_by = %(successor)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s
        """,
        {
            "now": unit.now,
            "successor": successor,
            "tenant": unit.tenant_id,
            "id": target["memory_id"],
            "version": target["version"],
        },
    )
    past = Window(target["valid_from"], target["valid_to"]).before(instant)
    if past is None:
        return
    unit.run(
        """
        insert into memory_version (tenant_id, memory_id, space_id, version, valid_from, valid_to, created_at,
          superseded_by, expires_at)
        values (%(tenant)s, %(id)s, %(space)s, %(version)s, %(from)s, %(to)s, %(now)s, %(successor)s, %(expires)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": target["memory_id"],
            "space": target["space_id"],
            "version": target["version"] + 1,
            "from": past.start,
            "to": past.end,
            "now": unit.now,
            "successor": successor,
            "expires": target["expires_at"],
        },
    )


def superseded(unit: Unit, memory_id: UUID) -> list[UUID]:
    """The memories that this one took the place of, but those that are held."""
    return [
        row["memory_id"]
        for row in unit.rows(
            f"""
            select distinct m.memory_id from memory_version m
            where m.tenant_id = %(tenant)s and m.superseded_by = %(id)s and {visibility.NOT_HELD} order by m.memory_id
            """,
            {"tenant": unit.tenant_id, "id": memory_id},
        )
    ]


def quarantined(unit: Unit, after: UUID | None, limit: int) -> list[Row]:
    """Memories that are held and not kept out for good, oldest first, keyset by memory id.

    Of others' private ones id, owner, time, source and reasons, and no text."""
    page = {"tenant": unit.tenant_id, "after": after, "limit": limit}
    hidden = unit.rows("select * from rem_held_in_private(%(after)s, %(limit)s)", page)
    seen = unit.rows(
        """
        select m.*, v.version, v.valid_from, v.valid_to, v.expires_at,
               array(select h.reason from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                     and h.closed_at is null order by h.opened_at) as held_for
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id and v.superseded_at is null
        where m.tenant_id = %(tenant)s
          and exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                      and h.closed_at is null)
          and not exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                          and h.closed_at is null and h.reason = 'rejected')
          and (%(after)s::uuid is null or m.memory_id > %(after)s)
        order by m.memory_id limit %(limit)s
        """,
        page,
    )
    return sorted(seen + hidden, key=lambda row: row["memory_id"])[:limit]


def open_screen_hold(unit: Unit, memory_id: UUID) -> UUID | None:
    """The open hold-out of reason `screen`, locked until the end of the transaction."""
    row = unit.row(
        """
        select hold_out_id from hold_out
        where tenant_id = %(tenant)s and memory_id = %(id)s and reason = 'screen' and closed_at is null
        order by opened_at limit 1 for update
        """,
        {"tenant": unit.tenant_id, "id": memory_id},
    )
    return None if row is None else row["hold_out_id"]


def close_hold_out(unit: Unit, hold_out_id: UUID) -> None:
    unit.run(
        """
        update hold_out set closed_at = %(now)s, closed_by = %(by)s
        where tenant_id = %(tenant)s and hold_out_id = %(id)s and closed_at is null
        """,
        {
            "now": unit.now,
            "by": unit.principal.principal_id,
            "tenant": unit.tenant_id,
            "id": hold_out_id,
        },
    )


def release_graph(unit: Unit, memory_id: UUID) -> None:
    """The edges are built; the memory keeps the mark that a person overrode the screen."""
    unit.run(
        "update memory set held_graph = null, screen_overridden = true"
        " where tenant_id = %(tenant)s and memory_id = %(id)s",
        {"tenant": unit.tenant_id, "id": memory_id},
    )


def first_occurrence(unit: Unit, memory_id: UUID) -> UUID:
    """The submission that brought the memory. Raises LookupError when there is none."""
    row = unit.row(
        """
        select occurrence_id from occurrence where tenant_id = %(tenant)s and memory_id = %(id)s
        order by submitted_at, occurrence_id limit 1
        """,
        {"tenant": unit.tenant_id, "id": memory_id},
    )
    if row is None:
        raise LookupError("a memory without an occurrence")
    occurrence_id: UUID = row["occurrence_id"]
    return occurrence_id
