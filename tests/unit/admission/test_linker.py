"""Entities and relations are read from text, few and plain rather than many and wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.linker import MAX_ENTITIES, MAX_TRIPLES, Links, link
from remembrancer.domain.names import fold

NOW = datetime(2024, 6, 15, tzinfo=UTC)


def read(text: str, title: str | None = None) -> Links:
    return link(text, title, NOW)


def names(text: str) -> set[str]:
    return {entity.name for entity in read(text).entities}


def triples(text: str, title: str | None = None) -> list[tuple[str, str, str, str]]:
    return [(t.subject, t.predicate, t.object, t.polarity) for t in read(text, title).triples]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# Billing service", "Billing service"),
        ("Setext\n===", "Setext"),
        ("It is **idempotent**.", "idempotent"),
        ("It is *idempotent*.", "idempotent"),
        ("It calls `charge()`.", "charge()"),
        ("See [[Stripe]].", "Stripe"),
        ("See [[Stripe|the payments]].", "Stripe"),
        ("# The **bold** `code` head", "The bold code head"),
        ("| a |\n|---|\n| [[Cell]] |", "Cell"),
        ("- item with **term**", "term"),
    ],
)
def test_marked_terms_are_entities(text: str, name: str) -> None:
    assert name in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n# head\n**bold** [[link]]\n```",
        "    [[indented]]",
        "**one two three four five six seven eight nine**",
        "**...**",
        "2 * 3 * 4",
        "\\*not\\*",
        "[[]] [[ ]] [[|]] [[::]]",
        "",
    ],
)
def test_what_is_no_term_is_no_entity(text: str) -> None:
    assert read(text).entities == ()


def test_an_alias_belongs_to_its_entity() -> None:
    (entity,) = read("[[Stripe|the payments]] and [[STRIPE|payments]] and [[stripe]]").entities
    assert (entity.name, entity.aliases) == ("Stripe", ("the payments", "payments"))


def test_typed_links_are_about_the_nearest_heading_or_the_title() -> None:
    text = "[[part of::Platform]]\n\n# Billing\n\n[[owned-by::Team A]]\n\n## Refunds\n\n[[Uses :: Stripe]]"
    assert triples(text, "Notes") == [
        ("Notes", "part_of", "Platform", "+"),
        ("Billing", "owned_by", "Team A", "+"),
        ("Refunds", "uses", "Stripe", "+"),
    ]


def test_without_a_topic_a_typed_link_is_only_an_entity() -> None:
    assert triples("[[owned by::Team A]]") == [] and names("[[owned by::Team A]]") == {"Team A"}


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("Anna Schmidt works at Acme Corp.", ("Anna Schmidt", "works_at", "Acme Corp", "+")),
        ("Anna is employed by Acme.", ("Anna", "works_at", "Acme", "+")),
        ("Bob doesn't live in Berlin.", ("Bob", "lives_in", "Berlin", "-")),
        ("Kim is the CEO of Acme.", ("Kim", "ceo_of", "Acme", "+")),
        ("Kim is a member of Greenpeace.", ("Kim", "member_of", "Greenpeace", "+")),
        ("Kafka depends on ZooKeeper.", ("Kafka", "depends_on", "ZooKeeper", "+")),
        ("Elena was born in Sofia.", ("Elena", "born_in", "Sofia", "+")),
        ("Acme was founded by Wile Coyote.", ("Acme", "founded_by", "Wile Coyote", "+")),
        ("**Anna** works at [[Acme]].", ("Anna", "works_at", "Acme", "+")),
    ],
)
def test_simple_statements_are_relations(text: str, triple: tuple[str, str, str, str]) -> None:
    assert triples(text) == [triple]


@pytest.mark.parametrize(
    "text",
    [
        "He lives in Rome.",
        "I work at Acme.",
        "My sister works at Acme.",
        "The team uses Kafka.",
        "Anna might work at Globex.",
        "Does Anna work at Globex?",
        "Anna works at a bank.",
        "Anna lived in Rome.",
        "Anna works at Acme and Globex.",
        "Anna no longer works at Acme.",
        "Anna used to live in Rome.",
        "Tom says Anna works at Acme.",
        "Acme owns Acme.",
        "Yesterday Anna worked at Acme.",
    ],
)
def test_what_is_unsure_is_no_relation(text: str) -> None:
    assert triples(text) == []


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Anna works at Acme since 2019.", 2019, None),
        ("Anna no longer works at Acme since 2020.", None, 2020),
        ("Anna works at Acme until 2026.", None, 2026),
    ],
)
def test_the_times_of_a_statement_are_those_of_its_relation(
    text: str, start: int | None, end: int | None
) -> None:
    (triple,) = read(text).triples
    assert triple.polarity == "+"
    assert [at and at.year for at in (triple.valid_from, triple.valid_to)] == [start, end]


def test_the_same_relation_is_kept_once() -> None:
    assert len(triples("Anna works at Acme. ANNA works at ACME.".replace("ANNA", "Anna"))) == 1


def test_the_numbers_are_bounded_and_said_to_be() -> None:
    many = read("# H\n\n" + " ".join(f"[[r{n}::Name {n}]]" for n in range(300)))
    assert len(many.entities) <= MAX_ENTITIES and len(many.triples) <= MAX_TRIPLES and many.truncated
    assert not read("# H").truncated


PIECES = [
    "# h\n",
    "**a**",
    "[[",
    "]]",
    "::",
    "|",
    "`",
    "*",
    "_",
    "Anna",
    " works at ",
    "Acme",
    ". ",
    "\n\n",
    "\x00",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_ends_of_relations_are_entities_and_names_are_distinct(text: str) -> None:
    found = read(text, "Title")
    keys = [fold(entity.name) for entity in found.entities]
    assert len(keys) == len(set(keys)) and all(keys)
    assert {fold(end) for t in found.triples for end in (t.subject, t.object)} <= set(keys)
    assert all(fold(t.subject) != fold(t.object) for t in found.triples)


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    "unit", ["**a** ", "[[a::b]] ", "*a", "[", "[[", "![a](", "<a", "> ", "- ", "Anna is a "]
)
def test_a_megabyte_is_read_in_bounded_time(unit: str) -> None:
    started = time.process_time()
    assert read(unit * (1_000_000 // len(unit))).truncated
    assert time.process_time() - started < 10
