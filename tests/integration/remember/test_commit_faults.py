"""A commit that dies at any statement leaves nothing, and succeeds when it is tried again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from remembrancer.api import wiring
from remembrancer.domain.assessment import Register
from remembrancer.domain.problems import Problem
from remembrancer.flows.remember_commit import Work, commit
from remembrancer.store.database import Database
from tests.integration.probe import call_of, changed, counts, erase_of
from tests.integration.remember.desk import Desk, accept, assessment_request, evidence, relation, request_of
from tests.integration.remember.near import Near
from tests.integration.world import AGENT, AUDITOR, OTHER_AGENT, REVIEWER, SECOND_REVIEWER, Person

ROLE = "rem_remember_commit"
WAYS = ("raise", "kill")


@dataclass
class Dying:
    """A connection whose transaction ends after so many statements: by an exception, or by the backend's death."""

    desk: Desk
    way: str
    after: int
    seen: int = 0

    def step(self, connection: Any) -> None:
        self.seen += 1
        if self.seen == self.after:
            if self.way == "raise":
                raise RuntimeError("the process is gone")
            with self.desk.world.database.superuser() as other:
                other.execute("select pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])

    @contextmanager
    def database(self) -> Iterator[Database]:
        dying = self

        class Cursor(psycopg.Cursor[Any]):
            def execute(self, *args: Any, **kwargs: Any) -> Any:
                done = super().execute(*args, **kwargs)
                dying.step(self.connection)
                return done

            def executemany(self, *args: Any, **kwargs: Any) -> Any:
                super().executemany(*args, **kwargs)
                dying.step(self.connection)

        def connect() -> Any:
            return psycopg.connect(
                self.desk.world.database.url(ROLE),
                autocommit=True,
                prepare_threshold=None,
                row_factory=dict_row,
                cursor_factory=Cursor,
            )

        database = Database(connect, wiring.new_id)
        try:
            yield database
        finally:
            database.close()


def everything(desk: Desk) -> Work:
    """A batch that touches every table of the commit: new, repeated, reused and superseding evidence, a revision, a
    correction, a succession, a conflict, a new predicate under another name, a value."""
    start = "2019-01-01T00:00:00Z"
    desk.embedder = Near()
    old = desk.remember(
        [
            evidence("Ada works at Acme.", source_key="doc", source_revision="1"),
            evidence("Ada lives in Rome.", force_insert=True),
            evidence("Ada likes tea.", force_insert=True),
        ],
        [
            relation("Ada", "works_at", "Acme", valid_from=start),
            relation("Ada", "lives_in", "Rome", cites=(1,)),
            relation("Ada", "likes", "Tea", cites=(2,)),
        ],
    )
    desk.tell("Bob", "works_at", "Acme", OTHER_AGENT, valid_from=start)
    split = old["relationships"][1]["splits"][0]
    replaced = old["evidence"][2]["evidence_id"]
    request = request_of(
        [
            evidence(
                "Ada works at Globex.", source_key="doc", source_revision="2", previous_source_revision="1"
            ),
            evidence("Ada is fond of cake.", supersedes_evidence_ids=[replaced]),
            evidence("Ada is fond of cake."),
            evidence("Ada dwells in Paris.", data_subjects=["ada"]),
            evidence("Bob works at Globex.", force_insert=True),
        ],
        [
            relation("Ada", "works_at", "Globex", valid_from="2024-01-01T00:00:00Z"),
            relation("Ada", "enjoys", "Cake", cites=(1, 2), known_evidence_ids=[replaced]),
            relation(
                "Ada",
                "lives_in",
                "Paris",
                cites=(3,),
                correction_target={"relationship_id": split["relationship_id"], "expected_version": 1},
            ),
            relation("Bob", "works_at", "Globex", cites=(4,), valid_from="2020-01-01T00:00:00Z"),
            relation("Bob", "has_age", {"type": "number", "value": 7, "unit": "years"}, cites=(4,)),
            relation("Ada", "likes", "Tea", cites=(4,), polarity="-"),
        ],
    )
    work = desk.prepare(request)
    asked = assessment_request(work.request, work.context)
    given = accept(asked)
    semantic = replace(given.evidence[3], duplicate=asked.evidence[3].duplicates[0].ref)
    return replace(
        work, assessment=replace(given, evidence=(*given.evidence[:3], semantic, given.evidence[4]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_statement_is_the_last_one(desk: Desk, way: str) -> None:
    work = everything(desk)
    before = counts(desk.world)
    for statements in range(1, 200):
        with Dying(desk, way, statements).database() as database:
            try:
                desk.commit(work, database=database)
            except (RuntimeError, Problem) as error:
                assert str(error) in ("the process is gone", "database_failure", "database_resuming")
                assert changed(before, counts(desk.world)) == {}, statements
            else:
                break  # the commit has fewer statements than that
    assert statements > 30
    after = changed(before, counts(desk.world))
    assert {"memory": 3, "submission": 5, "occurrence": 5, "conflict": 2}.items() <= after.items(), after
    assert {"relationship", "support", "predicate", "entity", "mention"} <= after.keys()
    assert desk.world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_what_a_full_batch_leaves(desk: Desk) -> None:
    document = desk.commit(everything(desk)).document
    assert [item["disposition"] for item in document["evidence"]] == [
        "stored", "stored", "reused", "reused", "stored",
    ]  # fmt: skip
    assert [item["reason"] for item in document["evidence"]][2:4] == ["exact_duplicate", "semantic_duplicate"]
    assert sorted(w["reason"] for w in document["warnings"]) == ["opposite_polarity", "other_object"]
    assert [r["disposition"] for r in document["relationships"]] == ["stored"] * 6
    assert document["relationships"][2]["splits"][0]["version"] == 2


def persist(work: Callable[[], object], done: str) -> str:
    """As a caller does: what may be tried again is tried again (a busy machine makes some wait too long)."""
    for _ in range(20):
        try:
            work()
        except Problem as problem:
            if not problem.entry.retryable:
                return problem.code
        else:
            return done
    return "given up"


@pytest.mark.slow
def test_fifty_at_once(desk: Desk) -> None:
    """Overlapping evidence, names and rivals, in opposite orders, against erasures: whoever loses is told so by a code
    of the contract, and nothing deadlocks."""
    people = (AGENT, OTHER_AGENT, REVIEWER, SECOND_REVIEWER)
    texts = [f"Shared text number {n}." for n in range(4)]
    for person in people:
        desk.remember([evidence("Ada works at Acme.")], [relation("Ada", "works_at", "Acme")], person=person)
    barrier = threading.Barrier(50)
    one_purge = threading.Lock()  # the function has one connection

    def remember(number: int) -> str:
        person: Person = people[number % len(people)]
        mine = Desk(desk.world, desk.embedder)
        try:
            names = ["Ada", "Bob", "Cem", "Dia"]
            order = names[number % 4 :] + names[: number % 4]
            request = request_of(
                [evidence(texts[(number + k) % 4]) for k in range(3)],
                [
                    relation(name, "works_at", ("Acme", "Globex", "Initech")[number % 3], cites=(k % 3,))
                    for k, name in enumerate(order)
                ],
            )
            barrier.wait(60)
            return persist(lambda: mine.commit(mine.prepare(request, person), person), "completed")
        finally:
            mine.close()

    def erase(number: int) -> str:
        barrier.wait(60)
        rows = desk.world.sql("select memory_id from memory order by memory_id limit 2")
        ids = [f"mem_{row['memory_id'].hex}" for row in rows]
        with one_purge:
            return persist(lambda: erase_of(desk.world, memory_ids=ids), "erased")

    with ThreadPoolExecutor(50) as pool:
        told = list(pool.map(lambda n: erase(n) if n % 10 == 9 else remember(n), range(50)))
    # An erasure raises the generation: who prepared before it comes again. What was reused may be gone for good.
    assert set(told) <= {"completed", "erased", "stale_input"}, told
    assert told.count("completed") >= 40 and told.count("erased") == 5, told
    assert desk.world.sql("select deadlocks from pg_stat_database where datname = current_database()") == [
        {"deadlocks": 0}
    ]
    # The same text of one owner is one memory; a name is one entity; one employer at a time and owner.
    assert desk.world.sql("select owner_id, content from memory group by 1, 2 having count(*) > 1") == []
    assert (
        desk.world.sql("select name_key from entity_name where canonical group by 1 having count(*) > 1")
        == []
    )
    assert (
        desk.world.sql(
            """
        select r.owner_id, r.subject_id from relationship r
        join relationship o on o.owner_id = r.owner_id and o.subject_id = r.subject_id
          and o.relationship_id > r.relationship_id and o.superseded_at is null
          and coalesce(o.valid_from, '-infinity') < coalesce(r.valid_to, 'infinity')
          and coalesce(r.valid_from, '-infinity') < coalesce(o.valid_to, 'infinity')
        where r.superseded_at is null
        """
        )
        == []
    )
    assert desk.world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True


def test_who_waited_closes_nothing_before_it_was_opened(desk: Desk) -> None:
    """A transaction that began first and came second: its decision is later than what it found."""
    globex = desk.prepare(request_of([evidence("At Globex.")], [relation("Ada", "works_at", "Globex")]))
    credential = call_of(AGENT, "remember").credential

    def late(unit: Any) -> Any:
        other = Desk(desk.world, desk.embedder)
        other.tell("Ada", "works_at", "Acme")
        other.close()
        return commit(unit, globex)

    desk.database(ROLE).write(credential, late)
    rows = desk.world.sql("select created_at, superseded_at, valid_from, valid_to from relationship")
    assert len(rows) == 3
    assert all(row["superseded_at"] is None or row["superseded_at"] > row["created_at"] for row in rows)


def test_a_predicate_that_another_path_is_just_registering(desk: Desk) -> None:
    """It takes no lock for that: ours waits for its row, and is told that it is another predicate now."""
    work = desk.prepare(request_of([evidence("Ada works at Acme.")], [relation("Ada", "works_at", "Acme")]))
    with desk.world.database.superuser() as other, ThreadPoolExecutor(1) as pool:
        with other.transaction():
            other.execute(
                "insert into predicate (tenant_id, space_id, predicate_key, kind, cardinality, created_at)"
                " select tenant_id, space_id, 'works_at', 'state', 'many', now() from space where kind = 'team_shared'"
            )
            waiting = pool.submit(desk.commit, work)
            while not other.execute("select from pg_stat_activity where wait_event_type = 'Lock'").fetchall():
                assert not waiting.done(), waiting.exception() or waiting.result()
                other.execute("select pg_stat_clear_snapshot()")  # a transaction sees its first look again
                time.sleep(0.01)
        with pytest.raises(Problem) as caught:
            waiting.result(30)
    assert caught.value.code == "commit_conflict"
    with pytest.raises(Problem) as caught:
        desk.commit(work)
    assert caught.value.code == "stale_input"
    assert desk.world.sql("select count(*) as n from memory") == [{"n": 0}]


@pytest.mark.slow
def test_the_largest_batch(desk: Desk) -> None:
    """20 items, 200 relationships, 50 splits of one: within the limit of a commit, alone in its space."""
    items = [evidence(f"Item {n} says much of many. " * 30) for n in range(20)]
    relations = [
        relation(f"Person {n % 50}", f"knows_{n % 7}", f"Thing {n}", cites=(n % 20,), ref=f"r{n}")
        for n in range(200)
    ]
    work = desk.prepare(request_of(items, relations))
    many = [
        replace(work.assessment.proposals[0].splits[0], predicate=Register(f"p_{n}", "state", "many"))
        for n in range(50)
    ]
    first = replace(work.assessment.proposals[0], splits=tuple(many))
    work = replace(
        work, assessment=replace(work.assessment, proposals=(first, *work.assessment.proposals[1:]))
    )
    began = time.monotonic()
    document = desk.commit(work).document
    print(f"{time.monotonic() - began:.2f} s")
    assert len(document["relationships"][0]["splits"]) == 50
    assert desk.world.sql("select count(*) as n from relationship") == [{"n": 249}]
    assert time.monotonic() - began < 10
