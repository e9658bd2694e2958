"""Erasure reaches everything that a remember stored, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remembrancer.domain.assessment import Assessment, AssessmentRequest, Register
from tests.integration.probe import changed, counts, erase_of, everywhere
from tests.integration.remember.desk import Desk, evidence, relation, same_as_first
from tests.integration.remember.near import Near
from tests.integration.world import OTHER_AGENT

CANARY = "zq7canary"


def registered(asked: AssessmentRequest, given: Assessment) -> Assessment:
    """Every predicate under another key than the proposed one, as a state of cardinality one."""
    verdicts = [
        replace(v, splits=(replace(v.splits[0], predicate=Register(f"p_{CANARY}_{n}", "state", "one")),))
        for n, v in enumerate(given.proposals)
    ]
    return replace(given, proposals=tuple(verdicts))


def full(text: str) -> dict[str, Any]:
    return evidence(
        text,
        source=f"source {CANARY}",
        source_group=f"group {CANARY}",
        source_key=f"key {CANARY}",
        source_revision=f"revision {CANARY}",
        labels=[f"label {CANARY}"],
        metadata={CANARY: CANARY},
        data_subjects=[f"subject {CANARY}"],
    )


def test_no_byte_of_it_is_left(desk: Desk) -> None:
    desk.tell("Sue", "likes", "Bees")
    before = counts(desk.world)
    done = desk.remember(
        [full(f"Person {CANARY} owns a boat.")],
        [
            relation(f"Person {CANARY}", f"asks_{CANARY}", f"Boat {CANARY}"),
            relation(
                f"Person {CANARY}", f"told_{CANARY}", {"type": "string", "value": CANARY, "unit": CANARY}
            ),
            relation("Sue", f"knows_{CANARY}", f"Person {CANARY}"),
        ],
        decide=registered,
    )
    memory_id = done["evidence"][0]["evidence_id"]
    planted = set(everywhere(desk.world, CANARY))
    assert {
        "memory.content", "submission.source", "submission.source_group", "submission.labels", "submission.metadata",
        "submission.data_subjects", "submission.revision", "evidence_source.source_key", "evidence_source.revision",
        "predicate.predicate_key", "predicate_alias.alias", "entity_name.name", "relationship.value_canonical",
        "relationship.value_original", "relationship.value_unit", "mention.name_key",
    } <= planted, planted  # fmt: skip
    erase_of(desk.world, memory_ids=[memory_id])
    assert everywhere(desk.world, CANARY) == []
    left = changed(before, counts(desk.world))
    assert left.keys() <= {"audit_event", "nonce", "tombstone", "outbox"}, left


def test_a_subject_that_only_a_reuse_names_is_found(desk: Desk) -> None:
    desk.embedder = Near()
    kept = desk.remember([evidence("Sue likes bees.", force_insert=True)], [relation("Sue", "likes", "Bees")])
    first = desk.remember([evidence("Ada likes tea.", force_insert=True)], [relation("Ada", "likes", "Tea")])
    desk.remember([evidence("Ada likes tea.", data_subjects=["Ada L."])], [relation("Ada", "likes", "Tea")])
    again = desk.remember(
        [evidence(f"Ada is fond of {CANARY} tea.")], [relation("Ada", "likes", "Tea")], decide=same_as_first
    )
    assert again["evidence"][0]["evidence_id"] in {
        document["evidence"][0]["evidence_id"] for document in (first, kept)
    }
    erase_of(desk.world, data_subject="ada l.")
    memories = [row["content"] for row in desk.world.sql("select content from memory")]
    assert "Ada likes tea." not in memories and "Sue likes bees." in memories
    assert desk.world.sql("select * from submission where data_subjects <> '{}'") == []


def test_what_others_said_of_the_same_fact_stays(desk: Desk) -> None:
    mine = desk.remember([evidence("Ada likes tea.")], [relation("Ada", "likes", "Tea")])
    also = desk.remember([evidence("Tea for Ada.")], [relation("Ada", "likes", "Tea")])
    desk.remember(
        [evidence("Ada does not like tea.")],
        [relation("Ada", "likes", "Tea", polarity="-")],
        person=OTHER_AGENT,
    )
    [split] = mine["relationships"][0]["splits"]
    erase_of(desk.world, memory_ids=[mine["evidence"][0]["evidence_id"]])
    rows = desk.world.sql("select relationship_id from relationship where polarity = '+'")
    assert [f"rel_{row['relationship_id'].hex}" for row in rows] == [split["relationship_id"]]
    erase_of(desk.world, memory_ids=[also["evidence"][0]["evidence_id"]])
    assert desk.world.sql("select * from relationship where polarity = '+'") == []
    assert desk.world.sql("select * from conflict") == []
