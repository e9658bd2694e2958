"""What the admission tests share: a bucket in memory, and jobs that run when they are told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from functions.job_step.handler import handler as _job_step  # noqa: F401 - imported before it is wired
from tests.integration.probe import QuickEmbedder, scratch_world
from tests.integration.world import AGENT, LambdaContext, Person, Reply, World, wired


@dataclass
class Bucket:
    """An object store that a test can look into."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, body: bytes, media_type: str) -> None:
        self.objects[key] = body

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)

    def link(self, key: str, seconds: int) -> str:
        return f"https://bucket.test/{key}?for={seconds}"


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    """One tenant for a module: its tests use words of their own."""
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("admission")) as made:
        yield made


@pytest.fixture
def bucket(world: World) -> Iterator[Bucket]:
    """Stands behind every function of the world that writes or links objects."""
    made = Bucket()
    for function in ("job_step", "system", "report", "decay_report", "purge"):
        world._open[function] = replace(world.services(function), objects=made)
    yield made
    for function in ("job_step", "system", "report", "decay_report", "purge"):
        world._open[function] = replace(world.services(function), objects=None)


@pytest.fixture
def run_job(world: World) -> Callable[[str], dict[str, Any]]:
    """Steps a job to its end, as the state machine does; the job as its owner sees it."""

    def run(job_id: str, person: Person = AGENT) -> dict[str, Any]:
        event: dict[str, Any] = {"tenant_id": world.tenant_id, "job_id": _uuid(job_id), "more": True}
        while event["more"]:
            event = {**event, **step(world, event)}
        reply = world.call(person, "GET", f"/v1/jobs/{job_id}")
        assert reply.status == 200, reply.text
        return dict(reply.json)

    return run


def reached(world: World, query: str, **more: Any) -> set[str]:
    """Ids of everything that recall could come to for the query, whether or not it is sure enough to answer."""
    answer = world.recall(query, include=["nearest"], limit=50, **more)
    return {hit["memory_id"] for hit in [*answer["hits"], *answer["nearest"]]}


def step(world: World, event: dict[str, Any]) -> dict[str, Any]:
    from functions.job_step import handler as module

    with wired(world, "job_step"):
        return dict(module.handler(event, LambdaContext("job_step")))


def _uuid(public: str) -> str:
    return public.partition("_")[2]


def markdown(world: World, content: str, person: Person = AGENT, **more: Any) -> Reply:
    return world.call(person, "POST", "/v1/ingest/markdown", {"content": content, **more})
