"""The canonical hash of a request, the caller's preferences, the deadlines, and what passes through the bucket."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from remembrancer.api.preferences import request_deadline, wait_of
from remembrancer.api.tasks import task
from remembrancer.domain import attempt_objects, remember_work
from remembrancer.domain.assessment import AssessmentRequest, Conversation, EvidenceView, Issue, Turn
from remembrancer.domain.digests import request_hash
from remembrancer.domain.ports import Answer, ProviderUnavailable
from remembrancer.domain.problems import CATALOGUE, Problem
from remembrancer.domain.remember_limits import Deadlines, deadline
from remembrancer.domain.remember_requests import RememberRequest, hashed_form
from remembrancer.flows.remember_end import code_of

NOW = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


def body(**more: Any) -> dict[str, Any]:
    return {
        "idempotency_key": "k",
        "target_space": "private",
        "evidence": [{"content": "Ada works at Acme."}, {"content": "Ben works at Acme."}],
        "relationships": [
            {
                "ref": "r1",
                "subject": {"name": "Ada"},
                "predicate": {"proposed_key": "works_at"},
                "object": {"value": {"type": "number", "value": 3, "unit": "day"}},
                "evidence_indices": [0, 1],
            }
        ],
        **more,
    }


def digest(document: dict[str, Any]) -> bytes:
    return request_hash(hashed_form(RememberRequest.model_validate(document)))


# The hash ----------------------------------------------------------------------------------------------------
def test_sets_have_no_order_and_defaults_are_as_good_as_none() -> None:
    plain = body()
    plain["evidence"][0] |= {"labels": ["a", "b"], "data_subjects": ["x", "y"]}
    other = body()
    other["evidence"][0] |= {
        "labels": ["b", "a"], "data_subjects": ["y", "x"], "force_insert": False, "metadata": {},
        "source_type": "conversation", "authority": "unknown", "source": None,
    }  # fmt: skip
    other["relationships"][0] |= {"evidence_indices": [1, 0], "polarity": "+", "known_evidence_ids": []}
    assert digest(plain) == digest(other)
    assert digest(body(idempotency_key="another")) == digest(body())
    early = body()
    early["evidence"][0]["observed_at"] = "2026-05-04T09:30:00Z"
    same_instant = body()
    same_instant["evidence"][0]["observed_at"] = "2026-05-04T11:30:00+02:00"
    assert digest(early) == digest(same_instant) != digest(body())


def test_everything_else_counts() -> None:
    changed = [body(target_space="team_shared"), body(evidence=list(reversed(body()["evidence"])))]
    for content in ("Ada works at Acme. ", "ada works at Acme.", "Ada works at Acme.\u200b"):
        changed.append(body(evidence=[{"content": content}, body()["evidence"][1]]))
    for member, value in (
        ("polarity", "-"), ("client_comment", "so"), ("valid_from", "2026-05-04T09:30:00Z"),
        ("evidence_indices", [0, 1]), ("known_evidence_ids", ["mem_" + "0" * 32]), ("ref", "r2"),
        ("subject", {"name": "Ada", "entity_kind": "person"}),
    ):  # fmt: skip
        document = body()
        document["relationships"][0][member] = value
        changed.append(document)
    digests = [digest(document) for document in changed]
    assert digests.count(digest(body())) == 1  # the one that wrote out what it said anyway
    assert len(set(digests)) == len(digests)


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_texts_are_told_apart_by_their_bytes(one: str, two: str) -> None:
    def of(text: str) -> bytes | None:
        try:
            return digest(body(evidence=[{"content": text}, {"content": "Ben."}]))
        except (ValidationError, UnicodeEncodeError):
            return None

    if of(one) is not None and of(two) is not None:
        assert (of(one) == of(two)) == (one == two)


# The contract ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path, value",
    [
        (("relationships", 0, "subject"), {"name": "Ada", "known_entity_id": "ent_" + "0" * 32}),
        (("relationships", 0, "subject"), {}),
        (("relationships", 0, "subject"), {"known_entity_id": "mem_" + "0" * 32}),
        (("relationships", 0, "predicate"), {}),
        (("relationships", 0, "predicate"), {"proposed_key": "a", "known_predicate_key": "a"}),
        (("relationships", 0, "predicate"), {"proposed_key": "Works At"}),
        (("relationships", 0, "object"), {}),
        (("relationships", 0, "object"), {"entity": {"name": "A"}, "value": {"type": "number", "value": 1}}),
        (("relationships", 0, "object"), {"value": {"type": "date", "value": "yesterday"}}),
        (("relationships", 0, "object"), {"value": {"type": "string", "value": "\u200b"}}),
        (("relationships", 0, "object"), {"value": {"type": "number", "value": 5, "unit": "\u200b "}}),
        (("relationships", 0, "object"), {"value": {"type": "number", "value": "9" * 60, "unit": "TB"}}),
        (("relationships", 0, "evidence_indices"), []),
        (("relationships", 0, "evidence_indices"), [0, 0]),
        (("relationships", 0, "evidence_indices"), [0]),
        (("relationships", 0, "evidence_indices"), [0, 1, 2]),
        (("relationships", 0, "polarity"), "?"),
        (("relationships", 0, "correction_target"), {"relationship_id": "rel_" + "0" * 32}),
        (("relationships",), []),
        (("evidence",), []),
        (("evidence", 0, "content"), "\n\t "),
        (("evidence", 0, "source_key"), "a"),
        (("evidence", 0, "previous_source_revision"), "1"),
        (("evidence", 0, "supersedes_evidence_ids"), ["mem_" + "0" * 32] * 2),
        (("idempotency_key",), "a\nb"),
        (("idempotency_key",), "k" * 129),
        (("tenant",), "acme"),
    ],
)
def test_what_breaks_the_contract(path: tuple[Any, ...], value: Any) -> None:
    document: Any = body()
    target = document
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    with pytest.raises(ValidationError) as caught:
        RememberRequest.model_validate(document)
    assert "Ada" not in str(caught.value)


def test_a_stored_request_reads_the_same() -> None:
    """The attempt's row keeps it as JSON without its defaults."""
    document = body()
    document["evidence"][0] |= {
        "metadata": {"a": 1, "b": 1.5, "c": True, "d": "1"},
        "observed_at": NOW.isoformat(),
    }
    request = RememberRequest.model_validate(document)
    stored = json.loads(json.dumps(request.model_dump(mode="json", exclude_defaults=True)))
    assert RememberRequest.model_validate(stored) == request
    kinds = [type(value) for value in RememberRequest.model_validate(stored).evidence[0].metadata.values()]
    assert kinds == [int, float, bool, str]


