"""What a recall must not bring, name or be moved by, and what it must show, each of its whole kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from remembrancer.domain import abstention
from remembrancer.domain.sanitize import sanitize_read
from remembrancer.store import search
from tests.integration.recall.conftest import hold, raw
from tests.integration.world import AGENT, READER, World

pytestmark = pytest.mark.usefixtures("answer_always")


def edge(subject: str, predicate: str, target: str, **more: Any) -> list[dict[str, Any]]:
    return [{"subject": subject, "predicate": predicate, "object": target, **more}]


GONE = {
    "held": "insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at)"
    " select tenant_id, gen_random_uuid(), memory_id, space_id, 'incident', now() from memory where memory_id = %s",
    "decayed": "update memory_version set expires_at = now() - interval '1 day' where memory_id = %s",
    "superseded": "update memory_version set superseded_at = now() where memory_id = %s",
    "no longer valid": "update memory_version set valid_to = now() - interval '1 day' where memory_id = %s",
    "evidence without support": "with gone as (delete from support where memory_id = %s returning memory_id)"
    " update memory m set admitted_by = 'remember' from gone where m.memory_id = gone.memory_id",
}


@pytest.mark.parametrize("mode", ["exact", "indexed"])
@pytest.mark.parametrize("how", GONE)
def test_what_may_not_be_shown_moves_nothing(
    world: World, how: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as a bridge of the graph either: what it says of Halcyon and Meridian joins nothing."""
    if mode == "indexed":
        monkeypatch.setattr(search, "EXACT_MAX", 0)
    bridge = world.ingest("They share a budget.", relations=edge("Halcyon", "part_of", "Meridian"))[
        "memory_id"
    ]
    world.ingest("Priya heads the team there.", relations=edge("Priya", "leads", "Meridian"))
    for number in range(3):
        world.ingest(f"Lunch number {number} was soup.")
    before = world.recall("Halcyon", explain=True)
    assert max(hit["explain"]["legs"]["graph"] for hit in before["hits"]) == 1.0
    world.sql(GONE[how], raw(bridge))
    after = world.recall("Halcyon", explain=True, include=["nearest"])
    assert bridge not in json.dumps(after)
    assert after["explain"]["search"]["mode"] == mode
    if mode == "exact":
        # The indexed counts are those of a job.
        assert after["explain"]["search"]["passages"] == before["explain"]["search"]["passages"] - 1
    assert {hit["explain"]["legs"]["graph"] for hit in after["hits"]} == {0.0}


@pytest.mark.parametrize("how", ["held", "decayed", "superseded", "no longer valid"])
def test_a_side_of_a_conflict_that_may_not_be_shown_is_not_named(world: World, how: str) -> None:
    first = world.ingest("The budget of Apollo is 40000 dollars.")["memory_id"]
    second = world.ingest("The budget of Apollo is 55000 dollars.")["memory_id"]
    [conflict] = next(h for h in world.recall("budget of Apollo")["hits"] if h["memory_id"] == first)[
        "conflicts"
    ]
    assert (conflict["memory_id"], conflict["text"]) == (second, "The budget of Apollo is 55000 dollars.")
    world.sql(GONE[how], raw(second))
    after = world.recall("budget of Apollo")
    assert first in json.dumps(after) and second not in json.dumps(after)


def test_a_decayed_side_of_a_conflict_is_named_when_decayed_ones_are_asked_for(world: World) -> None:
    first = world.ingest("The budget of Apollo is 40000 dollars.")["memory_id"]
    second = world.ingest("The budget of Apollo is 55000 dollars.")["memory_id"]
    world.sql(GONE["decayed"], raw(first))
    world.sql(GONE["decayed"], raw(second))
    hits = world.recall("budget of Apollo", include=["decayed"])["hits"]
    sides = {hit["memory_id"]: [side["memory_id"] for side in hit["conflicts"]] for hit in hits}
    assert sides == {first: [second], second: [first]}


def test_evidence_is_brought_by_what_it_supports_in_the_asked_view(world: World) -> None:
    """Of the same sentence in two views: while the statement that rests on it holds, and not before or after."""
    told = world.ingest(
        "Ana sits in the office of Acme.",
        relations=edge(
            "Ana", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z", valid_to="2024-01-01T00:00:00Z"
        ),
    )["memory_id"]
    world.sql("update memory set admitted_by = 'remember'")
    found = {
        at: [hit["memory_id"] for hit in world.recall("office of Acme", **view)["hits"]]
        for at, view in {
            "before": {"at": "2018-12-31T23:59:59Z"},
            "from": {"at": "2019-01-01T00:00:00Z"},
            "until": {"at": "2023-12-31T23:59:59Z"},
            "after": {"at": "2024-01-01T00:00:00Z"},
            "now": {},
            "unknown yet": {"at": "2020-01-01T00:00:00Z", "known_at": "2020-01-01T00:00:00Z"},
        }.items()
    }
    assert found == {"before": [], "from": [told], "until": [told], "after": [], "now": [], "unknown yet": []}


