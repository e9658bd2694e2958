"""Memories, their versions, passages, occurrences and hold-outs."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from remembrancer.domain.memory import NewMemory, Passages, Place
from remembrancer.domain.terms import index_row
from remembrancer.domain.time_rules import Window
from remembrancer.store import visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.locks import lock as lock
from remembrancer.store.vectors import vector_text


def find_duplicate(unit: Unit, dedup_key: bytes) -> Row | None:
    """A live or held memory with this key: {memory_id, version, held}. Succeeded, decayed, erased text is new."""
    return unit.row(
        f"""
        select m.memory_id, v.version, not ({visibility.NOT_HELD}) as held
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
                             and v.superseded_at is null and v.superseded_by is null
        where m.tenant_id = %(tenant)s and m.dedup_key = %(key)s and %(at)s < {visibility.EXPIRY}
        order by m.memory_id limit 1
        """,
        {"tenant": unit.tenant_id, "key": dedup_key, **visibility.view(unit.principal.settings, unit.now)},
    )


def insert(unit: Unit, new: NewMemory, correlation_id: str) -> UUID:
    """Write the memory, its first version, passages, occurrence and hold-out; the occurrence's id."""
    graph = None
    if new.held and (new.entities or new.relations):
        graph = Jsonb(
            {
                "entities": [e.model_dump(mode="json") for e in new.entities],
                "relations": [r.model_dump(mode="json") for r in new.relations],
            }
        )
    unit.run(
        """
        insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, title, content, author, origin,
          source, assertion_kind, admitted_by, approved_by, proposal_id, data_subjects, observed_at, source_uri,
          revision, pii, screen, screen_overridden, held_graph, confidence, confidence_parts, dedup_key, created_at,
          parent_id, ordinal, heading_path, line_start, line_end, claimed)
        values (%(tenant)s, %(id)s, %(space)s, %(owner)s, %(domain)s, %(kind)s, %(title)s, %(content)s, %(author)s,
          %(origin)s, %(source)s, %(assertion)s, %(admitted_by)s, %(approved_by)s, %(proposal)s, %(subjects)s,
          %(observed_at)s, %(source_uri)s, %(revision)s, %(pii)s, %(screen)s, %(overridden)s, %(graph)s,
          %(confidence)s, %(parts)s, %(dedup)s, %(now)s, %(parent)s, %(ordinal)s, %(heading)s, %(line_start)s,
          %(line_end)s, %(claimed)s)
        """,
        {
            **_place(new.place),
            "claimed": None if new.claimed is None else Jsonb(dict(new.claimed)),
            "tenant": unit.tenant_id,
            "id": new.memory_id,
            "space": new.space_id,
            "owner": new.owner_id,
            "domain": new.domain,
            "kind": new.kind,
            "title": new.title,
            "content": new.content,
            "author": new.author,
            "origin": new.origin,
            "source": new.source,
            "assertion": new.assertion_kind,
            "admitted_by": new.admitted_by,
            "approved_by": new.approved_by,
            "proposal": new.proposal_id,
            "subjects": list(new.data_subjects),
            "observed_at": new.observed_at,
            "source_uri": new.source_uri,
            "revision": new.revision,
            "pii": new.pii,
            "screen": Jsonb(dict(new.screen)),
            "overridden": new.screen_overridden,
            "graph": graph,
            "confidence": new.confidence,
            "parts": Jsonb(dict(new.confidence_parts)),
            "dedup": new.dedup_key,
            "now": unit.now,
        },
    )
    unit.run(
        """
        insert into memory_version (tenant_id, memory_id, space_id, version, valid_from, valid_to, created_at,
          expires_at)
        values (%(tenant)s, %(id)s, %(space)s, 1, %(from)s, %(to)s, %(now)s, %(expires)s)
        """,
        {
            "tenant": unit.tenant_id,
            "id": new.memory_id,
            "space": new.space_id,
            "from": new.valid_from,
            "to": new.valid_to,
            "now": unit.now,
            "expires": new.expires_at,
        },
    )
    _insert_passages(unit, new.memory_id, new.space_id, new.passages)
    occurrence_id = add_occurrence(
        unit,
        new.memory_id,
        new.space_id,
        new.owner_id,
        new.source,
        correlation_id,
        revision=new.revision,
        place=new.place,
    )
    if new.held:
        open_hold_out(unit, new.memory_id, new.space_id, "screen")
    return occurrence_id


