"""The bulk path: a folder of Markdown and a file of UMP records through the API, interrupted anywhere, resumed.

At a reduced size, where a few passages make a job; `test_bulk_imports_full.py` has the full size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from remembrancer.flows import ingest, stage, work
from remembrancer.store import jobs
from tests.integration.admission.conftest import markdown, step
from tests.integration.probe import counts, everywhere
from tests.integration.world import AGENT, OTHER_AGENT, Reply, World


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 6 passages are a job, 4 are embedded at a time, a dead worker's lease is over at once."""
    for module in (ingest, stage):
        monkeypatch.setattr(module, "MAX_PASSAGES", 6)
    monkeypatch.setattr(work, "BATCH", 4)
    monkeypatch.setattr(jobs, "LEASE", timedelta(0))


def guide(word: str, first: int, sections: int) -> str:
    numbers = range(first, first + sections)
    return "".join(f"# {word} {n}\n\nThe {word} number {n} is kept in room {n}.\n\n" for n in numbers)


def post(world: World, name: str, text: str) -> Reply:
    """A file of a folder, under a key that its bytes give: sent again, it is answered again."""
    body = {"content": text, "source_uri": name, "revision": hashlib.sha256(text.encode()).hexdigest()}
    key = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()
    return world.call(AGENT, "POST", "/v1/ingest/markdown", body, key=key)


def named(world: World, reply: Reply) -> dict[str, Any]:
    return {"tenant_id": world.tenant_id, "job_id": reply.json["job_id"].partition("_")[2]}


def knowledge(world: World) -> dict[str, int]:
    tables = (
        "memory",
        "passage",
        "occurrence",
        "entity",
        "entity_name",
        "relationship",
        "support",
        "mention",
    )
    return {table: n for table, n in counts(world).items() if table in tables}


