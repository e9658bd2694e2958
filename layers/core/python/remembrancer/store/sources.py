"""The parts of a source that is imported again and again, and their retirement by a new revision."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remembrancer.store.database import Row, Unit
from remembrancer.store.edges import close_unsupported


def current_parts(unit: Unit, space_id: UUID, source_uri: str, source: str) -> list[Row]:
    """Every part of the source that is believed now, held ones too: {memory_id, version, owner_id, parent_id,
    title, submitted_at}, in the order of the document. What was sent as one text under the same uri is no part.
    `submitted_at` is the last time that a revision brought it. The caller holds the space."""
    return unit.rows(
        """
        select m.memory_id, v.version, m.owner_id, m.parent_id, m.title,
               (select max(o.submitted_at) from occurrence o
                where o.tenant_id = m.tenant_id and o.memory_id = m.memory_id and o.ordinal is not null) as submitted_at
        from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
                             and v.superseded_at is null and v.superseded_by is null
        where m.tenant_id = %(tenant)s and m.space_id = %(space)s
          and hashtextextended(m.source_uri, 0) = hashtextextended(%(uri)s, 0) and m.source_uri = %(uri)s
          and m.source = %(source)s and m.ordinal is not null
        order by m.ordinal, m.memory_id
        """,
        {"tenant": unit.tenant_id, "space": space_id, "uri": source_uri, "source": source},
    )


def retire(unit: Unit, parts: Sequence[tuple[UUID, int, UUID | None]]) -> None:
    """(memory, version, successor): close each version in transaction time, and the edges that nothing
    believed supports any more. The bytes stay."""
    unit.run_many(
        """
        update memory_version set superseded_at = greatest(%(now)s, created_at), superseded_by = %(successor)s
        where tenant_id = %(tenant)s and memory_id = %(id)s and version = %(version)s and superseded_at is null
        """,
        [
            {
                "now": unit.now,
                "successor": successor,
                "tenant": unit.tenant_id,
                "id": memory_id,
                "version": version,
            }
            for memory_id, version, successor in parts
        ],
    )
    close_unsupported(unit, [memory_id for memory_id, _, _ in parts])
