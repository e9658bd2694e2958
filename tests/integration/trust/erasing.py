"""What the tests of erasure share: signed requests, works at the same time, and the worker of long erasures."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

from remembrancer.domain.problems import Problem
from remembrancer.flows import erase_work
from tests.integration.admission.conftest import Bucket
from tests.integration.world import ADMIN, Reply, World

ORPHANS = """
select 'entity' as t, count(*) as n from entity e
  where not exists (select from entity_name n where (n.tenant_id, n.entity_id) = (e.tenant_id, e.entity_id))
union all select 'entity_name', count(*) from entity_name n
  where not exists (select from mention m where (m.tenant_id, m.entity_id, m.name_key)
                    = (n.tenant_id, n.entity_id, n.name_key))
union all select 'relationship', count(*) from relationship r
  where not exists (select from support s where (s.tenant_id, s.relationship_id, s.version)
                    = (r.tenant_id, r.relationship_id, r.version))
"""


def no_orphans(world: World) -> bool:
    return not [row for row in world.sql(ORPHANS) if row["n"]]


def purge(world: World, *, key: str | None = None, **body: Any) -> Reply:
    asked = {"dry_run": False, "reason": "data_subject_request", **body}
    return world.call(ADMIN, "POST", "/v1/purge", asked, signed=True, key=key)


def done(reply: Reply, status: int = 200) -> Any:
    assert reply.status == status, reply.text
    return reply.json


def dsar(world: World, *, key: str | None = None, **body: Any) -> Reply:
    asked = {"action": "export", "jurisdiction": "gdpr", "dry_run": False, **body}
    return world.call(ADMIN, "POST", "/v1/dsar", asked, signed=True, key=key)


def with_bucket(world: World) -> Bucket:
    """Stands behind every function of the world that writes, links or removes objects."""
    bucket = Bucket()
    for function in ("erase_step", "job_step", "system", "report", "purge"):
        world._open[function] = replace(world.services(function), objects=bucket)
    return bucket


def work(world: World, job_id: str | None = None, **options: Any) -> int:
    """Steps that job to its end, or whatever waits, as the state machine does; how many steps."""
    job = None if job_id is None else UUID(job_id.partition("_")[2])
    steps = 0
    more = True
    while more:
        more = erase_work.step(world.services("erase_step"), UUID(world.tenant_id), job, **options)["more"]
        steps += 1
    return steps


def opened(body: bytes) -> tuple[dict[str, Any], str]:
    """The two files of a bundle."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.namelist() == ["data.json", "readable.html"]
        return json.loads(archive.read("data.json")), archive.read("readable.html").decode()


def race(world: World, *works: Callable[[World], Any]) -> list[Any]:
    """Each work at the same time on connections of its own; a Problem is an outcome."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[World], Any]) -> Any:
        own = replace(world, _open={})
        try:
            start.wait()
            return work(own)
        except Problem as problem:
            return problem.code
        finally:
            own.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
