"""Rows a second into memory: structured, Markdown and bulk, beside mem0 and PostgresStore.

    .venv-bench/bin/python bench/ingest.py [--quick] [--json FILE]

Ours goes through the handlers with proxy events, in this process: strict body, authorization, both layers of the
screen, PII scan, linker, embedding, duplicate and conflict search, graph, audit chain, one commit a request. mem0
(`infer=False`, pgvector) and LangGraph's PostgresStore put the same texts with the same embedder (one thread)
into the same PostgreSQL, and do none of that. Structured is one row a request, as mem0's add and PostgresStore's
put; bulk is one UMP file through a job, beside PostgresStore's batch of 100 (mem0 has no batch).

CPU time is told apart: the model's forward passes (of the passages, and of the screen's windows where they are
others), the rest of this process, and PostgreSQL with all its processes.

Rows already there are copied into all three past their interfaces, the same texts and vectors, and indexed
afterwards. Each rate is the median of several rounds, in which the stores take turns: on a shared machine read
figures across a row, not down a column.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid4

import psutil
import psycopg

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]
os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")

from bench import peers  # noqa: E402
from bench.filler import fill, pool, rows, sentence  # noqa: E402
from layers.model.build import ensure  # noqa: E402
from local.postgres import MIGRATOR, OWNER, Server  # noqa: E402
from remembrancer.adapters.embedding import OnnxEmbedder  # noqa: E402
from remembrancer.adapters.keys import FileMacKeys  # noqa: E402
from remembrancer.adapters.screen_model import LearnedScreen  # noqa: E402
from remembrancer.api import wiring  # noqa: E402
from remembrancer.domain.screen_policy import ScreenPolicy  # noqa: E402
from remembrancer.flows import work  # noqa: E402
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap  # noqa: E402
from remembrancer.flows.context import Services  # noqa: E402
from remembrancer.store.database import Database, connect  # noqa: E402
from remembrancer.store.migrate import migrate  # noqa: E402
from remembrancer.store.vectors import vector_text  # noqa: E402

ROUNDS = 3
EXISTING = 10_000_000
"""Numbers of the sentences that are there already: none of them is written again."""


@dataclass(frozen=True)
class Cpu:
    """Seconds, or a row's milliseconds, of CPU time: the model's, the rest of this process's, PostgreSQL's."""

    model: float
    python: float
    postgres: float

    @property
    def total(self) -> float:
        return self.model + self.python + self.postgres


@dataclass(frozen=True)
class Rate:
    """`per_s` rows a second; `cpu_ms` a row, which others on the machine disturb less."""

    per_s: float
    cpu_ms: Cpu


class Metered(OnnxEmbedder):
    """Counts the CPU time of the forward passes of all its instances: they run in the calling thread."""

    busy_s = 0.0

    def _run(self, encodings: Any) -> Any:
        began = time.thread_time()
        vectors = super()._run(encodings)
        Metered.busy_s += time.thread_time() - began
        return vectors


class Store(Protocol):
    """What is measured, by kind of write, in one round."""

    name: str

    def round(self, first: int, count: int) -> dict[str, Rate]: ...

    def close(self) -> None: ...


def cpu_s(pid_file: Path) -> Cpu:
    """Of this process and of the server with its backends, so far."""
    server = psutil.Process(int(pid_file.read_text().split("\n", 1)[0]))
    times = [process.cpu_times() for process in (server, *server.children())]
    model = Metered.busy_s
    return Cpu(model, time.process_time() - model, sum(one.user + one.system for one in times))


def rate(write: Callable[[], Any], count: int) -> Rate:
    began, before = time.perf_counter(), cpu_s(PID_FILES[0])
    write()
    took, after = time.perf_counter() - began, cpu_s(PID_FILES[0])
    spent = ((b - a) / count * 1000 for a, b in zip(astuple(before), astuple(after), strict=True))
    return Rate(count / took, Cpu(*spent))


PID_FILES: list[Path] = []
"""Of the server that is measured."""


class Ours:
    """One tenant and its writing agent, called as the gateway calls the functions."""

    name = "ours"

    def __init__(self, server: Server, database: str, embedder: OnnxEmbedder, folder: Path) -> None:
        server.ensure_database(database)
        with psycopg.connect(server.url(MIGRATOR, database), autocommit=True) as connection:
            migrate(connection)
        macs = FileMacKeys(folder / "mac.key")

        def services(role: str, own: OnnxEmbedder = embedder) -> Services:
            return Services(
                Database(connect(server.url(role, database)), wiring.new_id),
                own,
                macs,
                wiring.now,
                wiring.new_id,
                screen_model=LearnedScreen(own),
                screen_policy=ScreenPolicy(required=True),
            )

        agent = {"name": "bench", "kind": "agent", "issuer": "bench", "subject": "bench", "capabilities": []}
        migrator = services(MIGRATOR)
        made = bootstrap(
            migrator,
            BootstrapRequest.model_validate(
                {"tenant": database, "principals": [{**agent, "team_grant": "write", "keys": []}]}
            ),
        )
        migrator.database.close()
        self.tenant_id = UUID(made["tenant_id"])
        self.url = server.url(OWNER, database)
        with psycopg.connect(self.url, autocommit=True) as owner:  # rates are not what is measured
            owner.execute(
                'update tenant set settings = \'{"principal_rate": 100000, "tenant_rate": 100000}\''
            )
        self._ingest = services("rem_ingest")
        # Another function, which knows nothing of the vectors that the screen made.
        self._worker = services("rem_job", Metered(embedder.model_dir, threads=1))
        self._handler = importlib.import_module("functions.ingest.handler")

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """The answer's body. Raises RuntimeError for anything but success."""
        self._handler.services = lambda: self._ingest
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

    def job(self, path: str, body: Any) -> None:
        """The request and, if it became one, its job to the end."""
        answer = self.post(path, body)
        if "job_id" in answer:
            job_id = UUID(answer["job_id"].partition("_")[2])
            while work.step(self._worker, self.tenant_id, job_id)["more"]:
                pass

    def round(self, first: int, count: int) -> dict[str, Rate]:
        def structured() -> None:
            for n in range(first, first + count):
                self.post("/v1/ingest", {"content": sentence(n)})

        def markdown() -> None:
            numbers = range(first + 1_000_000, first + 1_000_000 + 2 * count)
            text = "".join(f"# Part {n}\n\n{sentence(n)}\n\n" for n in numbers)
            self.job("/v1/ingest/markdown", {"content": text, "source_uri": f"{first}.md", "revision": "1"})

        def bulk() -> None:
            numbers = range(first + 2_000_000, first + 2_000_000 + 5 * count)
            records = [{"body": {"text": sentence(n)}, "scope": {"visibility": "shared"}} for n in numbers]
            self.job("/v1/ingest/ump", {"records": records})

        return {
            "structured": rate(structured, count),
            "markdown": rate(markdown, 2 * count),
            "bulk": rate(bulk, 5 * count),
        }

    def close(self) -> None:
        self._ingest.database.close()
        self._worker.database.close()