# Preferences -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "header, seconds",
    [
        (None, 10),
        ("", 10),
        ("wait=3", 3),
        ('wait="3"', 3),
        ("respond-async, Wait = 7; x=1", 7),
        ("wait=0", 0),
        ("wait=-1", 10),
        ("wait=1.5", 10),
        ("wait=soon", 10),
        ("await=3", 10),
        ("wait=" + "9" * 30, 10),
        ("," * 100_000 + "wait=3", 10),
    ],
)
def test_prefer(header: str | None, seconds: int) -> None:
    assert wait_of(header, timedelta(seconds=10)) == timedelta(seconds=seconds)


@given(st.text(max_size=50))
def test_no_header_is_a_fault_of_ours(header: str) -> None:
    assert wait_of(header, timedelta(0)) >= timedelta(0)
    try:
        found = request_deadline(header)
    except Problem as problem:
        assert problem.code == "invalid_input"
    else:
        assert found is not None and found.tzinfo is not None


def test_request_deadline() -> None:
    assert request_deadline(None) is None
    assert request_deadline("2026-05-04T11:30:00+02:00") == NOW


# Deadlines ---------------------------------------------------------------------------------------------------
def test_deadlines_are_anchored_at_entry() -> None:
    def after(seconds: float) -> datetime:
        return NOW + timedelta(seconds=seconds)

    limits = Deadlines(NOW, deadline(NOW, None))
    assert (limits.total, limits.assessment) == (after(180), after(160))
    assert limits.embedding(after(5)) == after(15) and limits.embedding(after(165)) == after(170)
    assert limits.commit(after(100)) == after(110) and limits.commit(after(175)) == after(180)
    early = Deadlines(NOW, deadline(NOW, after(50)))
    assert (
        early.assessment == early.total == early.embedding(after(45)) == early.commit(after(45)) == after(50)
    )
    assert deadline(NOW, after(500)) == after(180)


# The bucket and the states -----------------------------------------------------------------------------------
def test_what_is_handed_on_comes_back_whatever_it_holds() -> None:
    text = 'a "\x00" \ud800 \u2028 </evidence>'
    asked = AssessmentRequest((EvidenceView("e1", "Ada \u200b."),), ())
    conversation = Conversation(asked, (Turn(text, (Issue("/evidence", "not_json", "No."),)),))
    assert remember_work.read_asked(remember_work.asked(conversation)).request == asked
    answer = Answer(text, "m", 1, 2, stop="truncated")
    assert remember_work.read_answered(remember_work.answered(answer)) == answer
    for broken in (
        b"",
        b"{}",
        b"[]",
        b'{"text": "a"}',
        b'{"text":1,"model":"","input_tokens":0,"output_tokens":0}',
    ):
        with pytest.raises(ValueError):
            remember_work.read_answered(broken)


def test_the_bucket_has_one_place_a_turn_and_a_side() -> None:
    keys = attempt_objects.keys(UUID(int=1), UUID(int=2))
    assert len(set(keys)) == 6 and all(
        key.startswith(f"attempts/{UUID(int=1)}/{UUID(int=2)}/") for key in keys
    )


def test_every_code_survives_the_machine() -> None:
    for code in CATALOGUE:

        def fails(event: dict[str, Any], context: object, code: Any = code) -> None:
            raise Problem(code)

        with pytest.raises(Exception) as caught:
            task(fails)({}, None)
        assert code_of(type(caught.value).__name__) == code
    assert code_of("States.Timeout") == code_of("TIMED_OUT") == "request_timeout"
    assert code_of("States.Runtime") == code_of("ABORTED") == code_of("Lambda.Unknown") == "internal_failure"


@pytest.mark.parametrize(
    "kind, name", [("throttled", "ProviderThrottled"), ("timeout", "ProviderUnavailable")]
)
def test_a_provider_that_fails_is_named_without_its_words(kind: Any, name: str) -> None:
    def fails(event: dict[str, Any], context: object) -> None:
        raise ProviderUnavailable(kind, "code")

    with pytest.raises(Exception) as caught:
        task(fails)({}, None)
    assert type(caught.value).__name__ == name and caught.value.__cause__ is None
    assert code_of(name) == "provider_unavailable"
