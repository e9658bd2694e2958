"""The indexed search of large spaces: the same answers as the exact one, and the statistics it needs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain import abstention
from remembrancer.flows.term_stats import recount
from remembrancer.store import search, terms
from remembrancer.store.database import Unit
from tests.integration.world import READER, World

_LINES = (
    "amber basil cedar delta ember fjord grove haven",
    "inlet jade kelp larch maple night ocean pearl",
)
WORDS = [word for line in _LINES for word in line.split()]


@pytest.fixture
def filled(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(abstention, "THRESHOLD", 0.0)
    for number in range(48):
        some = [WORDS[(number * step + step) % len(WORDS)] for step in (1, 3, 5, 7)]
        world.ingest(
            f"Note {number} speaks of {' and '.join(some)}.",
            source_uri="notes",
            observed_at=f"2026-01-01T00:00:{number:02}Z",
            domain="small" if number < 5 else "large",
        )
    return world


def ask(world: World, query: str, **more: Any) -> list[tuple[str, float]]:
    answer = world.recall(query, explain=True, **more)
    return [(hit["memory_id"], hit["explain"]["legs"]["lexical"]) for hit in answer["hits"]]


QUERIES = [
    "amber and pearl",
    "note 7",
    '"amber and cedar"',
    "kelp -ocean",
    'amber -"pearl and cedar"',
    "the of",
]


def test_both_ways_find_the_same(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    recount(filled.services("term_stats"))
    exact = {query: ask(filled, query) for query in QUERIES}
    monkeypatch.setattr(search, "EXACT_MAX", 10)
    for query in QUERIES:
        indexed = ask(filled, query)
        assert {memory for memory, _ in exact[query]} == {memory for memory, _ in indexed}, query
        for (_, one), (_, other) in zip(exact[query], indexed, strict=True):
            assert one == pytest.approx(other, abs=0.6), query


@pytest.mark.parametrize(
    ("holding", "chosen"),
    [([5_000, 0, 300, 0, 1_900], [1, 3, 2]), ([9_000, 0, 5_000], [1, 2]), ([0, 0], [0, 1]), ([], [])],
)
def test_the_rarest_words_bring_the_candidates_and_one_that_is_there(
    holding: list[int], chosen: list[int]
) -> None:
    known = terms.Statistics(10_000, 12.0, holding)
    assert terms.choose(known, len(holding), 2_000) == chosen


@pytest.mark.parametrize("exact_max", [search.EXACT_MAX, 10])
def test_terms_written_out_score_as_those_of_a_list(
    filled: World, monkeypatch: pytest.MonkeyPatch, exact_max: int
) -> None:
    filled.ingest("Amber amber, and a pearl of amber.", target_space="private")
    recount(filled.services("term_stats"))
    monkeypatch.setattr(search, "EXACT_MAX", exact_max)
    written = {query: filled.recall(query, explain=True, limit=20)["hits"] for query in QUERIES}
    assert any(hit["explain"]["legs"]["lexical"] > 0 for hit in written["amber and pearl"])
    monkeypatch.setattr(search, "WRITTEN_OUT", 0)
    for query in QUERIES:
        assert filled.recall(query, explain=True, limit=20)["hits"] == written[query], query


def test_a_small_domain_beside_a_large_one_returns_its_rows(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "EXACT_MAX", 10)
    answer = filled.recall("ocean", domains=["small"], explain=True)
    assert len(answer["hits"]) == 5 and answer["explain"]["search"]["mode"] == "exact"
    large = filled.recall("ocean", domains=["large"], explain=True)
    assert large["explain"]["search"]["mode"] == "indexed" and len(large["hits"]) == 10


def test_a_search_goes_on_past_what_may_not_be_shown(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """pgvector's own limits end it before the 5 that live among 100,000 that were superseded (docs/recall.md)."""
    monkeypatch.setattr(search, "EXACT_MAX", 10)
    limits: list[Any] = []
    rows = Unit.rows

    def watched(unit: Unit, sql: Any, params: Any = None) -> list[Any]:
        if "nearest as materialized" in sql:
            names = (
                "hnsw.max_scan_tuples",
                "hnsw.scan_mem_multiplier",
                "hnsw.iterative_scan",
                "hnsw.ef_search",
            )
            row = unit.row(
                "select array(select current_setting(n) from unnest(%(names)s::text[]) n) as found",
                {"names": [*names]},
            )
            limits.append(row and row["found"])
        return rows(unit, sql, params)

    monkeypatch.setattr(Unit, "rows", watched)
    filled.recall("zebra")
    assert limits == [
        [str(search.MAX_SCANNED), str(search.SCAN_MEMORY), "relaxed_order", str(search.EF_SEARCH)]
    ]


