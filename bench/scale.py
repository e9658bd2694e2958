"""Recall against the number of rows: tenants of 1,000, 10,000 and 100,000 rows among those of other tenants.

    .venv-bench/bin/python -m bench.scale [--others N] [--quick] [--keep FOLDER] [--json FILE] [--no-peers]

Method. Durable PostgreSQL 16 in a temporary folder. Vectors and texts are generated (mixtures of 2,000 directions;
12 words of a vocabulary of 5,000 with a long tail) and loaded by the server, foreign keys unchecked; the indexes of
vectors and terms are built after loading, term statistics by the scheduled job. p50 and p95 of the whole recall but
the embedding of the query (the query's vector is near a stored one, its four words are a row's), one at a time,
warm, limit 10; all sizes and PostgresStore take turns query by query, so that a busy machine distorts none more than
another. `cpu_pg` and `cpu_py` are processor time a recall. PostgresStore holds the vectors of the largest tenant in
one namespace and as many others' in another, on the same server, indexed by its own set-up. recall@10 against exact:
of the ten nearest that an exact scan of the tenant (the namespace) finds, the share among what the search compared
(answered). Both ways of searching are timed at sizes around the switch between them. --others is a million unless
said otherwise; what was run is printed. --keep FOLDER leaves the filled server there and measures it again the next
time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psutil
import psycopg

from bench import peers
from bench.locomo import services
from bench.recall import WARM, timed
from local.postgres import MIGRATOR, OWNER, Server
from remembrancer.domain import query
from remembrancer.domain.principal import Credential
from remembrancer.domain.requests import RecallRequest
from remembrancer.domain.terms import scoped, text_terms
from remembrancer.flows import recall
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.flows.context import Call, Services
from remembrancer.flows.term_stats import recount
from remembrancer.store import search
from remembrancer.store.database import Unit
from remembrancer.store.migrate import migrate

CONTRACT = "generated"
SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "ke",
    "li",
    "mo",
    "nu",
    "pa",
    "re",
    "si",
    "to",
    "vu",
    "wa",
    "ye",
    "zi",
]
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES][:5_000]
QUERIES = 60
FOREIGN = 50
NAME = "scale"


@dataclass(frozen=True)
class Tenant:
    name: str
    tenant_id: UUID
    space_id: UUID
    owner_id: UUID
    rows: int

    @property
    def credential(self) -> Credential:
        return Credential("scale", self.name, frozenset({"read"}), frozenset())


class Fixed:
    """Answers the vector that was set for the next query."""

    contract = CONTRACT

    def __init__(self) -> None:
        self.vector: Any = None

    def embed(self, texts: Sequence[str]) -> Any:
        return np.stack([self.vector for _ in texts])

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


def make_tenant(owner: Services, connection: psycopg.Connection[Any], name: str, rows: int) -> Tenant:
    principal = {"name": "reader", "kind": "agent", "issuer": "scale", "subject": name, "capabilities": []}
    bootstrap(
        owner,
        BootstrapRequest.model_validate(
            {"tenant": name, "principals": [{**principal, "team_grant": "write", "keys": []}]}
        ),
    )
    return known_tenant(connection, name, rows)


def load(connection: psycopg.Connection[Any], tenant: Tenant, terms: Sequence[int]) -> None:
    """Rows of one tenant, made by the server; the first five of each are the domain `small`."""
    connection.execute("set local session_replication_role = replica")
    parameters = {
        "tenant": tenant.tenant_id,
        "space": tenant.space_id,
        "owner": tenant.owner_id,
        "rows": tenant.rows,
        "terms": list(terms),
        "words": WORDS,
        "contract": CONTRACT,
    }
    connection.execute(
        """
        create temporary table made on commit drop as
        select n, gen_random_uuid() as id,
               array(select 1 + floor(5000 * power(random(), 3))::int from generate_series(1, 12) where n > 0) as picked
        from generate_series(1, %(rows)s) n
        """,
        parameters,
    )
    connection.execute(
        """
        insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, content, origin, source,
          assertion_kind, admitted_by, pii, screen, confidence, confidence_parts, dedup_key, created_at, observed_at,
          source_uri)
        select %(tenant)s, id, %(space)s, %(owner)s, case when n <= 5 then 'small' else 'large' end, 'fact',
          array_to_string(array(select (%(words)s::text[])[w] from unnest(picked) w), ' '), 'imported', 'structured',
          'stated', 'ingest', false, '{}', 1, '{}', sha256(id::text::bytea), now(), now(), 'talk:' || n / 20
        from made
        """,
        parameters,
    )
    connection.execute(
        "insert into memory_version (tenant_id, memory_id, space_id, version, created_at)"
        " select %(tenant)s, id, %(space)s, 1, now() from made",
        parameters,
    )
    connection.execute(
        """
        insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered,
          language, terms, words, asks, dated, embedding, contract)
        select %(tenant)s, gen_random_uuid(), id, %(space)s, 0, 0, 60, '', 'english',
          array(select (%(terms)s::bigint[])[w] from unnest(picked) w), 12, false, false,
          (l2_normalize(a.v + b.v))::halfvec, %(contract)s
        from made join direction a on a.n = 1 + (made.n * 7919) %% 2000 join noise b on b.n = 1 + made.n %% 1999
        """,
        parameters,
    )


def queries(connection: psycopg.Connection[Any], tenant: Tenant) -> list[tuple[str, Any]]:
    """(four words of a row, a vector near that row's)."""
    random = np.random.default_rng(7)
    rows = connection.execute(
        "select m.content, p.embedding::text from memory m join passage p using (tenant_id, space_id, memory_id)"
        " where m.tenant_id = %s and m.space_id = %s order by m.memory_id limit %s",
        (tenant.tenant_id, tenant.space_id, QUERIES),
    ).fetchall()
    found = []
    for content, vector in rows:
        near = np.array(json.loads(vector), np.float32) + random.normal(0, 0.02, 384).astype(np.float32)
        found.append((" ".join(content.split()[:4]), near / np.linalg.norm(near)))
    return found


def calls(
    reader: Services, embedder: Fixed, tenant: Tenant, asked: Sequence[tuple[str, Any]]
) -> list[Callable[[], Any]]:
    """One recall a query."""
    call = Call(
        credential=tenant.credential, correlation_id="bench", operation="recall", route="POST /v1/recall"
    )

    def one(text: str, vector: Any) -> Callable[[], Any]:
        def run() -> Any:
            embedder.vector = vector
            return recall.recall(reader, call, RecallRequest(query=text, include=["nearest"]))

        return run

    return [one(text, vector) for text, vector in asked]


def processor(reader: Services, tenant: Tenant, asked: Sequence[Callable[[], Any]]) -> dict[str, float]:
    """{cpu_pg_ms, cpu_py_ms} of a recall."""
    server = psutil.Process(
        reader.database.read(tenant.credential, lambda unit: unit.connection.info.backend_pid)
    )
    before, here = server.cpu_times(), time.process_time()
    timed(asked)
    after, there = server.cpu_times(), time.process_time()
    count = len(asked) + WARM
    return {
        "cpu_pg_ms": 1000 * (after.user + after.system - before.user - before.system) / count,
        "cpu_py_ms": 1000 * (there - here) / count,
    }


def in_turns(asked: dict[str, list[Callable[[], Any]]]) -> dict[str, list[float]]:
    """Milliseconds of each call, sorted; the subjects take turns."""
    found: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(-WARM, QUERIES):
        for name, subject in asked.items():
            began = time.perf_counter()
            subject[turn]()
            if turn >= 0:
                found[name].append((time.perf_counter() - began) * 1000)
    return {name: sorted(times) for name, times in found.items()}


def around_the_switch(
    reader: Services,
    embedder: Fixed,
    tenants: dict[str, Tenant],
    asked: dict[str, list[tuple[str, Any]]],
) -> dict[str, float]:
    """Both ways of searching, by processor time, at sizes on both sides of EXACT_MAX."""
    found: dict[str, float] = {}
    committed = search.EXACT_MAX
    for label in ("1k", "3k", "10k"):
        for mode, most in (("exact", 1_000_000), ("indexed", 0)):
            search.EXACT_MAX = most
            recalls = calls(reader, embedder, tenants[label], asked[label])
            found[f"cpu_pg_ms_{mode}_{label}"] = processor(reader, tenants[label], recalls)["cpu_pg_ms"]
    search.EXACT_MAX = committed
    return found


def against_exact(
    reader: Services, connection: psycopg.Connection[Any], tenant: Tenant, asked: Sequence[tuple[str, Any]]
) -> float:
    """The share of the ten nearest by exact scan that the search compared and put first by cosine."""
    shares = []
    for text, vector in asked:
        question = query.understand(text, datetime.now(UTC))
        ranked = reader.database.read(
            tenant.credential,
            lambda unit, q=question, v=vector: recall.rank(unit, RecallRequest(query="x"), q, v, CONTRACT),
        )
        first = sorted(ranked.candidates, key=lambda c: -c.cosine)[:10]
        with connection.transaction():
            connection.execute("set local enable_indexscan = off")
            exact = connection.execute(
                "select passage_id from passage where tenant_id = %s and space_id = %s"
                " order by embedding <=> %s::halfvec limit 10",
                (tenant.tenant_id, tenant.space_id, search.vector_text(vector)),
            ).fetchall()
        shares.append(len({c.passage_id for c in first} & {row[0] for row in exact}) / len(exact))
    return statistics.fmean(shares)


def fill_peer(url: str, mine: int, others: int) -> dict[str, float]:
    """PostgresStore with as many rows, loaded past its interface; how long its index took."""
    peers.PostgresStore(url, Fixed()).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop index store_vectors_embedding_idx")
        for prefix, rows in (("mine", mine), ("others", others)):
            connection.execute(
                'insert into store (prefix, key, value) select %s, n::text, \'{"text": ""}\''
                " from generate_series(1, %s) n",
                (prefix, rows),
            )
            connection.execute(
                "insert into store_vectors (prefix, key, field_name, embedding)"
                " select %s, made.n::text, 'text', l2_normalize(a.v + b.v) from generate_series(1, %s) made(n)"
                " join direction a on a.n = 1 + (made.n::bigint * 7919) %% 2000"
                " join noise b on b.n = 1 + made.n %% 1999",
                (prefix, rows),
            )
        began = time.perf_counter()
        connection.execute(
            "create index store_vectors_embedding_idx on store_vectors using hnsw (embedding vector_cosine_ops)"
        )
        took = time.perf_counter() - began
        connection.execute("vacuum analyze store, store_vectors")
    return {"postgresstore_index_build_s": took}


def peer_calls(
    store: peers.PostgresStore, embedder: Fixed, asked: Sequence[tuple[str, Any]]
) -> list[Callable[[], list[str]]]:
    def one(vector: Any) -> Callable[[], list[str]]:
        def run() -> list[str]:
            embedder.vector = vector
            return store.search("mine", "x", 10)

        return run

    return [one(vector) for _, vector in asked]


def peer_against_exact(
    connection: psycopg.Connection[Any],
    recalls: Sequence[Callable[[], list[str]]],
    asked: Sequence[tuple[str, Any]],
) -> float:
    """The share of the ten nearest of the namespace that it answers."""
    shares = []
    for run, (_, vector) in zip(recalls, asked, strict=True):
        with connection.transaction():
            connection.execute("set local enable_indexscan = off")
            exact = connection.execute(
                "select key from store_vectors where prefix = 'mine' order by embedding <=> %s::vector limit 10",
                (search.vector_text(vector),),
            ).fetchall()
        shares.append(len({row[0] for row in exact} & set(run())) / len(exact))
    return statistics.fmean(shares)


def directions(connection: psycopg.Connection[Any]) -> None:
    random = np.random.default_rng(3)
    for table, spread in (("direction", 1.0), ("noise", 0.6)):
        connection.execute(f"create table {table} (n int primary key, v vector(384))".encode())
        with connection.cursor().copy(f"copy {table} from stdin".encode()) as copy:
            for number in range(1, 2_001):
                vector = random.normal(0, spread / np.sqrt(384), 384)
                copy.write_row((number, search.vector_text(vector)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--others", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--quick", action="store_true", help="20,000 rows for 100,000, 20,000 others, no peers"
    )
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    others = 20_000 if options.quick else options.others
    sizes = {"1k": 1_000, "3k": 3_000, "10k": 10_000, "100k": 20_000 if options.quick else 100_000}
    print(__doc__, f"\nRun: {others} rows of {FOREIGN} other tenants; sizes {sizes}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rem-scale-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        settings = {
            "idle_session_timeout": "0",
            "idle_in_transaction_session_timeout": "0",
            "maintenance_work_mem": "1GB",
            "shared_buffers": "1GB",
        }
        with Server(folder / "data", flavour="16", settings=settings) as server:
            peers_too = not (options.quick or options.no_peers)
            built = folder / "built.json"
            if server.ensure_database(NAME):
                built.write_text(json.dumps(filled(server, sizes, others, peers_too=peers_too)))
            metrics = json.loads(built.read_text()) | run(server, sizes, peers_too=peers_too)
    for name, value in metrics.items():
        print(f"{name:32} {value:.4g}")
    if options.json:
        options.json.write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


def filled(server: Server, sizes: dict[str, int], others: int, *, peers_too: bool) -> dict[str, float]:
    """The rows of all tenants, the indexes, the statistics; how long each took."""
    with psycopg.connect(server.url(MIGRATOR, NAME), autocommit=True) as connection:
        migrate(connection)
    owner = services(server.url(MIGRATOR, NAME), Fixed())
    metrics: dict[str, float] = {}
    with psycopg.connect(server.url(OWNER, NAME), autocommit=True) as connection:
        directions(connection)
        indexes = ("passage_embedding", "passage_terms")
        made = connection.execute(
            "select relname, pg_get_indexdef(oid) from pg_class where relname = any (%s)", (list(indexes),)
        ).fetchall()
        for name in indexes:
            connection.execute(f"drop index {name}".encode())
        began = time.perf_counter()
        tenants = [make_tenant(owner, connection, label, rows) for label, rows in sizes.items()]
        tenants += [make_tenant(owner, connection, f"other{n}", others // FOREIGN) for n in range(FOREIGN)]
        for tenant in tenants:
            terms = scoped(tenant.space_id, [text_terms(word).words[0] for word in WORDS])
            with connection.transaction():
                load(connection, tenant, terms)
        metrics["load_s"] = time.perf_counter() - began
        print("loaded", flush=True)
        for name, definition in made:
            began = time.perf_counter()
            connection.execute(definition.replace(" ON ONLY ", " ON ").encode())
            metrics[f"{name}_build_s"] = time.perf_counter() - began
        connection.execute("vacuum analyze")
        print("indexed", flush=True)
        began = time.perf_counter()
        recount(services(server.url("rem_statistics", NAME), Fixed()))
        metrics["term_statistics_s"] = time.perf_counter() - began
        if peers_too and importlib.util.find_spec("langgraph") is not None:
            metrics |= fill_peer(server.url(OWNER, NAME), sizes["100k"], others)
            print("filled PostgresStore", flush=True)
    owner.database.close()
    return metrics


def known_tenant(connection: psycopg.Connection[Any], name: str, rows: int) -> Tenant:
    row = connection.execute(
        "select s.tenant_id, s.space_id, p.principal_id from credential c join space s using (tenant_id)"
        " join principal p using (tenant_id, principal_id) where c.subject = %s and s.kind = 'team_shared'",
        (name,),
    ).fetchone()
    assert row is not None
    return Tenant(name, *row, rows)


def run(server: Server, sizes: dict[str, int], *, peers_too: bool) -> dict[str, float]:
    metrics: dict[str, float] = {}
    embedder = Fixed()
    reader = services(server.url("rem_recall", NAME), embedder)
    with psycopg.connect(server.url(OWNER, NAME), autocommit=True) as connection:
        tenants = {label: known_tenant(connection, label, rows) for label, rows in sizes.items()}
        asked = {label: queries(connection, tenant) for label, tenant in tenants.items()}
        recalls = {label: calls(reader, embedder, tenants[label], asked[label]) for label in sizes}
        turns = dict(recalls)
        if peers_too and importlib.util.find_spec("langgraph") is not None:
            store = peers.PostgresStore(server.url(OWNER, NAME), embedder)
            turns["postgresstore"] = peer_calls(store, embedder, asked["100k"])
            metrics["postgresstore_recall_at_10_vs_exact"] = peer_against_exact(
                connection, turns["postgresstore"][:30], asked["100k"][:30]
            )
        for name, times in in_turns(turns).items():
            metrics[f"p50_ms_{name}"] = times[len(times) // 2]
            metrics[f"p95_ms_{name}"] = times[int(len(times) * 0.95)]
            print(
                name, f"p50 {metrics[f'p50_ms_{name}']:.1f} p95 {metrics[f'p95_ms_{name}']:.1f}", flush=True
            )
        metrics["p50_ratio_100k_to_1k"] = metrics["p50_ms_100k"] / metrics["p50_ms_1k"]
        if "postgresstore" in turns:
            metrics["p50_ratio_to_postgresstore"] = metrics["p50_ms_100k"] / metrics["p50_ms_postgresstore"]
            store.close()
        for label, tenant in tenants.items():
            metrics |= {f"{name}_{label}": v for name, v in processor(reader, tenant, recalls[label]).items()}
        metrics |= around_the_switch(reader, embedder, tenants, asked)
        large = tenants["100k"]
        metrics["recall_at_10_vs_exact_100k"] = against_exact(reader, connection, large, asked["100k"][:30])
        embedder.vector = asked["100k"][0][1]
        small = recall.recall(
            reader,
            Call(
                credential=large.credential, correlation_id="b", operation="recall", route="POST /v1/recall"
            ),
            RecallRequest(query="anything", domains=["small"], include=["nearest"]),
        )
        metrics["small_domain_hits"] = float(len(small["hits"]) or len(small["nearest"]))
        print_plan(reader, large, asked["100k"][0])
    return metrics


def print_plan(reader: Services, tenant: Tenant, asked: tuple[str, Any]) -> None:
    """The plan of the indexed search as chosen for this tenant: where it reads tables."""

    def explained(unit: Unit) -> list[str]:
        lines: list[str] = []

        def rows(sql: Any, params: Any = None) -> list[Any]:
            found = unit.connection.execute(sql, params).fetchall()
            if "nearest as materialized" in sql:
                plan = unit.connection.execute("explain (analyze, timing off, costs off) " + sql, params)
                lines.extend(row["QUERY PLAN"] for row in plan.fetchall())
            return found

        watched = replace(unit)
        watched.rows = rows  # type: ignore[method-assign]
        question = query.understand(asked[0], datetime.now(UTC))
        recall.rank(watched, RecallRequest(query="x"), question, asked[1], CONTRACT)
        return lines

    for line in reader.database.read(tenant.credential, explained):
        if " Scan " in line or "Execution" in line or "Planning Time" in line:
            print("   ", line[:130])


if __name__ == "__main__":
    main()
