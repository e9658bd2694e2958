"""Rows a second into memory: structured, Markdown and bulk, beside mem0 and PostgresStore.

    .venv-bench/bin/python bench/ingest.py [--quick] [--json FILE]

Ours goes through the handlers with proxy events, in this process: strict body, authorization, screen, PII scan,
linker, embedding, duplicate and conflict search, graph, audit chain, one commit a request. mem0 (`infer=False`,
pgvector) and LangGraph's PostgresStore put the same texts with the same embedder (one thread) into the same
PostgreSQL, and do none of that. Structured is one row a request, as mem0's add and PostgresStore's put; bulk is
one UMP file through a job, batches embedded together, beside PostgresStore's batch of 100. Rows already there
are made by SQL with random unit vectors. Absolute figures of a shared machine mean little: read them across.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench import peers  # noqa: E402
from layers.model.build import ensure  # noqa: E402
from local.postgres import MIGRATOR, OWNER, Server  # noqa: E402
from remembrancer.adapters.embedding import OnnxEmbedder  # noqa: E402
from remembrancer.adapters.keys import FileMacKeys  # noqa: E402
from remembrancer.api import wiring  # noqa: E402
from remembrancer.flows import work  # noqa: E402
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap  # noqa: E402
from remembrancer.flows.context import Services  # noqa: E402
from remembrancer.store.database import Database, connect  # noqa: E402
from remembrancer.store.migrate import migrate  # noqa: E402
from remembrancer.store.vectors import vector_text  # noqa: E402

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


def sentence(number: int) -> str:
    """A distinct ordinary sentence for every number."""
    who, what, where = PEOPLE[number % 10], THINGS[number // 10 % 10], PLACES[number // 100 % 10]
    return f"{who} bought a {what} in {where} on the trip that the family calls journey {number}."


class Ours:
    """One tenant and its writing agent, called as the gateway calls the functions."""

    def __init__(self, server: Server, name: str, embedder: OnnxEmbedder, folder: Path) -> None:
        server.ensure_database(name)
        with psycopg.connect(server.url(MIGRATOR, name), autocommit=True) as connection:
            migrate(connection)
        macs = FileMacKeys(folder / "mac.key")

        def services(role: str) -> Services:
            database = Database(connect(server.url(role, name)), wiring.new_id)
            return Services(database, embedder, macs, wiring.now, wiring.new_id)

        principal = {
            "name": "bench",
            "kind": "agent",
            "issuer": "bench",
            "subject": "bench",
            "capabilities": [],
        }
        made = bootstrap(
            services(MIGRATOR),
            BootstrapRequest.model_validate(
                {"tenant": name, "principals": [{**principal, "team_grant": "write", "keys": []}]}
            ),
        )
        self.tenant_id = UUID(made["tenant_id"])
        self.url = server.url(OWNER, name)
        self._ingest = services("rem_ingest")
        self._worker = services("rem_job")
        self._handler = importlib.import_module("functions.ingest.handler")
        self._handler.services = lambda: self._ingest

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """The answer's body. Raises RuntimeError for anything but success."""
        claims = {"iss": "bench", "sub": "bench", "scope": "memory/write memory/read"}
        event = {
            "resource": path,
            "path": path,
            "httpMethod": "POST",
            "headers": {"Content-Type": "application/json"},
            "multiValueHeaders": {"Content-Type": ["application/json"]},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "pathParameters": None,
            "requestContext": {"requestId": str(uuid4()), "authorizer": {"claims": claims}},
            "body": json.dumps(body),
            "isBase64Encoded": False,
        }
        reply = self._handler.handler(event, None)
        if reply["statusCode"] not in (200, 201, 202):
            raise RuntimeError(reply["body"])
        answer: dict[str, Any] = json.loads(reply["body"])
        return answer

    def bulk(self, records: list[dict[str, Any]]) -> None:
        job = self.post("/v1/ingest/ump", {"records": records})
        if "job_id" in job:
            job_id = UUID(job["job_id"].partition("_")[2])
            while work.step(self._worker, self.tenant_id, job_id)["more"]:
                pass

    def fill(self, rows: int) -> None:
        """Rows that are there already, past the API; the index is built once, after them."""
        rng = np.random.default_rng(7)
        with psycopg.connect(self.url, autocommit=True) as connection:
            [space, owner] = connection.execute(
                "select s.space_id, p.principal_id from space s join principal p using (tenant_id)"
                " where s.kind = 'team_shared'"
            ).fetchone() or ("", "")
            [index] = connection.execute(
                "select pg_get_indexdef('passage_embedding'::regclass)"
            ).fetchone() or ("",)
            connection.execute("drop index passage_embedding")
            connection.execute("create temporary table v (n int, e halfvec(384))")
            with connection.cursor().copy("copy v from stdin") as copy:
                for number in range(1_000):
                    vector = rng.normal(size=384).astype(np.float32)
                    copy.write_row((number, vector_text(vector / np.linalg.norm(vector))))
            connection.execute(
                """
                with made as materialized (select n, gen_random_uuid() as id from generate_series(1, %(rows)s) n),
                m as (
                  insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, content, origin, source,
                    assertion_kind, admitted_by, pii, screen, confidence, confidence_parts, dedup_key, created_at)
                  select %(tenant)s, id, %(space)s, %(owner)s, 'global', 'fact', 'Existing row ' || n, 'imported',
                    'structured', 'stated', 'ingest', false, '{}', 1, '{}', sha256(id::text::bytea), now() from made),
                w as (
                  insert into memory_version (tenant_id, memory_id, space_id, version, created_at)
                  select %(tenant)s, id, %(space)s, 1, now() from made)
                insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end,
                  rendered, language, terms, words, asks, dated, embedding, contract)
                select %(tenant)s, gen_random_uuid(), id, %(space)s, 0, 0, 12, 'Existing row ' || made.n, 'english',
                  array[made.n], 3, false, false, v.e, %(contract)s
                from made join v on v.n = made.n %% 1000
                """,
                {
                    "rows": rows,
                    "tenant": self.tenant_id,
                    "space": space,
                    "owner": owner,
                    "contract": self._ingest.embedder.contract,
                },
            )
            connection.execute("set maintenance_work_mem = '512MB'")
            connection.execute(index.encode())
            connection.execute("analyze")


