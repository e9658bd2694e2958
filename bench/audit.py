"""Audit appends a second with 32 writers of one tenant, and rows verified a second.

    python bench/audit.py [--quick] [--json FILE]

Each writer is a connection of its own as the database role of `ingest`, under row level security: it takes its
token of the rate, resolves the principal, writes a row, appends to the chain and commits to the disk, as a request
does. Verifying reads the chain as `audit` does and hashes every row in Python.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench.tenant import Tenant, agent, auditor, tenant  # noqa: E402
from remembrancer.domain.audit import GENESIS, Verification, verify  # noqa: E402
from remembrancer.store import audit_log  # noqa: E402
from remembrancer.store.database import Unit  # noqa: E402

WRITERS = 32


def write(unit: Unit) -> None:
    """A small change and its row of the chain."""
    unit.alert("bench", "bench")
    unit.audit(
        "memory_admitted", "mem_" + "0" * 32, source="structured", verdict="clean", correlation_id="0" * 36
    )


def append(made: Tenant, seconds: float) -> float:
    start = threading.Barrier(WRITERS + 1)
    over = threading.Event()

    def work(_: int) -> int:
        services = made.services("rem_ingest")
        services.database.write(agent(), write)  # connected, and warm
        start.wait()
        count = 0
        while not over.is_set():
            services.database.write(agent(), write)
            count += 1
        services.database.close()
        return count

    with ThreadPoolExecutor(WRITERS) as pool:
        counts = [pool.submit(work, n) for n in range(WRITERS)]
        start.wait()
        began = time.perf_counter()
        time.sleep(seconds)
        over.set()
        total = sum(one.result() for one in counts)
        return total / (time.perf_counter() - began)


def check(made: Tenant) -> tuple[int, float]:
    def read(unit: Unit) -> Verification:
        head = audit_log.head(unit)
        return verify(audit_log.rows_between(unit, GENESIS.seq, head), tenant=unit.tenant_id, head=head)

    services = made.services("rem_audit")
    began = time.perf_counter()
    outcome = services.database.read(auditor(), read)
    took = time.perf_counter() - began
    services.database.close()
    if not outcome.intact:
        raise SystemExit(f"the chain is broken: {outcome.faults}")
    return outcome.rows, outcome.rows / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="3 seconds in place of 20")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tenant() as made:
        rate = append(made, 3 if options.quick else 20)
        rows, verified = check(made)
    measured: dict[str, Any] = {
        "writers": WRITERS,
        "appends_per_s": round(rate),
        "chain_rows": rows,
        "verify_rows_per_s": round(verified),
    }
    print(json.dumps(measured, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