def test_a_contradiction_names_only_memories_that_may_be_shown(world: World) -> None:
    shown = world.ingest("Ana works at Globex.", relations=edge("Ana", "works_at", "Globex"))["memory_id"]
    other = world.ingest("It is Globex where Ana works.", relations=edge("Ana", "works_at", "Globex"))[
        "memory_id"
    ]
    hold(world, other)
    answer = world.call(READER, "POST", "/v1/verify", {"claim": "Ana works at Initech."}).json
    assert answer["contradictions"][0]["memory_ids"] == [shown]


def test_no_relationship_is_shown_under_a_name_that_only_a_held_memory_brought(world: World) -> None:
    """Wherever relationships are shown, of their subject and of their object; by another name when it was told."""
    secret = {"name": "Nightingale", "kind": "person", "aliases": ["Priya"]}
    base = {"name": "Station Nine", "kind": "place", "aliases": ["the annex"]}
    held = world.ingest("Nightingale is Priya, Station Nine the annex.", entities=[secret, base])["memory_id"]
    told = world.ingest(
        "Priya works at the annex.",
        relations=[
            {
                "subject": "Priya",
                "subject_kind": "person",
                "predicate": "works_at",
                "object": "the annex",
                "object_kind": "place",
            }
        ],
    )["memory_id"]

    def shown() -> list[dict[str, Any]]:
        memory = world.call(READER, "GET", f"/v1/memories/{told}").json["relationships"]
        [hit] = [hit for hit in world.recall("Priya annex")["hits"] if hit["memory_id"] == told]
        [listed] = [
            m for m in world.call(READER, "GET", "/v1/memories").json["memories"] if m["memory_id"] == told
        ]
        [found] = world.call(READER, "GET", "/v1/entities?name=Priya").json["entities"]
        entity = world.call(READER, "GET", f"/v1/entities/{found['entity_id']}").json["relationships"]
        path = f"/v1/relationships/{memory[0]['relationship_id']}/history"
        history = world.call(READER, "GET", path).json["versions"]
        claim = world.call(READER, "POST", "/v1/verify", {"claim": "Priya works at Globex."}).json
        opposed = [one["relationship"] for one in claim["contradictions"]]
        return [*memory, *hit["relationships"], *listed["relationships"], *entity, *history, *opposed]

    names = [(one["subject"], one["object"]) for one in shown()]
    assert names == [("Nightingale", "Station Nine")] * 6
    hold(world, held)
    names = [(one["subject"], one["object"]) for one in shown()]
    assert names == [("Priya", "the annex")] * 6


def test_the_relationships_of_a_hit_are_those_of_the_asked_view(world: World) -> None:
    text = "Ana works somewhere with a canteen."
    world.ingest(
        text,
        relations=[
            *edge(
                "Ana", "works_at", "Acme", valid_from="2019-01-01T00:00:00Z", valid_to="2024-01-01T00:00:00Z"
            ),
            *edge("Ana", "works_at", "Globex", valid_from="2024-01-01T00:00:00Z"),
        ],
    )

    def employers(**view: Any) -> set[str]:
        return {
            shown["object"]
            for hit in world.recall("Where does Ana work?", **view)["hits"]
            for shown in hit["relationships"]
        }

    assert employers(at="2020-01-01T00:00:00Z") == {"Acme"}
    assert employers(at="2025-01-01T00:00:00Z") == {"Globex"}
    assert employers() == {"Globex"}


HOSTILE = "[x](http://evil.example) <notes> ``` jo@acme.example"


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings(item)
        case list():
            for item in value:
                yield from strings(item)


