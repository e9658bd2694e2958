"""Rows a second erased at 100,000 memories, beside a plain DELETE of as many.

    python bench/erase.py [--quick] [--json FILE]

Erasing goes through the flow, as the database role of `purge` under row level security: signed, locked, every table
searched, tombstones, the chain, one commit for 1,000 memories. The plain DELETE removes as many memories by id as
the owner of the tables, and what hangs on them by foreign keys alone. Every memory has a version, an occurrence, a
passage with a vector in the HNSW index, a person, an edge and its support; every tenth came by a proposal, with an
answer kept for replay, and every tenth by an attempt of remember. `--quick` does it at 5,000 memories.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench.tenant import Tenant, admin, tenant  # noqa: E402
from local.postgres import OWNER  # noqa: E402
from remembrancer.adapters.signatures import sign_request  # noqa: E402
from remembrancer.api import wiring  # noqa: E402
from remembrancer.domain.ids import format_id  # noqa: E402
from remembrancer.domain.requests import PurgeRequest  # noqa: E402
from remembrancer.flows.context import Call, Services, SignedParts  # noqa: E402
from remembrancer.flows.erase import purge  # noqa: E402

BASE = "https://memory.test/prod"
BATCH = 1_000

FILL = """
with who as (
  select s.tenant_id, s.space_id, p.principal_id from space s join principal p on p.tenant_id = s.tenant_id
  where s.kind = 'team_shared' and p.kind = 'agent'
), made as materialized (
  select w.*, n, gen_random_uuid() as memory_id, gen_random_uuid() as occurrence_id, gen_random_uuid() as entity_id,
    gen_random_uuid() as relationship_id, 'Person ' || n || ' keeps ' || n %% 97 || ' bees in the garden.' as content
  from who w, generate_series(1, %(rows)s) n
), m as (
  insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, content, origin, source, assertion_kind,
    admitted_by, pii, screen, confidence, confidence_parts, dedup_key, created_at)
  select tenant_id, memory_id, space_id, principal_id, 'global', 'fact', content, 'imported', 'structured', 'stated',
    'ingest', false, '{}', 1, '{}', sha256(memory_id::text::bytea), now() from made
), v as (
  insert into memory_version (tenant_id, memory_id, space_id, version, created_at)
  select tenant_id, memory_id, space_id, 1, now() from made
), o as (
  insert into occurrence (tenant_id, occurrence_id, memory_id, space_id, submitted_by, submitted_at, source,
    correlation_id)
  select tenant_id, occurrence_id, memory_id, space_id, principal_id, now(), 'structured', 'bench' from made
), p as (
  insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered, language,
    terms, words, asks, dated, embedding, contract)
  select tenant_id, gen_random_uuid(), memory_id, space_id, 0, 0, length(content), content, 'english',
    array[n, n %% 97, 7], 3, false, false,
    (select array_agg(random() - 0.5 + 0 * (n + g)) from generate_series(1, 384) g)::real[]::vector::halfvec, 'bench'
  from made
), e as (
  insert into entity (tenant_id, entity_id, space_id, kind, created_at)
  select tenant_id, entity_id, space_id, 'person', now() from made
), en as (
  insert into entity_name (tenant_id, entity_id, space_id, kind, name, name_key, canonical)
  select tenant_id, entity_id, space_id, 'person', 'Person ' || n, 'person ' || n, true from made
), me as (
  insert into mention (tenant_id, space_id, memory_id, occurrence_id, entity_id, name_key)
  select tenant_id, space_id, memory_id, occurrence_id, entity_id, 'person ' || n from made
), pr as (
  insert into predicate (tenant_id, space_id, predicate_key, kind, cardinality, created_at)
  select tenant_id, space_id, 'keeps', 'state', 'many', now() from who
), r as (
  insert into relationship (tenant_id, relationship_id, version, space_id, owner_id, subject_id, predicate_key,
    value_type, value_canonical, value_original, polarity, created_at)
  select tenant_id, relationship_id, 1, space_id, principal_id, entity_id, 'keeps', 'number', (n %% 97)::text,
    (n %% 97)::text, '+', now() from made
), po as (
  insert into proposal (tenant_id, proposal_id, space_id, submitted_by, status, body, salt, pending_key, content_sha,
    pii, screen, scores, correlation_id, created_at, deadline, decided_at, memory_id)
  select tenant_id, gen_random_uuid(), space_id, principal_id, 'approved', jsonb_build_object('content', content),
    decode(repeat('00', 16), 'hex'), sha256(content::bytea), sha256(content::bytea), false, '{}', '{}', 'bench', now(),
    now(), now(), memory_id from made where n %% 10 = 0
), i as (
  insert into idempotency (tenant_id, principal_id, operation, key, request_hash, state, token, lease_until, status,
    body, refs, expires_at)
  select tenant_id, principal_id, 'bench', n::text, sha256(content::bytea), 'completed', gen_random_uuid(), now(), 201,
    content, array[memory_id], now() + interval '1 day' from made where n %% 10 = 0
), at as (
  insert into attempt (tenant_id, attempt_id, space_id, target_id, principal_id, operation, key, request_hash, chain_id,
    number, state, token, issuer, subject, scopes, groups, correlation_id, entered_at, deadline, lease_until, screened,
    content_shas, refs, status, result, finished_at)
  select tenant_id, gen_random_uuid(), space_id, space_id, principal_id, 'bench', n::text, sha256(content::bytea),
    gen_random_uuid(), 1, 'completed', gen_random_uuid(), 'i', 's', '{}', '{}', 'bench', now(), now(), now(), '{}',
    array[sha256(content::bytea)], array[memory_id, entity_id], 200, '{}', now() from made where n %% 10 = 5
)
insert into support (tenant_id, support_id, space_id, relationship_id, version, memory_id, occurrence_id)
select tenant_id, gen_random_uuid(), space_id, relationship_id, 1, memory_id, occurrence_id from made
"""


def fill(made: Tenant, rows: int) -> None:
    """The vectors' index is built afterwards, as it would be after a restore."""
    with made.as_owner(OWNER) as owner:
        [definition] = owner.execute(
            "select indexdef from pg_indexes where indexname = 'passage_embedding'"
        ).fetchone() or [""]
        owner.execute("drop index passage_embedding")
        owner.execute("set session_replication_role = replica")  # keys are right by construction
        owner.execute(FILL, {"rows": rows})
        owner.execute("set session_replication_role = origin")
        owner.execute("set maintenance_work_mem = '512MB'")
        owner.execute(definition.encode())
        owner.execute("vacuum analyze")


