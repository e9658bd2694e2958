"""Domains by centroid, recomputed off the write path; the consistency report; no write touches what all share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.upkeep import handler as upkeep_handler
from tests.integration.admission.conftest import markdown
from tests.integration.probe import scratch_world
from tests.integration.world import ADMIN, AGENT, OTHER_AGENT, REVIEWER, LambdaContext, World, wired

COOKING = [
    "Simmer the tomato sauce for an hour with basil.",
    "Knead the bread dough until it is smooth.",
    "Roast the vegetables with olive oil and garlic.",
    "Whisk the eggs before you fold in the flour.",
]
SAILING = [
    "Reef the mainsail before the wind grows.",
    "The harbour master assigns the berths by radio.",
    "Check the bilge pump before leaving the marina.",
    "Tack when the jib begins to luff.",
]


@pytest.fixture(scope="module")
def world(postgres: Any, embedder: Any, tmp_path_factory: Any) -> Iterator[World]:
    """With the real embedding: where a text lies is what is tested."""
    with scratch_world(postgres, embedder, tmp_path_factory.mktemp("domains")) as made:
        for text in COOKING:
            made.ingest(text, domain="cooking")
        for text in SAILING:
            made.ingest(text, domain="sailing")
        yield made


def upkeep(world: World) -> dict[str, int]:
    with wired(world, "upkeep"):
        return dict(upkeep_handler.handler({}, LambdaContext("upkeep")))


def domain_of(world: World, memory: str) -> str:
    [row] = world.sql("select domain from memory where memory_id = %s", memory.partition("_")[2])
    return str(row["domain"])


def test_a_text_is_filed_by_force_then_by_centroid_else_nowhere_in_particular(world: World) -> None:
    before = world.ingest("Stir the risotto slowly and add the stock.")
    assert domain_of(world, before["memory_id"]) == "global"  # nothing was computed yet
    assert upkeep(world)["centroids"] == 2
    soup = world.ingest("Season the soup with salt, garlic and a little basil.")
    boat = world.ingest("Drop the anchor when the sail is down in the harbour.")
    odd = world.ingest("Version 4.2 of the compiler rejects the flag.")
    forced = world.ingest("Fry the onions in butter until golden.", domain="sailing")
    found = [domain_of(world, m["memory_id"]) for m in (soup, boat, odd, forced)]
    assert found == ["cooking", "sailing", "global", "sailing"]
    # Filed elsewhere by now, and still the same text.
    again = world.ingest("Stir the risotto slowly and add the stock.")
    assert again["duplicate"] and again["memory_id"] == before["memory_id"]
    hits = world.recall("soup with garlic", domains=["cooking"])["hits"]
    assert soup["memory_id"] in [hit["memory_id"] for hit in hits]


def test_private_texts_move_no_centroid_of_the_teams(world: World) -> None:
    upkeep(world)
    team = "select embedding::text as e from centroid c join space s using (tenant_id, space_id)" \
           " where s.kind = 'team_shared' and domain = 'cooking'"  # fmt: skip
    before = world.sql(team)
    body = {"content": "My secret chilli recipe has cocoa.", "domain": "cooking", "target_space": "private"}
    assert world.call(OTHER_AGENT, "POST", "/v1/ingest", body).status == 201
    assert upkeep(world)["centroids"] == 1  # the private one: the team's space is as it was
    assert world.sql(team) == before


def computed(world: World, domain: str) -> set[Any]:
    rows = world.sql(
        "select c.computed_at from centroid c join space s using (tenant_id, space_id)"
        " where s.kind = 'team_shared' and c.domain = %s",
        domain,
    )
    return {row["computed_at"] for row in rows}


def test_centroids_are_computed_again_when_a_twentieth_changed_or_something_was_erased(world: World) -> None:
    birds = [world.ingest(f"Bird {n} nests in tree {n}.", domain="birds")["memory_id"] for n in range(40)]
    upkeep(world)
    first = computed(world, "birds")
    assert len(first) == 1
    for n in range(2):  # a twentieth, and no more
        world.ingest(f"Late bird {n} nests in a hedge.", domain="birds")
    assert upkeep(world)["centroids"] == 0 and computed(world, "birds") == first
    world.ingest("The last bird nests in a chimney.", domain="birds")
    assert upkeep(world)["centroids"] >= 1
    second = computed(world, "birds")
    assert second != first
    # One of many, but its vector is a part of the mean.
    purge = {"memory_ids": [birds[0]], "dry_run": False, "reason": "other"}
    assert world.call(ADMIN, "POST", "/v1/purge", purge, signed=True).status == 200
    upkeep(world)
    assert computed(world, "birds") != second


def test_what_is_said_twice_contradicts_or_looks_alike_is_listed_for_people(world: World) -> None:
    one = world.ingest("The weekly planning meeting takes place on Tuesday morning.")["memory_id"]
    two = world.ingest("The weekly planning meeting takes place every Tuesday morning.")["memory_id"]
    world.ingest("The office has 40 desks.")
    three = world.ingest("The office has 55 desks.")
    world.ingest("x1.", entities=[{"name": "Jonathan Meyer", "kind": "person"}])
    world.ingest("x2.", entities=[{"name": "Jonathan Mayer", "kind": "person"}])
    world.ingest("x3.", entities=[{"name": f"Release {year}", "kind": "product"} for year in (2024, 2025)])
    shown = world.call(REVIEWER, "GET", "/v1/consistency")
    assert shown.status == 200, shown.text
    pairs = {frozenset((p["memory_id"], p["other_id"])): p["cosine"] for p in shown.json["near_duplicates"]}
    assert pairs[frozenset((one, two))] >= 0.9
    assert three["conflict"] is not None
    assert three["memory_id"] in [c["memory_id"] for c in shown.json["open_conflicts"]]
    names = {
        row["entity_id"].hex: row["name"] for row in world.sql("select * from entity_name where canonical")
    }
    alike = [
        {names[e["entity_id"].partition("_")[2]], names[e["other_id"].partition("_")[2]]}
        for e in shown.json["alike_entities"]
    ]
    assert {"Jonathan Meyer", "Jonathan Mayer"} in alike
    assert {"Release 2024", "Release 2025"} not in alike
    assert "planning" not in shown.text and "Jonathan" not in shown.text
    assert world.call(AGENT, "GET", "/v1/consistency").status == 403
    assert upkeep(world)["reports"] == 1
    assert world.sql("select * from outbox where kind = 'consistency_report'")


# Rows that every request shares: the head of the audit chain, and the buckets of rates.
OPERATIONAL = {"audit_head", "rate_bucket"}


def rows_of(world: World) -> dict[str, set[str]]:
    """The place of every row on disk: an update moves it, a delete removes it."""
    tables = world.sql(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"
    )
    return {
        t["relname"]: {row["place"] for row in world.sql(f'select ctid::text as place from "{t["relname"]}"')}
        for t in tables
    }


def test_no_write_changes_a_row_that_others_share(world: World) -> None:
    """Neither a counter nor a statistic: but for OPERATIONAL rows and the request's own key, a write adds."""
    upkeep(world)
    relation = {"subject": "Counter", "predicate": "counts", "object": "Nothing"}
    writes = [
        ("/v1/ingest", {"content": "Counting is slow.", "relations": [relation], "domain": "cooking"}),
        ("/v1/ingest", {"content": "Counting is slow.", "relations": [relation], "domain": "cooking"}),
        ("/v1/ingest/markdown", {"content": "# Count\n\nNo counter.\n", "source_uri": "c.md", "revision": "1"}),
        ("/v1/ingest/memory", {"content": "## [ count ]\nNo counter here.\n"}),
        ("/v1/ingest/ump", {"records": [{"body": {"text": "No counter there."}, "scope": {"visibility": "shared"}}]}),
        ("/v1/ingest/proposal", {"content": "No counter anywhere in proposals."}),
    ]  # fmt: skip
    for number, (path, body) in enumerate(writes):
        before = rows_of(world)
        reply = world.call(AGENT, "POST", path, body, key=f"count-{number}")
        assert reply.status in (200, 201), reply.text
        after = rows_of(world)
        moved = {table for table, places in before.items() if places - after[table]}
        assert moved <= OPERATIONAL | {"idempotency"}, (path, moved)