def test_every_string_of_an_answer_is_sanitized(world: World) -> None:
    """Whatever a writer may choose: title, author, source, revision, names, values and their units, subjects."""
    names = {"name": f"Ann {HOSTILE}"[:60], "kind": "person"}
    made = world.call(
        AGENT,
        "POST",
        "/v1/ingest",
        {
            "content": f"The tomatoes rest. {HOSTILE}",
            "title": HOSTILE,
            "author": HOSTILE,
            "source_uri": HOSTILE,
            "revision": HOSTILE,
            "observed_at": "2026-01-01T00:00:00Z",
            "data_subjects": ["jo@acme.example"],
            "entities": [names],
            "relations": [
                {
                    "subject": names["name"],
                    "predicate": "weighs",
                    "value": {"type": "number", "value": "3", "unit": HOSTILE[:60]},
                }
            ],
        },
    )
    assert made.status == 201, made.text
    world.ingest(
        "Then the tomatoes are cut.", author=HOSTILE, source_uri=HOSTILE, observed_at="2026-01-02T00:00:00Z"
    )
    answers = [
        world.recall("tomatoes", context=2, explain=True, limit=1),
        world.call(READER, "GET", f"/v1/memories/{made.json['memory_id']}").json,
        world.call(READER, "GET", f"/v1/memories/{made.json['memory_id']}/history").json,
        world.call(READER, "POST", "/v1/verify", {"claim": "The tomatoes rest"}).json,
    ]
    emitted = {text for answer in answers for text in strings(answer)}
    assert {text for text in emitted if sanitize_read(text, reveal_pii=False) != text} == set()


def test_explain_shows_what_narrowed_the_search_and_what_decided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ingest("The parser is released in June.", domain="work")
    asked = {
        "domains": ["work"],
        "kinds": ["fact"],
        "sources": ["structured"],
        "since": "2020-01-01T00:00:00Z",
        "at": "2030-01-01T00:00:00Z",
        "include": ["decayed"],
        "spaces": ["team_shared"],
        "min_relevance": 0.001,
    }
    why = world.recall("parser", explain=True, **asked)["explain"]
    assert why["filters"] == {**asked, "known_at": None, "include": ["decayed"]}
    for least, why in ((0.0, "relevant_enough"), (1.0, "min_relevance")):
        assert world.recall("parser", explain=True, min_relevance=least)["explain"]["decided_by"] == why
    assert world.recall("parser", explain=True, domains=["none"])["explain"]["decided_by"] == "nothing_found"
    monkeypatch.setattr(abstention, "THRESHOLD", 1.0)
    assert world.recall("parser", explain=True)["explain"]["decided_by"] == "threshold"
    plain = world.recall("parser", AGENT, explain=True)["explain"]["filters"]
    assert plain["spaces"] == ["private", "team_shared"] and plain["at"] is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The deploy is allowed on Fridays.", "The deploy is not allowed on Fridays."),
        (
            "The yearly meeting of the whole support team takes place in the large hall of the old harbour in Lisbon"
            " with dinner, music, fireworks, speeches, dancing, games, prizes and much cake afterwards.",
            "The yearly meeting of the whole support team takes place in the large hall of the old harbour in Madrid"
            " with dinner, music, fireworks, speeches, dancing, games, prizes and much cake afterwards.",
        ),
    ],
)
def test_what_says_something_else_is_no_near_duplicate(world: World, one: str, other: str) -> None:
    for text in (one, other):
        world.ingest(text)
    assert {hit["text"] for hit in world.recall(one)["hits"]} == {one, other}


def test_unspaced_scripts_have_phrases_names_and_exclusions(world: World) -> None:
    tea, vase = "我昨天在花园里喝了乌龙茶。", "小猫打破了蓝色花瓶。"
    world.ingest(tea, author="王芳")
    world.ingest(vase, author="李明")
    assert [h["text"] for h in world.recall("你记得“蓝色花瓶”吗")["hits"]] == [vase]
    assert [h["text"] for h in world.recall('你记得"蓝色花瓶"吗')["hits"]] == [vase]
    assert [h["text"] for h in world.recall("「蓝色花瓶」はどこですか")["hits"]] == [vase]
    assert [h["text"] for h in world.recall("花园 花瓶 -乌龙茶")["hits"]] == [vase]
    named = world.recall("王芳昨天喝了什么", explain=True)["hits"]
    assert {h["author"]: h["explain"]["features"]["author_named"] for h in named} == {
        "王芳": 1.0,
        "李明": 0.0,
    }


@pytest.mark.parametrize("left_out", ["fooBar", "foo_bar", "well-known", "cache.py"])
def test_an_identifier_is_left_out_whole(world: World, left_out: str) -> None:
    texts = {
        "Its memory has a foo beside the bar, and a cache, well worn, for every py.",
        "The parser reads fooBar.",
        "The compiler reads foo_bar.",
        "Ada is well-known among us.",
        "The tests begin in cache.py today.",
        "Nobody knows how well it is known.",
    }
    for text in texts:
        world.ingest(text)
    found = {hit["text"] for hit in world.recall(f"parser compiler -{left_out}")["hits"]}
    assert found == {text for text in texts if left_out not in text}
