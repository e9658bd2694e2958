"""The catalogue is complete, follows the retry rule, and its documents have one shape."""

import json
import typing

import pytest

from remembrancer.domain.problems import CATALOGUE, Code, FieldError, NextAction, Problem, to_document

# The list of the API's specification, written out a second time: status -> codes.
SPECIFIED = {
    400: "malformed_request input_rejected",
    401: "unauthenticated signature_missing signature_invalid signature_expired signature_replayed",
    403: "forbidden",
    404: "not_found",
    409: "idempotency_conflict request_in_progress digest_mismatch already_decided stale_target stale_input"
    " legal_hold cancelled",
    410: "expired result_erased",
    413: "input_budget_exceeded",
    415: "unsupported_media_type",
    422: "invalid_input invalid_target submission_policy_rejected",
    429: "rate_limited",
    500: "configuration_invalid internal_failure",
    503: "provider_unavailable provider_response_invalid embedding_unavailable commit_conflict"
    " database_failure database_resuming",
    504: "request_timeout",
}


def test_the_catalogue_is_the_specified_list():
    specified = {code: status for status, codes in SPECIFIED.items() for code in codes.split()}
    assert {code: entry.status for code, entry in CATALOGUE.items()} == specified
    assert set(typing.get_args(Code)) == set(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_what_is_retryable(code):
    entry = CATALOGUE[code]
    expected = entry.status >= 500 and code != "configuration_invalid"
    assert entry.retryable == (expected or code in {"request_in_progress", "rate_limited"})
    retries = {"retry_same_request", "wait_and_retry"}
    assert (entry.next_action in retries) == entry.retryable


def test_next_actions_are_of_the_closed_list():
    assert {entry.next_action for entry in CATALOGUE.values()} <= set(typing.get_args(NextAction))
    assert CATALOGUE["idempotency_conflict"].next_action == "restore_original_request"


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_document_has_the_standard_members(code):
    document = to_document(Problem(code), "c-1")
    assert list(document) == [
        "type",
        "title",
        "status",
        "code",
        "retryable",
        "next_action",
        "errors",
        "correlation_id",
    ]
    assert document["type"] == f"urn:remembrancer:problem:{code}"
    assert json.loads(json.dumps(document)) == document


def test_field_errors_and_extensions_are_written():
    problem = Problem(
        "submission_policy_rejected",
        [FieldError("/evidence/0/content", "needs_review", "A person must look at this item.")],
        next_action="submit_proposal",
        extensions={"outcome": "rejected"},
    )
    document = to_document(problem, "c-1")
    assert document["next_action"] == "submit_proposal"
    assert document["errors"] == [
        {
            "pointer": "/evidence/0/content",
            "code": "needs_review",
            "detail": "A person must look at this item.",
        }
    ]
    assert document["outcome"] == "rejected"
    with pytest.raises(ValueError, match="standard member"):
        Problem("not_found", extensions={"status": 200})


def test_headers():
    assert Problem("not_found").headers == {
        "Content-Type": "application/problem+json",
        "Cache-Control": "no-store",
    }
    headers = Problem("database_resuming", retry_after=20, headers={"X-Reason": "waking"}).headers
    assert headers["Retry-After"] == "20"
    assert headers["X-Reason"] == "waking"


def test_a_problem_in_a_log_is_its_code():
    error = FieldError("/title", "too_long", "At most 500 characters.")
    problem = Problem("invalid_input", [error])
    assert str(problem) == "invalid_input"
    assert repr(problem) == "Problem('invalid_input')"


def test_an_unknown_code_cannot_be_raised():
    with pytest.raises(KeyError):
        Problem("teapot")