def live(world: World, uri: str) -> int:
    [row] = world.sql(
        "select count(*) as n from memory m join memory_version v using (tenant_id, memory_id)"
        " where m.source_uri like %s and v.superseded_at is null",
        uri,
    )
    return int(row["n"])


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], None]]:
    """Arms one function of the store: it does its work, and the worker dies behind it, the nth time."""

    def arm(name: str, times: int = 1) -> None:
        real = getattr(jobs, name)
        left = [times]

        def die(*args: Any, **kwargs: Any) -> Any:
            done = real(*args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return done

        monkeypatch.setattr(jobs, name, die)

    yield arm


STEPS = ("claim", "uncut", "add_passages", "unembedded", "set_vectors", "progress", "renew", "lock", "items",
         "passages", "finish")  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_worker_may_die_behind_any_of_its_steps(
    world: World,
    run_job: Callable[..., dict[str, Any]],
    dying: Callable[[str, int], None],
    name: str,
) -> None:
    reply = markdown(world, guide(f"{name}urn", 0, 11), source_uri=f"die/{name}.md", revision="1")
    assert reply.status == 202, reply.text
    before = knowledge(world)
    dying(name, 1)
    with pytest.raises(Killed):
        step(world, named(world, reply))
    assert knowledge(world) == before
    assert world.call(AGENT, "GET", f"/v1/jobs/{reply.json['job_id']}").json["status"] == "working"
    job = run_job(reply.json["job_id"])
    assert (job["status"], job["done"], job["total"]) == ("done", 11, 11)
    assert len({item["memory_id"] for item in job["result"]["items"]}) == 11
    assert live(world, f"die/{name}.md") == 11
    assert step(world, named(world, reply)) == {"more": False}
    assert knowledge(world)["memory"] == before["memory"] + 11


def test_a_folder_interrupted_between_files_and_inside_one_is_resumed_without_duplicates(
    world: World, run_job: Callable[..., dict[str, Any]], dying: Callable[[str, int], None]
) -> None:
    folder = {f"folder/{n}.md": guide("jar", 100 * n, 4 if n % 2 else 9) for n in range(6)}
    seen: list[int] = []
    for number, (name, text) in enumerate(folder.items()):
        if number == 3:
            break  # the client dies between two files
        reply = post(world, name, text)
        if reply.status == 202 and number == 2:
            dying("set_vectors", 2)
            with pytest.raises(Killed):  # the worker dies in the middle of one
                step(world, named(world, reply))
            shown = world.call(AGENT, "GET", f"/v1/jobs/{reply.json['job_id']}").json
            assert 0 < shown["done"] < shown["total"] == 9
        elif reply.status == 202:
            run_job(reply.json["job_id"])
    for name, text in folder.items():  # the client starts again from the first file
        reply = post(world, name, text)
        assert reply.status in (200, 201, 202), reply.text
        if reply.status == 202:
            seen.append(run_job(reply.json["job_id"])["done"])
    assert seen == [9, 9, 9]
    assert live(world, "folder/%") == 3 * 4 + 3 * 9
    before = knowledge(world)["memory"]
    for name, text in folder.items():  # whoever has no keys left sends it all again: it is known
        again = markdown(world, text, source_uri=name, revision="again")
        items = (run_job(again.json["job_id"])["result"] if again.status == 202 else again.json)["items"]
        assert {item["status"] for item in items} == {"duplicate"}
    assert knowledge(world)["memory"] == before


def test_a_file_of_records_is_published_at_once_with_progress_on_the_way(
    world: World, run_job: Callable[..., dict[str, Any]]
) -> None:
    records = [
        {
            "body": {"text": f"Bowl {n} belongs to guest {n}."},
            "scope": {"visibility": "shared"},
            "created": "2024-05-01T00:00:00Z",
        }
        for n in range(30)
    ]
    reply = world.call(AGENT, "POST", "/v1/ingest/ump", {"records": records + records[:5]})
    assert reply.status == 202, reply.text
    before = knowledge(world)
    event = named(world, reply)
    seen = []
    more = True
    while more:
        tenant, job = (UUID(value) for value in event.values())
        more = work.step(world.services("job_step"), tenant, job, budget=timedelta(0))["more"]
        shown = world.call(AGENT, "GET", f"/v1/jobs/{reply.json['job_id']}").json
        seen.append(shown["done"])
        if shown["status"] == "working":
            assert knowledge(world) == before
    assert seen == sorted(seen) and seen[-1] == 35 and len(set(seen)) > 5
    statuses = [item["status"] for item in shown["result"]["items"]]
    assert statuses == ["stored"] * 30 + ["duplicate"] * 5
    assert knowledge(world)["memory"] == before["memory"] + 30
    assert knowledge(world)["occurrence"] == before["occurrence"] + 35


def test_the_statements_of_a_publication_do_not_grow_with_its_rows(
    world: World, run_job: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from remembrancer.store.database import Unit

    made: list[str] = []
    for name in ("rows", "row", "run"):
        real = getattr(Unit, name)

        def counted(self: Any, sql: Any, params: Any = None, *, real: Any = real) -> Any:
            made.append(sql)
            return real(self, sql, params)

        monkeypatch.setattr(Unit, name, counted)
    monkeypatch.setattr(work, "BATCH", 1_000)
    numbers = []
    for word, size in (("keg", 10), ("vat", 60)):
        reply = markdown(world, guide(word, 0, size))
        made.clear()
        assert run_job(reply.json["job_id"])["status"] == "done"
        numbers.append(len(made))
    assert numbers[0] == numbers[1]


def test_a_failed_job_leaves_no_staged_text(world: World) -> None:
    reply = markdown(world, guide("secretlamp", 0, 11), OTHER_AGENT)
    assert reply.status == 202
    assert set(everywhere(world, "secretlamp 3")) >= {"job_item.body"}
    world.sql("update principal set team_grant = 'read' where name = %s", OTHER_AGENT.name)
    try:
        while step(world, named(world, reply))["more"]:
            pass
    finally:
        world.sql("update principal set team_grant = 'write' where name = %s", OTHER_AGENT.name)
    shown = world.call(OTHER_AGENT, "GET", f"/v1/jobs/{reply.json['job_id']}").json
    assert (shown["status"], shown["failure"]) == ("failed", "forbidden")
    assert everywhere(world, "secretlamp 3") == []