def _place(place: Place | None) -> dict[str, Any]:
    if place is None:
        return dict.fromkeys(("parent", "ordinal", "heading", "line_start", "line_end"))
    return {
        "parent": place.parent_id,
        "ordinal": place.ordinal,
        "heading": place.heading_path,
        "line_start": place.line_start,
        "line_end": place.line_end,
    }


def _insert_passages(unit: Unit, memory_id: UUID, space_id: UUID, passages: Passages) -> None:
    if len(passages.texts) != len(passages.vectors):
        raise ValueError("one vector a passage")
    unit.run_many(
        """
        insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered,
          language, terms, words, asks, dated, embedding, contract)
        values (%(tenant)s, %(id)s, %(memory)s, %(space)s, %(ordinal)s, %(start)s, %(end)s, %(rendered)s,
          %(language)s, %(terms)s, %(words)s, %(asks)s, %(dated)s, %(vector)s::halfvec, %(contract)s)
        """,
        [
            {
                "tenant": unit.tenant_id,
                "id": unit.new_id(),
                "memory": memory_id,
                "space": space_id,
                "ordinal": ordinal,
                "start": text.start,
                "end": text.end,
                "rendered": text.rendered,
                **index_row(space_id, text.rendered),
                "vector": vector_text(vector),
                "contract": passages.contract,
            }
            for ordinal, (text, vector) in enumerate(zip(passages.texts, passages.vectors, strict=True))
        ],
    )


def add_occurrence(
    unit: Unit,
    memory_id: UUID,
    space_id: UUID,
    submitted_by: UUID,
    source: str,
    correlation_id: str,
    *,
    revision: str | None = None,
    place: Place | None = None,
) -> UUID:
    """One more submission of exactly this text, and where it lies in this revision of its source."""
    occurrence_id = unit.new_id()
    unit.run(
        """
        insert into occurrence (tenant_id, occurrence_id, memory_id, space_id, submitted_by, submitted_at, source,
          correlation_id, revision, ordinal, line_start, line_end)
        values (%(tenant)s, %(id)s, %(memory)s, %(space)s, %(by)s, %(now)s, %(source)s, %(correlation)s,
          %(revision)s, %(ordinal)s, %(line_start)s, %(line_end)s)
        """,
        {
            **_place(place),
            "revision": revision,
            "tenant": unit.tenant_id,
            "id": occurrence_id,
            "memory": memory_id,
            "space": space_id,
            "by": submitted_by,
            "now": unit.now,
            "source": source,
            "correlation": correlation_id,
        },
    )
    return occurrence_id


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
               v.superseded_by, v.expires_at,
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
               v.superseded_by, v.expires_at
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
               v.superseded_by, v.expires_at
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
    return unit.rows(
        "select * from memory_version where tenant_id = %(tenant)s and memory_id = %(id)s order by version",
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
    """The memories that this one took the place of."""
    return [
        row["memory_id"]
        for row in unit.rows(
            "select distinct memory_id from memory_version where tenant_id = %(tenant)s and superseded_by = %(id)s"
            " order by memory_id",
            {"tenant": unit.tenant_id, "id": memory_id},
        )
    ]


def quarantined(unit: Unit, after: UUID | None, limit: int) -> list[Row]:
    """Memories that are held and not kept out for good, oldest first, keyset by memory id."""
    return unit.rows(
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
        {"tenant": unit.tenant_id, "after": after, "limit": limit},
    )


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