def test_no_bucket_of_rates_stays_locked_while_a_write_works(world: World) -> None:
    """The tenant's bucket is everybody's: it is taken from in a transaction of its own, before the write's."""
    world.ingest("Buckets are filled apart.")
    [head] = world.sql(
        "select xmin::text::bigint as by from audit_head where tenant_id = %s", world.tenant_id
    )
    buckets = world.sql("select xmin::text::bigint as by from rate_bucket")
    assert len(buckets) >= 2 and all(bucket["by"] < head["by"] for bucket in buckets)


def test_a_new_revision_changes_the_parts_it_retires_and_nothing_else(world: World) -> None:
    markdown(world, "# A\n\nFirst wording.\n", source_uri="r.md", revision="1")
    before = rows_of(world)
    assert markdown(world, "# A\n\nSecond wording.\n", source_uri="r.md", revision="2").status == 201
    after = rows_of(world)
    moved = {table for table, places in before.items() if places - after[table]}
    assert moved <= OPERATIONAL | {"memory_version", "relationship"}


def test_texts_of_one_batch_contradict_and_correct_each_other_as_one_after_the_other(world: World) -> None:
    """What one request brings is compared with itself too, not only with what was there."""
    window = {"subject": "Otto Brandt", "predicate": "rents", "object": "Mill"}
    texts = ["The mill has 12 rooms.", "The mill has 15 rooms.", "Otto Brandt rents the mill."]
    blocks = "".join(f"## [ mill {n} ]\n{text}\n" for n, text in enumerate(texts))
    reply = world.call(AGENT, "POST", "/v1/ingest/memory", {"content": blocks})
    assert reply.status == 201, reply.text
    one, two, _ = (item["memory_id"].partition("_")[2] for item in reply.json["items"])
    rows = world.sql("select memory_id, other_id, reason from conflict where memory_id = %s", two)
    assert [(row["other_id"].hex, row["reason"]) for row in rows] == [(one, "number")]
    relations = [
        {**window, "valid_from": "2020-01-01T00:00:00Z"},
        {**window, "valid_from": "2019-01-01T00:00:00Z"},
        {**window, "valid_from": "2019-01-01T00:00:00Z"},
    ]
    sent = world.call(AGENT, "POST", "/v1/ingest", {"content": "Otto's lease.", "relations": relations})
    assert sent.status == 201, sent.text
    ids = sent.json["relationship_ids"]
    assert len(set(ids)) == 1
    versions = world.sql(
        "select version, valid_from, created_at, superseded_at from relationship where relationship_id = %s"
        " order by version",
        ids[0].partition("_")[2],
    )
    assert [(v["version"], v["valid_from"].year, v["superseded_at"] is None) for v in versions] == [
        (1, 2020, False),
        (2, 2019, True),
    ]
    assert versions[0]["superseded_at"] == versions[1]["created_at"]
