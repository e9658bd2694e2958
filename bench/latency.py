"""Latency through the local gateway at 1,000 and 10,000 memories, beside a bare PostgresStore.

    python bench/latency.py [--quick] [--json FILE]

One client, one request at a time, over HTTP with a verified token; every function warm. The memories already
there are generated text with generated unit vectors, inserted by SQL; what is measured is real text through
the real embedder. PostgresStore (LangGraph) puts and searches the same texts in the same PostgreSQL with the
same embedder in this process: no HTTP, no token, no screen, no audit. It is measured when bench/peers.txt
is installed. Absolute times of a shared machine mean little; compare columns.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psycopg
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench.filler import PEOPLE, fill, pool, sentence  # noqa: E402
from layers.model.build import ensure  # noqa: E402
from local.postgres import OWNER  # noqa: E402
from local.system import System, running_system  # noqa: E402
from remembrancer.adapters.embedding import OnnxEmbedder  # noqa: E402

EXISTING = 10_000_000
"""Numbers of the sentences that are there already: none of them is written again."""


class Stack:
    """The local system, running in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.system = System(0, folder)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    async def _run(self) -> None:
        try:
            async with running_system(self.system):
                self._up.set()
                await self._stop.wait()
        except Exception as failure:  # noqa: BLE001 - told in the thread that waits
            self._failure = failure
            self._up.set()

    def start(self) -> None:
        self._thread.start()
        self._up.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def url(self, database: str = "remembrancer") -> str:
        postgres = self.system._postgres
        assert postgres is not None
        return postgres.url(OWNER, database)


@contextmanager
def running_stack() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="rem-latency-") as folder:
        Path(folder).chmod(0o755)
        stack = Stack(Path(folder))
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


def grow(stack: Stack, count: int, vectors: NDArray[np.float32], contract: str) -> None:
    """Bring the team's space to `count` memories."""
    with psycopg.connect(stack.url(), autocommit=True) as connection:
        row = connection.execute("select count(*), min(tenant_id::text) from memory").fetchone()
        assert row is not None
        if row[0] < count:
            fill(connection, UUID(row[1]), vectors, range(EXISTING + row[0], EXISTING + count), contract)


def timed(work: Callable[[int], Any], first: int, times: int) -> list[float]:
    """Milliseconds of each call."""
    found = []
    for number in range(first, first + times):
        began = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - began) * 1000)
    return found


class Client:
    """The API as the demo agent and Robin use it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._http = httpx.Client(base_url=stack.system.url, timeout=60)
        self.waiting: list[tuple[str, str]] = []

    def _call(self, who: str, method: str, path: str, body: Any = None) -> Any:
        headers = {
            "Authorization": f"Bearer {self._stack.system.token(who)}",
            "Content-Type": "application/json",
        }
        reply = self._http.request(
            method, path, content=None if body is None else json.dumps(body), headers=headers
        )
        if reply.status_code not in (200, 201):
            raise RuntimeError(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
        return reply.json()

    def propose(self, number: int) -> None:
        made = self._call("demo-agent", "POST", "/v1/ingest/proposal", {"content": sentence(number)})
        self.waiting.append((made["proposal_id"], ""))

    def look(self) -> None:
        """Read the digests of what waits, outside the measurement."""
        self.waiting = [
            (pid, self._call("robin", "GET", f"/v1/proposals/{pid}")["content_digest"])
            for pid, _ in self.waiting
        ]

    def approve(self, _: int) -> None:
        proposal_id, digest = self.waiting.pop()
        self._call("robin", "POST", f"/v1/proposals/{proposal_id}/approve", {"content_digest": digest})

    def ingest(self, number: int) -> None:
        self._call("demo-agent", "POST", "/v1/ingest", {"content": sentence(number)})

    def recall(self, number: int) -> None:
        self._call(
            "demo-agent", "POST", "/v1/recall", {"query": f"What did {PEOPLE[number % 10]} buy in Oslo?"}
        )


def measure(stack: Stack, client: Client, size: int, times: int) -> dict[str, list[float]]:
    base = 1_000_000 + size * 10
    found = {"proposal": timed(client.propose, base, times)}
    client.look()
    found["approve"] = timed(client.approve, base, times)
    found["ingest"] = timed(client.ingest, base + 5_000, times)
    found["recall"] = timed(client.recall, base, times)
    return found


def measure_postgres_store(
    stack: Stack, embedder: OnnxEmbedder, size: int, times: int, rng: np.random.Generator
) -> dict[str, list[float]]:
    """put and search of LangGraph's PostgresStore in a database of its own on the same server."""
    from langgraph.store.postgres import PostgresStore

    name = f"postgres_store_{size}"
    with psycopg.connect(stack.url("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name}")
    generated = True

    def embed(texts: list[str]) -> list[list[float]]:
        if generated:
            vectors = rng.standard_normal((len(texts), 384))
            return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).tolist()
        return embedder.embed(texts).tolist()

    index: Any = {"dims": 384, "embed": embed, "fields": ["text"]}
    with PostgresStore.from_conn_string(stack.url(name), index=index) as store:
        store.setup()
        for number in range(size):
            store.put(("team",), str(number), {"text": sentence(number)})
        generated = False
        base = 1_000_000 + size * 10
        put = timed(lambda n: store.put(("team",), str(n), {"text": sentence(n)}), base, times)
        search = timed(
            lambda n: store.search(("team",), query=f"What did {PEOPLE[n % 10]} buy in Oslo?", limit=10),
            base,
            times,
        )
    return {"postgresstore_put": put, "postgresstore_search": search}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="1,000 memories only, under a minute")
    parser.add_argument("--json", type=Path, help="write metric name -> milliseconds")
    options = parser.parse_args(arguments)
    sizes, times = ((1_000,), 15) if options.quick else ((1_000, 10_000), 60)
    rng = np.random.default_rng(7)
    embedder = OnnxEmbedder(ensure(), threads=2)
    vectors = pool(embedder)
    peers = importlib.util.find_spec("langgraph") is not None
    metrics: dict[str, float] = {}
    with running_stack() as stack:
        client = Client(stack)
        for warm in (client.propose, client.ingest, client.recall):
            warm(9_000_000)
        client.look()
        client.approve(0)
        print(f"{'operation':24}{'memories':>10}{'p50 ms':>10}{'p95 ms':>10}   ({times} calls each)")
        for size in sizes:
            grow(stack, size, vectors, embedder.contract)
            found = measure(stack, client, size, times)
            if peers:
                found |= measure_postgres_store(stack, embedder, size, times, rng)
            for name, values in found.items():
                p50 = statistics.median(values)
                p95 = statistics.quantiles(values, n=20)[-1]
                metrics |= {f"{name}_p50_ms_{size}": round(p50, 2), f"{name}_p95_ms_{size}": round(p95, 2)}
                print(f"{name:24}{size:>10,}{p50:>10.1f}{p95:>10.1f}", flush=True)
    if not peers:
        print("PostgresStore was not measured: run this in .venv-bench (docs/recall.md)")
    if options.json is not None:
        options.json.write_text(json.dumps(metrics, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
