"""Two paths that speak of one statement at the same time, under other names of its ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from remembrancer.flows import remember_commit
from remembrancer.store import graph
from tests.integration.remember.desk import Desk, evidence, relation, request_of
from tests.integration.world import AGENT

DAY = "{}-01-01T00:00:00Z".format
ENDS = [
    {"name": "Ada", "kind": "person", "aliases": ["Augusta"]},
    {"name": "Tea", "kind": "organization", "aliases": ["Chai"]},
]


@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize("first", ["remember", "ingest"])
def test_who_comes_second_finds_what_the_first_wrote(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, first: str, stands: bool
) -> None:
    tea = [{"subject": "Ada", "predicate": "likes", "object": "Tea", "valid_from": DAY(2019)}]
    desk.world.ingest("First.", entities=ENDS, relations=tea if stands else [])
    wrote, done = threading.Event(), threading.Event()
    module, name = {
        "remember": (remember_commit.remember_write, "write_facts"),
        "ingest": (graph, "_write_edges"),
    }[first]
    real = getattr(module, name)

    def slow(*args: Any) -> None:
        real(*args)
        wrote.set()
        done.wait(1)

    work = desk.prepare(
        request_of([evidence("Until 2023.")], [relation("Ada", "likes", "Tea", valid_to=DAY(2023))])
    )
    other = {"subject": "Augusta", "predicate": "likes", "object": "Chai", "valid_from": DAY(2020)}
    answers: dict[str, Any] = {}

    def remember() -> None:
        answers["remember"] = desk.commit(work).document["state"]

    def ingest() -> None:
        body = {"content": "Second.", "relations": [other]}
        answers["ingest"] = desk.world.call(AGENT, "POST", "/v1/ingest", body).status

    calls = [remember, ingest] if first == "remember" else [ingest, remember]
    monkeypatch.setattr(module, name, slow)
    leading = threading.Thread(target=calls[0])
    leading.start()
    assert wrote.wait(5)
    monkeypatch.setattr(module, name, real)
    calls[1]()
    done.set()
    leading.join()
    assert answers == {"remember": "completed", "ingest": 201}
    rows = desk.world.sql("select valid_from, valid_to from relationship where superseded_at is null")
    assert len(rows) == 1, rows
