"""Ordinary sentences, one for every number, and memories that are there already, for the benchmarks of writes.

The rows are copied in past the API. Their vectors are those of real sentences with a little noise, so that an
index finds neighbourhoods like those of real text; the same vectors go to every store that is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray

from remembrancer.domain.ports import Embedder
from remembrancer.store.vectors import vector_text

PEOPLE = ("Ana", "Bruno", "Carla", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")
THINGS = (
    "bicycle",
    "telescope",
    "recipe",
    "garden",
    "violin",
    "passport",
    "kayak",
    "library",
    "atlas",
    "oven",
)
PLACES = ("Lisbon", "Oslo", "Turin", "Ghent", "Graz", "Split", "Bergen", "Cork", "Lyon", "Porto")
DEEDS = (
    "bought a",
    "lost the",
    "sold an old",
    "asked about the",
    "repaired the",
    "drew a",
    "paid for a",
    "borrowed the",
    "forgot the",
    "dreamt of a",
)

POOL = 2_000
"""Sentences whose real vectors the rows are made of."""
NOISE = 0.5
"""Length of the noise beside a vector of length 1: two rows of one sentence are at a cosine of about 0.8."""


def sentence(number: int) -> str:
    """A distinct ordinary sentence for every number."""
    who, what, where = PEOPLE[number % 10], THINGS[number // 10 % 10], PLACES[number // 100 % 10]
    did = DEEDS[number // 1000 % 10]
    return f"{who} {did} {what} in {where} on the trip that the family calls journey {number}."


def pool(embedder: Embedder) -> NDArray[np.float32]:
    """The vectors of POOL sentences of all kinds, shape (POOL, 384)."""
    return embedder.embed([sentence(number * 5) for number in range(POOL)])


def rows(
    vectors: NDArray[np.float32], numbers: range, seed: int = 7
) -> Iterator[tuple[int, str, NDArray[np.float32]]]:
    """(number, text, unit vector) of each."""
    rng = np.random.default_rng(seed)
    scale = NOISE / np.sqrt(vectors.shape[1])
    for number in numbers:
        vector = vectors[number % len(vectors)] + rng.normal(0, scale, vectors.shape[1])
        yield number, sentence(number), (vector / np.linalg.norm(vector)).astype(np.float32)


def fill(
    connection: psycopg.Connection,
    tenant_id: UUID,
    vectors: NDArray[np.float32],
    numbers: range,
    contract: str,
) -> None:
    """Memories of the tenant's shared space, owned by its first agent; the vector index is built after them."""
    [index] = connection.execute("select pg_get_indexdef('passage_embedding'::regclass)").fetchone() or ("",)
    connection.execute("drop index passage_embedding")
    connection.execute("create temporary table filler (n int, content text, embedding halfvec(384))")
    with connection.cursor().copy("copy filler from stdin") as copy:
        for number, text, vector in rows(vectors, numbers):
            copy.write_row((number, text, vector_text(vector)))
    connection.execute(_FILL, {"tenant": tenant_id, "contract": contract})
    connection.execute("drop table filler")
    connection.execute("set maintenance_work_mem = '512MB'")
    # Of a partitioned table the definition says ONLY, which would leave the partitions without an index.
    connection.execute(index.replace(" ON ONLY ", " ON ").encode())
    connection.execute("analyze")


# The words as numbers are not those of domain/terms.py: what is measured asks for none of these rows by word.
_FILL = r"""
with who as (
  select s.space_id, p.principal_id from space s join principal p on p.tenant_id = s.tenant_id and p.kind = 'agent'
  where s.tenant_id = %(tenant)s and s.kind = 'team_shared' order by p.principal_id limit 1
), made as materialized (
  select gen_random_uuid() as id, f.* from filler f
), m as (
  insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, content, origin, source,
    assertion_kind, admitted_by, pii, screen, confidence, confidence_parts, dedup_key, created_at)
  select %(tenant)s, made.id, w.space_id, w.principal_id, 'global', 'fact', made.content, 'imported', 'structured',
    'stated', 'ingest', false, '{}', 1, '{}', sha256(made.id::text::bytea), now()
  from made, who w
), v as (
  insert into memory_version (tenant_id, memory_id, space_id, version, created_at)
  select %(tenant)s, made.id, w.space_id, 1, now() from made, who w
)
insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered, language,
  terms, words, asks, dated, embedding, contract)
select %(tenant)s, gen_random_uuid(), made.id, w.space_id, 0, 0, length(made.content), made.content, 'english',
  array(select hashtextextended(word, 0) from regexp_split_to_table(lower(made.content), '\W+') as word), 12,
  false, false, made.embedding, %(contract)s
from made, who w
"""
