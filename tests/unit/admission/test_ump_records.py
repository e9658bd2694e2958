"""UMP records come in as claims, go out complete, and come in again as they were."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.requests import IngestRequest
from remembrancer.domain.ump import UmpRecordError, from_ump, to_ump, ump_id

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record(**changes: Any) -> dict[str, Any]:
    """A complete record of version 1.0."""
    base: dict[str, Any] = {
        "ump": "1.0",
        "id": "urn:ump:abcdefgh",
        "kind": "semantic",
        "body": {"text": "Dave works at Acme.", "structured": {"title": "dave", "domain": "people"}},
        "scope": {"owner": "did:key:z6Mk", "visibility": "private"},
        "time": {
            "created": "2025-06-01T10:00:00Z",
            "observed": "2025-06-01T12:00:00.000001+02:00",
            "valid_from": "2021-01-01T00:00:00Z",
        },
        "lifecycle": {"confidence": 0.8, "salience": 0.5, "decay": "2027-01-01T00:00:00Z"},
        "provenance": {"actor": "agent"},
    }
    return base | changes


def test_every_field_finds_its_place() -> None:
    read = from_ump(record(), NOW)
    assert read.request == IngestRequest(
        content="Dave works at Acme.",
        title="dave",
        kind="fact",
        domain="people",
        source="ump",
        observed_at=datetime(2025, 6, 1, 10, 0, 0, 1, tzinfo=UTC),
        valid_from=datetime(2021, 1, 1, tzinfo=UTC),
        expires_at=datetime(2027, 1, 1, tzinfo=UTC),
        target_space="private",
    )
    assert read.claimed == {
        "id": "urn:ump:abcdefgh",
        "owner": "did:key:z6Mk",
        "kind": "semantic",
        "created": "2025-06-01T10:00:00Z",
        "confidence": 0.8,
        "salience": 0.5,
        "provenance": {"actor": "agent"},
    }
    assert set(read.notes) == {"id_recomputed", "owner_ignored"}


def test_the_id_is_that_of_the_content_whatever_the_record_says() -> None:
    read = from_ump(record(), NOW)
    assert read.ump_id == ump_id("people", "Dave works at Acme.") != "urn:ump:abcdefgh"
    assert from_ump(record(id=read.ump_id), NOW).notes == ("owner_ignored",)
    assert from_ump(record(), NOW, domain="other").ump_id == ump_id("other", "Dave works at Acme.")


def test_the_id_separates_domain_and_content_and_is_a_valid_urn() -> None:
    assert ump_id("a", "bc") != ump_id("ab", "c")
    assert set(ump_id("a", "b").removeprefix("urn:ump:")) <= set("abcdefghijklmnopqrstuvwxyz234567")


@pytest.mark.parametrize(
    ("version", "kind", "ours"),
    [
        ("1.0", "semantic", "fact"),
        ("1.0", "episodic", "episodic"),
        ("1.0", "procedural", "procedure"),
        ("1.0", "working", "episodic"),
        ("1.0", "identity", "fact"),
        ("0.1", "declarative", "decision"),
    ],
)
def test_kinds(version: str, kind: str, ours: str) -> None:
    assert from_ump(record(ump=version, kind=kind), NOW).request.kind == ours


@pytest.mark.parametrize(
    ("kind", "raw", "ours"),
    [
        ("procedural", "step", "step"),
        ("semantic", "decision", "decision"),
        ("semantic", "episodic", "fact"),
        ("semantic", "nonsense", "fact"),
    ],
)
def test_a_raw_kind_is_believed_only_where_it_agrees(kind: str, raw: str, ours: str) -> None:
    body = {"text": "x", "structured": {"raw_kind": raw}}
    assert from_ump(record(kind=kind, body=body), NOW).request.kind == ours


@pytest.mark.parametrize(
    ("scope", "space"),
    [
        ({"visibility": "private"}, "private"),
        ({"visibility": "shared"}, "team_shared"),
        ({"visibility": "public"}, "team_shared"),
        ({}, "private"),
    ],
)
def test_silence_does_not_publish(scope: dict[str, Any], space: str) -> None:
    assert from_ump(record(scope=scope), NOW).request.target_space == space


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"ump": "2.0"}, "unsupported_version", "/ump"),
        ({"ump": 1}, "unsupported_version", "/ump"),
        ({"kind": "gossip"}, "unknown_kind", "/kind"),
        ({"kind": "declarative"}, "unknown_kind", "/kind"),
        ({"kind": ["semantic"]}, "unknown_kind", "/kind"),
        ({"body": None}, "missing", "/body"),
        ({"body": "text"}, "wrong_type", "/body"),
        ({"body": {}}, "missing", "/body/text"),
        ({"body": {"text": 5}}, "wrong_type", "/body/text"),
        ({"body": {"text": " \n"}}, "invalid", "/body/text"),
        ({"body": {"text": "\ud800"}}, "invalid", "/body/text"),
        ({"body": {"text": "x", "structured": []}}, "wrong_type", "/body/structured"),
        ({"body": {"text": "x", "structured": {"title": "t" * 501}}}, "invalid", "/body/structured/title"),
        ({"body": {"text": "x", "structured": {"domain": "NO GOOD"}}}, "invalid", "/body/structured/domain"),
        (
            {"body": {"text": "x", "structured": {"entities": [{}] * 201}}},
            "invalid",
            "/body/structured/entities",
        ),
        (
            {"body": {"text": "x", "structured": {"relations": [{}] * 201}}},
            "invalid",
            "/body/structured/relations",
        ),
        (
            {"body": {"text": "x", "structured": {"relations": "x"}}},
            "wrong_type",
            "/body/structured/relations",
        ),
        ({"scope": {"visibility": "world"}}, "unknown_visibility", "/scope/visibility"),
        ({"scope": {"visibility": 1}}, "unknown_visibility", "/scope/visibility"),
        ({"time": {"observed": "yesterday"}}, "invalid_time", "/time/observed"),
        ({"time": {"observed": "2025-01-01 10:00:00"}}, "invalid_time", "/time/observed"),
        ({"time": {"observed": 5}}, "wrong_type", "/time/observed"),
        ({"time": {"observed": "0001-01-01T00:00:00+14:00"}}, "invalid_time", "/time/observed"),
        ({"time": {"created": "2026-01-01T00:06:00Z"}}, "time_in_future", "/time/created"),
        ({"time": {"observed": "2030-01-01T00:00:00Z"}}, "time_in_future", "/time/observed"),
        (
            {"time": {"valid_from": "2025-01-01T00:00:00Z", "valid_to": "2024-01-01T00:00:00Z"}},
            "invalid",
            "/time",
        ),
        ({"lifecycle": {"status": "tombstoned"}}, "tombstoned", "/lifecycle/status"),
        ({"lifecycle": {"status": "candidate"}}, "not_active", "/lifecycle/status"),
        ({"lifecycle": {"status": ["active"]}}, "not_active", "/lifecycle/status"),
        ({"superseded_by": ["urn:ump:x"]}, "superseded", "/superseded_by"),
        ({"lifecycle": {"decay": 10**30}}, "invalid_time", "/lifecycle/decay"),
        ({"lifecycle": []}, "wrong_type", "/lifecycle"),
    ],
)
def test_a_bad_record_is_refused_with_its_place(change: dict[str, Any], code: str, pointer: str) -> None:
    with pytest.raises(UmpRecordError) as refused:
        from_ump(record(**change), NOW)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_what_is_no_object_is_no_record(value: Any) -> None:
    with pytest.raises(UmpRecordError, match="not_an_object"):
        from_ump(value, NOW)


def test_the_error_never_holds_the_value() -> None:
    with pytest.raises(UmpRecordError) as refused:
        from_ump(record(kind="my-secret"), NOW)
    assert "my-secret" not in str(refused.value)


def test_a_clock_slightly_ahead_is_forgiven() -> None:
    late = (NOW + timedelta(minutes=4)).isoformat()
    assert from_ump(record(time={"observed": late}), NOW).request.observed_at == NOW + timedelta(minutes=4)


@pytest.mark.parametrize("decay", [86_400, 0, -1, "half_life:P90D"])
def test_a_decay_that_is_no_instant_does_not_end_the_memory(decay: Any) -> None:
    read = from_ump(record(lifecycle={"decay": decay, "status": "active"}, superseded_by=[]), NOW)
    assert read.request.expires_at is None and "decay_ignored" in read.notes


@pytest.mark.parametrize(
    ("retention", "days"),
    [("P365D", 365), ("P2W", 14), ("P1M", 30), ("P1Y", 365), ("PT24H", 1), ("P1DT24H", 2)],
)
def test_consent_to_keep_ends(retention: str, days: int) -> None:
    """The clock starts when the record was made, not when it was imported."""
    created = NOW - timedelta(days=10)
    read = from_ump(
        record(lifecycle={}, time={"created": created.isoformat()}, consent={"retention": retention}), NOW
    )
    assert read.request.expires_at == created + timedelta(days=days)


def test_the_earlier_of_decay_and_consent_wins() -> None:
    soon, late = NOW + timedelta(days=5), NOW + timedelta(days=500)
    for decay, expected in ((soon, soon), (late, NOW + timedelta(days=30))):
        given = record(lifecycle={"decay": decay.isoformat()}, time={}, consent={"retention": "P30D"})
        assert from_ump(given, NOW).request.expires_at == expected


@pytest.mark.parametrize("retention", ["P", "PT", "P1DT", "a year", 5, [], "P٣D"])
def test_a_retention_that_is_no_duration_is_told(retention: Any) -> None:
    read = from_ump(record(lifecycle={}, consent={"retention": retention}), NOW)
    assert read.request.expires_at is None and "retention_ignored" in read.notes


def test_version_0_1_of_other_servers() -> None:
    read = from_ump(
        {
            "ump": "0.1",
            "id": "urn:ump:brain:global:7",
            "kind": "semantic",
            "body": {
                "text": "Dave works at Acme since 2021.",
                "structured": {
                    "raw_kind": "fact",
                    "entities": [{"name": "Dave", "type": "person"}, {"name": "Acme", "type": "org"}],
                    "relations": [{"from": "Dave", "to": "Acme", "type": "Works at"}],
                },
            },
            "scope": {"owner": "user-42", "visibility": "private"},
            "time": {"created": 1735689600, "observed": "2025-01-01 10:00:00", "valid_from": None},
            "lifecycle": {"confidence": 0.8, "salience": None, "decay": 1893456000},
        },
        NOW,
    )
    assert read.request.observed_at == datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert read.request.expires_at == datetime(2030, 1, 1, tzinfo=UTC)
    assert [(entity.name, entity.kind) for entity in read.request.entities] == [
        ("Dave", "person"),
        ("Acme", "other"),
    ]
    relation = read.request.relations[0]
    assert (relation.subject, relation.predicate, relation.object) == ("Dave", "works_at", "Acme")


def test_an_unbounded_claim_is_dropped_and_said() -> None:
    deep: Any = "x"
    for _ in range(2_000):
        deep = [deep]
    read = from_ump(record(provenance=deep, consent={"k": "v" * 5_000}), NOW)
    assert not {"provenance", "consent"} & set(read.claimed)
    assert {"provenance_dropped", "consent_dropped"} <= set(read.notes)


INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(2025, 12, 31), timezones=st.just(UTC))
REQUESTS = st.builds(
    lambda **fields: IngestRequest.model_validate({k: v for k, v in fields.items() if v is not None}),
    content=st.text(st.characters(codec="utf-8"), min_size=1, max_size=50).map(lambda text: text + "."),
    title=st.none() | st.just("A title"),
    kind=st.sampled_from(["fact", "procedure", "step", "decision", "episodic"]),
    domain=st.none() | st.just("ops"),
    source=st.just("ump"),
    assertion_kind=st.sampled_from(["stated", "inferred"]),
    observed_at=st.none() | INSTANTS,
    valid_from=st.none() | INSTANTS.filter(lambda at: at.year < 2000),
    valid_to=st.none() | INSTANTS.filter(lambda at: at.year > 2000),
    expires_at=st.none() | INSTANTS,
    data_subjects=st.lists(st.just("subject-1"), max_size=1),
    target_space=st.sampled_from(["private", "team_shared"]),
    entities=st.just([{"name": "Dave", "kind": "person", "aliases": ["David"]}]),
    relations=st.just(
        [
            {"subject": "Dave", "predicate": "works_at", "object": "Acme", "polarity": "-"},
            {
                "subject": "Dave",
                "predicate": "age",
                "value": {"type": "number", "value": 3.5, "unit": "year"},
            },
            {"subject": "D", "predicate": "p", "object": "E", "valid_from": "2020-01-01T00:00:00.000001Z"},
        ]
    ),
)


@given(REQUESTS)
def test_a_memory_comes_back_as_it_went(request: IngestRequest) -> None:
    exported = json.loads(json.dumps(to_ump(request, NOW, {"kind": "working", "provenance": {"actor": "a"}})))
    read = from_ump(exported, NOW)
    assert read.request == request
    assert read.ump_id == exported["id"] and "id_recomputed" not in read.notes
    assert read.claimed["provenance"] == {"actor": "a"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["ump", "id", "kind", "body", "scope", "time", "lifecycle", "provenance"]), JSON)
def test_any_json_in_any_place_is_read_or_refused(place: str, value: Any) -> None:
    try:
        from_ump(record(**{place: value}), NOW)
    except UmpRecordError as refused:
        assert refused.pointer.startswith("/")


@given(
    st.sampled_from(
        ["title", "domain", "entities", "relations", "data_subjects", "raw_kind", "expires_at", "author"]
    ),
    JSON,
)
def test_any_json_in_the_structured_body_is_read_or_refused(place: str, value: Any) -> None:
    try:
        from_ump(record(body={"text": "x", "structured": {place: value}}), NOW)
    except UmpRecordError as refused:
        assert refused.pointer.startswith("/")
