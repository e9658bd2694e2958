"""The bulk path at its full size: a folder of 2,000 parts, a file of 5,000 records, each interrupted on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from remembrancer.store import jobs
from tests.integration.admission.conftest import markdown, step
from tests.integration.world import AGENT, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FILES, PARTS, RECORDS = 10, 200, 5_000


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture
def interrupted(
    world: World, run_job: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    """Steps a job whose worker dies in the middle of the embedding and again in the middle of the publication."""
    monkeypatch.setattr(jobs, "LEASE", timedelta(0))

    def run(job_id: str) -> dict[str, Any]:
        event = {"tenant_id": world.tenant_id, "job_id": job_id.partition("_")[2]}
        done = []
        for name, times in (("set_vectors", 2), ("finish", 1)):
            real = getattr(jobs, name)
            left = [times]

            def die(*args: Any, real: Any = real, left: list[int] = left, **kwargs: Any) -> None:
                real(*args, **kwargs)
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

            monkeypatch.setattr(jobs, name, die)
            with pytest.raises(Killed):
                while step(world, event)["more"]:
                    pass
            monkeypatch.setattr(jobs, name, real)
            done.append(world.call(AGENT, "GET", f"/v1/jobs/{job_id}").json["done"])
        job = run_job(job_id)
        assert done == sorted(done) and 0 < done[0] < job["total"] == job["done"]
        assert job["status"] == "done"
        return job

    return run


def memories(world: World, source: str) -> int:
    [row] = world.sql("select count(*) as n from memory where source = %s", source)
    return int(row["n"])


def test_a_folder_of_two_thousand_parts(world: World, interrupted: Callable[[str], dict[str, Any]]) -> None:
    began = time.perf_counter()
    for number in range(FILES):
        sections = (
            f"# Part {number}-{n}\n\nCrate {number}-{n} stands in hall {n}.\n\n" for n in range(PARTS)
        )
        reply = markdown(world, "".join(sections), source_uri=f"hall/{number}.md", revision="1")
        assert reply.status == 202, reply.text
        job = interrupted(reply.json["job_id"])
        assert len({item["memory_id"] for item in job["result"]["items"]}) == PARTS
    assert memories(world, "markdown") == FILES * PARTS
    print(f"{FILES * PARTS} parts in {time.perf_counter() - began:.1f} s, two interruptions a file")


@pytest.mark.skipif("REM_FULL" not in os.environ, reason="takes minutes: REM_FULL=1 runs it")
def test_a_file_of_five_thousand_records(world: World, interrupted: Callable[[str], dict[str, Any]]) -> None:
    records = [
        {"body": {"text": f"Barrel {n} was filled by cooper {n % 17}."}, "scope": {"visibility": "shared"}}
        for n in range(RECORDS)
    ]
    began = time.perf_counter()
    reply = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records})
    staged = time.perf_counter() - began
    assert reply.status == 202, reply.text
    job = interrupted(reply.json["job_id"])
    assert [item["status"] for item in job["result"]["items"]] == ["stored"] * RECORDS
    assert memories(world, "ump") == RECORDS
    print(f"{RECORDS} records in {time.perf_counter() - began:.1f} s, of which staged in {staged:.1f} s")