def rate(write: Callable[[], Any], rows: int) -> float:
    """Rows a second."""
    began = time.perf_counter()
    write()
    return rows / (time.perf_counter() - began)


def ours(kit: Ours, first: int, rows: int) -> dict[str, float]:
    def one_by_one() -> None:
        for n in range(first, first + rows):
            kit.post("/v1/ingest", {"content": sentence(n)})

    def markdown() -> None:
        parts = "".join(f"# Part {n}\n\n{sentence(n + 500_000)}\n\n" for n in range(first, first + rows))
        body = {"content": parts, "source_uri": f"bench/{first}.md", "revision": "1"}
        job = kit.post("/v1/ingest/markdown", body)
        if "job_id" in job:
            while work.step(kit._worker, kit.tenant_id, UUID(job["job_id"].partition("_")[2]))["more"]:
                pass

    def bulk() -> None:
        kit.bulk(
            [
                {"body": {"text": sentence(n + 700_000)}, "scope": {"visibility": "shared"}}
                for n in range(first, first + 5 * rows)
            ]
        )

    return {
        "structured": rate(one_by_one, rows),
        "markdown": rate(markdown, rows),
        "bulk": rate(bulk, 5 * rows),
    }


def peer_rates(server: Server, embedder: OnnxEmbedder, rows: int) -> dict[str, float]:
    """Of those that are installed; empty tables."""
    found: dict[str, float] = {}
    for name, module, make in (
        ("mem0", "mem0", peers.Mem0),
        ("postgresstore", "langgraph", peers.PostgresStore),
    ):
        if importlib.util.find_spec(module) is None:
            continue
        server.ensure_database(f"peer_{name}")
        url = server.url(OWNER, f"peer_{name}")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create extension if not exists vector")
        peer = make(url, embedder)

        def single(peer: Any = peer) -> None:
            for n in range(rows):
                peer.add("bench", [str(n)], [sentence(n)])

        def batch(peer: Any = peer) -> None:
            numbers = range(700_000, 700_000 + 5 * rows)
            peer.add("bulk", [str(n) for n in numbers], [sentence(n) for n in numbers])

        found[name] = rate(single, rows)
        found[f"{name}_bulk"] = rate(batch, 5 * rows)
        peer.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="20 rows a measurement, 0 and 5,000 existing")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    rows = 20 if options.quick else 300
    sizes = (0, 5_000) if options.quick else (0, 10_000, 100_000)
    embedder = OnnxEmbedder(ensure(), threads=1)
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="rem-ingest-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Server(folder / "data") as server:
            print(f"{'existing rows':>14} {'structured/s':>13} {'markdown/s':>11} {'bulk/s':>8}")
            for size in sizes:
                kit = Ours(server, f"ours_{size}", embedder, folder)
                if size:
                    kit.fill(size)
                kit.post("/v1/ingest", {"content": "The first request pays for the start."})
                measured = ours(kit, size, rows)
                metrics |= {f"{kind}_rows_per_s_{size}": value for kind, value in measured.items()}
                print(
                    f"{size:>14} {measured['structured']:>13.1f} {measured['markdown']:>11.1f} {measured['bulk']:>8.1f}"
                )
            if not options.no_peers:
                for peer, value in peer_rates(server, embedder, rows).items():
                    metrics[f"{peer}_rows_per_s"] = value
                    print(f"{peer:>24} {value:>8.1f} rows/s on an empty table")
    metrics["rows_per_s"] = metrics["structured_rows_per_s_0"]
    metrics["slowdown_100k"] = metrics["rows_per_s"] / metrics[f"structured_rows_per_s_{sizes[-1]}"]
    print(
        f"structured: {metrics['slowdown_100k']:.2f} times as long a row at {sizes[-1]} existing rows as at none"
    )
    if options.json:
        options.json.write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
