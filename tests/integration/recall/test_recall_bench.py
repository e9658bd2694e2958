"""What the benchmarks measure with still works: a conversation stored, asked, and asked with its evidence away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench import locomo
from bench.fit_recall import Bench
from bench.locomo import Asked, Conversation, Turn
from local.postgres import MIGRATOR, OWNER
from tests.integration.conftest import Database

BEGINS = datetime(2023, 5, 1, 10, tzinfo=UTC)


@pytest.fixture
def bench(database: Database, embedder: Any) -> Iterator[Bench]:
    said = [
        ("Ana", "Hello Ben, how was your weekend?"),
        ("Ben", "I planted tomatoes in the new garden."),
        ("Ana", "My cat Felix broke the blue vase."),
        ("Ben", ""),
    ]
    turns = [
        Turn(f"D1:{place}", speaker, text, BEGINS + timedelta(seconds=place), 1)
        for place, (speaker, text) in enumerate(said)
    ]
    asked = [Asked("What did Ben plant?", 4, ("D1:1",)), Asked("What did Ana plant?", 5, ())]
    conversation = Conversation(7, turns, asked)
    users = (MIGRATOR, "rem_ingest", "rem_recall")
    owner, ingest, reader = (locomo.services(database.url(user), embedder) for user in users)
    locomo.store(owner, ingest, conversation)
    yield Bench(reader, embedder, database.url(OWNER), [conversation])
    for services in (owner, ingest, reader):
        services.database.close()


def test_a_question_is_ranked_with_its_evidence_and_without(bench: Bench) -> None:
    [conversation] = bench.conversations
    [asked] = conversation.answerable
    found = bench.case(conversation, asked)
    assert found.gold == {conversation.ids["D1:1"]}
    assert found.order[0] == conversation.ids["D1:1"] and len(found.order) == 4
    [removed] = bench.removed(conversation, [asked])
    assert removed.gold == frozenset() and found.order[0] not in removed.order
    assert removed.ranked.found.passages == found.ranked.found.passages - 1
    # What was away is back.
    assert bench.case(conversation, asked).order == found.order
    [swapped] = conversation.adversarial
    assert bench.case(conversation, swapped, answerable=False).gold == frozenset()