class Peer:
    """mem0 or PostgresStore; only the latter has a batch."""

    def __init__(self, store: peers.Peer, name: str) -> None:
        self._store = store
        self.name = name

    def round(self, first: int, count: int) -> dict[str, Rate]:
        def single() -> None:
            for n in range(first, first + count):
                self._store.add("bench", [str(n)], [sentence(n)])

        def bulk() -> None:
            numbers = range(first + 2_000_000, first + 2_000_000 + 5 * count)
            self._store.add("bench", [str(n) for n in numbers], [sentence(n) for n in numbers])

        measured = {"structured": rate(single, count)}
        return measured if self.name == "mem0" else {**measured, "bulk": rate(bulk, 5 * count)}

    def close(self) -> None:
        self._store.close()


_MEM0_ROWS = """
insert into mem0 (id, vector, payload)
select gen_random_uuid(), embedding, jsonb_build_object('data', content, 'user_id', 'bench', 'hash', md5(content),
  'key', n::text)
from filler
"""
_STORE_ROWS = """
with kept as (
  insert into store (prefix, key, value) select 'bench', n::text, jsonb_build_object('text', content) from filler)
insert into store_vectors (prefix, key, field_name, embedding) select 'bench', n::text, 'text', embedding from filler
"""


def fill_peer(url: str, insert: str, vectors: Any, numbers: range) -> None:
    """The rows that are there already, past the store's interface; its vector index is built after them."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select indexname, indexdef from pg_indexes where indexdef ilike '% using hnsw %'"
        ).fetchall()
        for name, _ in found:
            connection.execute(f'drop index "{name}"'.encode())
        connection.execute("create temporary table filler (n int, content text, embedding vector(384))")
        with connection.cursor().copy("copy filler from stdin") as copy:
            for number, text, vector in rows(vectors, numbers):
                copy.write_row((number, text, vector_text(vector)))
        connection.execute(insert.encode())
        connection.execute("set maintenance_work_mem = '512MB'")
        for _, definition in found:
            connection.execute(definition.encode())
        connection.execute("analyze")


@contextmanager
def stores(
    server: Server, embedder: OnnxEmbedder, vectors: Any, size: int, folder: Path, *, peered: bool
) -> Iterator[list[Store]]:
    """Ours and the installed peers, each with `size` rows."""
    numbers = range(EXISTING, EXISTING + size)
    kit = Ours(server, f"ours_{size}", embedder, folder)
    if size:
        with psycopg.connect(kit.url, autocommit=True) as connection:
            fill(connection, kit.tenant_id, vectors, numbers, embedder.contract)
    found: list[Store] = [kit]
    for name, module, make, insert in (
        ("mem0", "mem0", peers.Mem0, _MEM0_ROWS),
        ("postgresstore", "langgraph", peers.PostgresStore, _STORE_ROWS),
    ):
        if not peered or importlib.util.find_spec(module) is None:
            continue
        server.ensure_database(f"{name}_{size}")
        url = server.url(OWNER, f"{name}_{size}")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create extension if not exists vector")
        # One of its own: ours remembers the texts it has just embedded, and these are the same.
        store = make(url, Metered(embedder.model_dir, threads=1))
        store.add("bench", ["-1"], [sentence(EXISTING - 1)])
        if size:
            fill_peer(url, insert, vectors, numbers)
        found.append(Peer(store, name))
    try:
        yield found
    finally:
        for one in found:
            one.close()


def measure(found: list[Store], count: int, rounds: int) -> dict[str, Rate]:
    """By `{store}_{kind}` the median of the rounds, the first of which is not counted."""
    seen: dict[str, list[Rate]] = {}
    for number in range(rounds + 1):
        for store in found:
            for kind, value in store.round(number * 10_000, 5 if number == 0 else count).items():
                if number:
                    seen.setdefault(f"{store.name}_{kind}", []).append(value)
    return {
        name: Rate(
            statistics.median(v.per_s for v in values),
            Cpu(*map(statistics.median, zip(*(astuple(v.cpu_ms) for v in values), strict=True))),
        )
        for name, values in seen.items()
    }


KINDS = (
    "ours_structured",
    "mem0_structured",
    "postgresstore_structured",
    "ours_markdown",
    "ours_bulk",
    "postgresstore_bulk",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 20 rows, 0 and 5,000 existing")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--sizes", help="existing rows, by commas")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    count, rounds = (20, 2) if options.quick else (30, ROUNDS)
    sizes = (0, 5_000) if options.quick else (0, 10_000, 100_000)
    if options.sizes:
        sizes = tuple(map(int, options.sizes.split(",")))
    embedder = Metered(ensure(), threads=1)
    vectors = pool(embedder) if any(sizes) else None
    metrics: dict[str, float] = {}
    print("median of", rounds, "rounds; CPU in ms a row")
    print(
        f"{'existing':>9}  {'':<25}{'rows/s':>8}{'CPU':>8}{'model':>8}{'python':>8}{'postgres':>10}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="rem-ingest-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        # The others wait while one is filled, mem0 with a transaction open behind a read.
        patient = {"idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0"}
        with Server(folder / "data", settings=patient) as server:
            PID_FILES.append(server.data_dir / "postmaster.pid")
            for size in sizes:
                with stores(server, embedder, vectors, size, folder, peered=not options.no_peers) as found:
                    measured = measure(found, count, rounds)
                for kind, value in measured.items():
                    metrics[f"{kind}_rows_per_s_{size}"] = round(value.per_s, 2)
                    metrics[f"{kind}_cpu_ms_{size}"] = round(value.cpu_ms.total, 2)
                    for part, spent in asdict(value.cpu_ms).items():
                        metrics[f"{kind}_{part}_ms_{size}"] = round(spent, 2)
                for kind in KINDS:
                    if kind in measured:
                        one = measured[kind]
                        cpu = one.cpu_ms
                        print(
                            f"{size:>9,}  {kind.replace('_', ' '):<25}{one.per_s:>8.1f}{cpu.total:>8.1f}"
                            f"{cpu.model:>8.1f}{cpu.python:>8.1f}{cpu.postgres:>10.1f}",
                            flush=True,
                        )
    metrics["rows_per_s"] = metrics[f"ours_structured_rows_per_s_{sizes[0]}"]
    for peer in ("mem0", "postgresstore"):
        if f"{peer}_structured_rows_per_s_{sizes[0]}" in metrics:
            metrics[f"{peer}_rows_per_s"] = metrics[f"{peer}_structured_rows_per_s_{sizes[0]}"]
    metrics["slowdown_100k"] = round(
        metrics["rows_per_s"] / metrics[f"ours_structured_rows_per_s_{sizes[-1]}"], 3
    )
    print(
        f"a structured row takes {metrics['slowdown_100k']:.2f} times as long at {sizes[-1]:,} rows as at none"
    )
    if options.json:
        options.json.write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