def batches(made: Tenant, count: int) -> list[list[UUID]]:
    """Rows from all over the table."""
    with made.as_owner(OWNER) as owner:
        rows = owner.execute(
            "select memory_id from memory order by memory_id limit %s", [count * BATCH]
        ).fetchall()
    ids = [row[0] for row in rows]
    return [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]


def erase(made: Tenant, services: Services, ids: list[UUID]) -> None:
    body = {"memory_ids": [format_id("mem", one) for one in ids], "dry_run": False, "reason": "retention"}
    text = json.dumps(body)
    headers = {"Content-Type": "application/json"} | sign_request(
        method="POST",
        target_uri=BASE + "/v1/purge",
        body=text.encode(),
        key_id=made.key_id,
        algorithm="ed25519",
        private_key=made.key,
        now=wiring.now(),
    )
    parts = SignedParts(
        "POST", (BASE + "/v1/purge",), {k.lower(): v for k, v in headers.items()}, text.encode()
    )
    call = Call(admin(), "bench", "POST /v1/purge", "POST /v1/purge", signed=parts)
    answer = purge(services, call, PurgeRequest.model_validate(body))
    if len(json.loads(answer.body)["erased"]) != len(ids):
        raise SystemExit("not all of the batch was erased")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="at 5,000 memories")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, each = (5_000, 1) if options.quick else (100_000, 5)
    with tenant() as made:
        fill(made, rows)
        todo = batches(made, 2 * each)
        services = made.services("rem_purge")
        # In turns, so that what else the machine does falls on both.
        erasing = deleting = 0.0
        with made.as_owner() as owner:
            for ours, plain in zip(todo[:each], todo[each:], strict=True):
                began = time.perf_counter()
                erase(made, services, ours)
                between = time.perf_counter()
                owner.execute("delete from memory where memory_id = any (%s)", [plain])
                erasing += between - began
                deleting += time.perf_counter() - between
        services.database.close()
    measured: dict[str, Any] = {
        "rows": rows,
        "batch": BATCH,
        "rows_per_s": round(each * BATCH / erasing),
        "plain_delete_rows_per_s": round(each * BATCH / deleting),
    }
    print(json.dumps(measured, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
