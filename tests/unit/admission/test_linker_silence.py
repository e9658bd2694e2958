"""Texts of which the linker read what they do not say: wrong is worse than silent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from remembrancer.domain.linker import link

NOW = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Everyone but Anna works at Acme.",
        "All except Anna use Redis.",
        "Only Anna works at Acme.",
        "Nobody works at Acme.",
        "No Engineer works at Acme.",
        "Unlike Anna, Bert works at Acme.",
        "Once Anna lives in Rome, Bert leads Zeus.",
        "Few Teams use Redis.",
        "Most Americans use Facebook.",
        "Alpha uses Redis instead of Memcached.",
        "Alpha uses Redis rather than Memcached.",
        "Alpha uses everything except Redis.",
        "Alpha depends on Beta less than Gamma.",
        "Anna works at Acme every summer.",
        '"Anna works at Acme", Bob lied.',
        "“Anna works at Acme”, she claimed.",
        "Example: Anna works at Acme.",
        "~~Anna works at Acme.~~",
        "Alpha uses Redis, I guess.",
        "Anna works at Acme, which is false.",
        "Anna (Acme) leads Zeus.",
        "TODO: Service Alpha depends on Redis.",
    ],
)
def test_what_is_not_stated_is_no_relation(text: str) -> None:
    assert link(text, None, NOW).triples == ()


@pytest.mark.parametrize(
    "text",
    [
        "Anna works at Acme.",
        "Dr. Anna Smith works at Acme.",
        "Note: Anna works at Acme.",
        "He left. Anna works at Acme.",
    ],
)
def test_a_plain_statement_beside_them_is_one(text: str) -> None:
    assert [t.predicate for t in link(text, None, NOW).triples] == ["works_at"]