@pytest.mark.parametrize("exact_max", [search.EXACT_MAX, 0])
def test_every_time_view_has_its_own_memories(
    world: World, monkeypatch: pytest.MonkeyPatch, exact_max: int
) -> None:
    monkeypatch.setattr(abstention, "THRESHOLD", 0.0)
    monkeypatch.setattr(search, "EXACT_MAX", exact_max)
    turned = "2024-01-01T00:00:00Z"
    world.ingest("Ana works at Acme.", valid_from="2019-01-01T00:00:00Z", valid_to=turned)
    world.ingest("Ana works at Globex.", valid_from=turned)
    recount(world.services("term_stats"))

    def found(**view: str) -> list[str]:
        return [hit["text"] for hit in world.recall("Where does Ana work?", **view)["hits"]]

    assert found() == ["Ana works at Globex."]
    assert found(at="2020-06-01T00:00:00Z") == ["Ana works at Acme."]
    assert found(at="2025-06-01T00:00:00Z") == ["Ana works at Globex."]
    assert found(at="2018-06-01T00:00:00Z") == []
    assert found(known_at="2020-06-01T00:00:00Z") == []


def test_statistics_are_counted_when_stale_and_know_only_what_is_live(filled: World) -> None:
    services = filled.services("term_stats")
    assert recount(services) == {"spaces": 1, "passages": 48}
    assert recount(services) == {"spaces": 0, "passages": 0}
    filled.ingest("One more note hardly matters.")
    assert recount(services)["spaces"] == 0
    filled.sql(
        "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
        " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory"
        " where domain = 'small'"
    )
    filled.sql("update space set generation = generation + 1")
    assert recount(services)["passages"] == 44


def test_private_terms_are_counted_apart(filled: World) -> None:
    for _ in range(2):
        filled.ingest("heliotrope heliotrope", target_space="private", title=str(_))
    recount(filled.services("term_stats"))
    rows = filled.sql("select space_id, passages from space_stats order by passages")
    assert [row["passages"] for row in rows] == [2, 48]
    shared = filled.sql(
        "select count(*) as n from term_stats a join term_stats b using (tenant_id, term)"
        " where a.space_id <> b.space_id"
    )
    assert shared == [{"n": 0}]


def test_a_look_up_of_terms_brings_nothing_of_another_space(filled: World) -> None:
    filled.ingest("heliotrope", target_space="private")
    rows = filled.sql(
        "select distinct tenant_id, space_id, kind from passage join space using (tenant_id, space_id)"
    )
    tenant = rows[0]["tenant_id"]
    spaces = {row["kind"]: row["space_id"] for row in rows}
    [every] = filled.sql(
        "select array_agg(term) as terms from (select distinct unnest(terms) as term from passage) t"
    )

    def brought(visible: str) -> set[UUID]:
        with filled.database.connect("rem_recall") as connection:
            connection.execute(
                "select set_config('rem.tenant', %s, false)", (str(tenant) if visible else "",)
            )
            connection.execute("select set_config('rem.spaces', %s, false)", (visible,))
            found = connection.execute(
                "select space_id from rem_passages_with(%s, %s)", (list(spaces.values()), every["terms"])
            )
            return {space for (space,) in found}

    # Without the settings of a transaction nobody is anybody.
    assert brought("") == set()
    for space in spaces.values():
        assert brought(str(space)) == {space}
    assert brought(",".join(map(str, spaces.values()))) == set(spaces.values())
    assert filled.recall("ocean", READER)["hits"]
