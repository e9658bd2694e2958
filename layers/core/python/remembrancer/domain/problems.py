"""The closed catalogue of errors and their problem documents (RFC 9457).

A problem carries codes, JSON pointers and fixed sentences; never a submitted value, never provider text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:remembrancer:problem:"

Code = Literal[
    "malformed_request",
    "input_rejected",
    "unauthenticated",
    "signature_missing",
    "signature_invalid",
    "signature_expired",
    "signature_replayed",
    "forbidden",
    "not_found",
    "idempotency_conflict",
    "request_in_progress",
    "digest_mismatch",
    "already_decided",
    "stale_target",
    "stale_input",
    "legal_hold",
    "cancelled",
    "expired",
    "result_erased",
    "input_budget_exceeded",
    "unsupported_media_type",
    "invalid_input",
    "invalid_target",
    "submission_policy_rejected",
    "rate_limited",
    "configuration_invalid",
    "internal_failure",
    "provider_unavailable",
    "provider_response_invalid",
    "embedding_unavailable",
    "commit_conflict",
    "database_failure",
    "database_resuming",
    "request_timeout",
]

NextAction = Literal[
    "correct_and_resubmit",
    "resubmit_remember",
    "restore_original_request",
    "submit_proposal",
    "retry_same_request",
    "wait_and_retry",
    "reauthenticate",
    "contact_operator",
    "none",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is the same for every occurrence of a code; a problem may name a closer `next_action`."""

    status: int
    title: str
    next_action: NextAction
    retryable: bool = False


CATALOGUE: Mapping[Code, Entry] = {
    "malformed_request": Entry(400, "The request body cannot be read.", "correct_and_resubmit"),
    "input_rejected": Entry(400, "The content was refused by the screen.", "correct_and_resubmit"),
    "unauthenticated": Entry(401, "Valid credentials are required.", "reauthenticate"),
    "signature_missing": Entry(401, "This act needs a signed request.", "correct_and_resubmit"),
    "signature_invalid": Entry(401, "The request signature does not verify.", "correct_and_resubmit"),
    "signature_expired": Entry(401, "The request signature is out of its time.", "correct_and_resubmit"),
    "signature_replayed": Entry(401, "The signature's nonce was used before.", "correct_and_resubmit"),
    "forbidden": Entry(403, "These credentials do not allow this act.", "contact_operator"),
    "not_found": Entry(404, "There is no such thing here.", "none"),
    "idempotency_conflict": Entry(
        409, "The idempotency key belongs to another request.", "restore_original_request"
    ),
    "request_in_progress": Entry(409, "The same request is still running.", "wait_and_retry", True),
    "digest_mismatch": Entry(409, "The content is not the content that was shown.", "correct_and_resubmit"),
    "already_decided": Entry(409, "A decision was made before this one.", "none"),
    "stale_target": Entry(409, "The target has a newer version.", "correct_and_resubmit"),
    "stale_input": Entry(409, "Something this request rests on has changed.", "correct_and_resubmit"),
    "legal_hold": Entry(409, "A legal hold forbids this act.", "contact_operator"),
    "cancelled": Entry(409, "The operation was cancelled.", "none"),
    "expired": Entry(410, "The time to do this is over.", "none"),
    "result_erased": Entry(410, "The stored result was erased.", "none"),
    "input_budget_exceeded": Entry(413, "The request is larger than allowed.", "correct_and_resubmit"),
    "unsupported_media_type": Entry(415, "The body must be application/json.", "correct_and_resubmit"),
    "invalid_input": Entry(422, "The request breaks a rule of its contract.", "correct_and_resubmit"),
    "invalid_target": Entry(422, "The named target cannot be used for this.", "correct_and_resubmit"),
    "submission_policy_rejected": Entry(
        422, "The submission policy refuses this batch.", "correct_and_resubmit"
    ),
    "rate_limited": Entry(429, "Too many requests.", "wait_and_retry", True),
    "configuration_invalid": Entry(500, "The service is configured wrongly.", "contact_operator"),
    "internal_failure": Entry(500, "The service failed.", "retry_same_request", True),
    "provider_unavailable": Entry(503, "The model provider is unavailable.", "wait_and_retry", True),
    "provider_response_invalid": Entry(
        503, "The model provider gave no valid answer.", "retry_same_request", True
    ),
    "embedding_unavailable": Entry(503, "The embedding is unavailable.", "wait_and_retry", True),
    "commit_conflict": Entry(503, "Concurrent changes kept this one out.", "retry_same_request", True),
    "database_failure": Entry(503, "The database failed.", "retry_same_request", True),
    "database_resuming": Entry(503, "The database is waking up.", "wait_and_retry", True),
    "request_timeout": Entry(504, "The request took too long.", "retry_same_request", True),
}


def class_name(code: str) -> str:
    """`provider_unavailable` as a state machine sees it, as the name of an exception's class: `ProviderUnavailable`."""
    return "".join(word.capitalize() for word in code.split("_"))


_STANDARD_MEMBERS = frozenset(
    (
        "type",
        "title",
        "status",
        "code",
        "retryable",
        "next_action",
        "errors",
        "correlation_id",
        "detail",
        "instance",
    )
)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of the input: an RFC 6901 pointer, a rule's code, a fixed sentence without the value.

    The pointer holds names of our own contract and indexes only; an unknown field is charged to its parent.
    """

    pointer: str
    code: str
    detail: str


class Problem(Exception):
    """An error with a place in the catalogue; `str()` is the code alone, so that a log shows no content."""

    def __init__(
        self,
        code: Code,
        errors: Sequence[FieldError] = (),
        *,
        next_action: NextAction | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, object] | None = None,
    ) -> None:
        """`retry_after` in whole seconds. `extensions` are further members, such as the winner's outcome.

        Raises KeyError for an unknown code, ValueError for an extension that hides a standard member.
        """
        super().__init__(code)
        self.code: Code = code
        self.entry = CATALOGUE[code]
        self.errors = tuple(errors)
        self.next_action: NextAction = next_action or self.entry.next_action
        self.retry_after = retry_after
        self.extra_headers = dict(headers or {})
        self.extensions = dict(extensions or {})
        if _STANDARD_MEMBERS & self.extensions.keys():
            raise ValueError("an extension may not replace a standard member")

    @property
    def status(self) -> int:
        return self.entry.status

    @property
    def headers(self) -> dict[str, str]:
        """Response headers: the media type, Retry-After when known, and the problem's own."""
        retry = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", **retry, **self.extra_headers}


def to_document(problem: Problem, correlation_id: str) -> dict[str, object]:
    """The RFC 9457 document: type, title, status, code, retryable, next_action, errors, correlation_id."""
    return {
        "type": TYPE_PREFIX + problem.code,
        "title": problem.entry.title,
        "status": problem.entry.status,
        "code": problem.code,
        "retryable": problem.entry.retryable,
        "next_action": problem.next_action,
        "errors": [
            {"pointer": error.pointer, "code": error.code, "detail": error.detail} for error in problem.errors
        ],
        "correlation_id": correlation_id,
        **problem.extensions,
    }
