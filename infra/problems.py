"""What the gateway itself answers, as problem documents (RFC 9457); pure data, read by `local/` too."""

from __future__ import annotations

import json
from dataclasses import dataclass

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Problem:
    """One gateway answer. `kind` is API Gateway's name of the response type."""

    kind: str
    status: int
    code: str
    title: str
    next_action: str
    retryable: bool = False

    def document(self, correlation_id: str) -> dict[str, object]:
        """The answer's body; never the gateway's own message, which echoes the request."""
        return {
            "type": f"urn:remembrancer:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "retryable": self.retryable,
            "next_action": self.next_action,
            "errors": [],
            "correlation_id": correlation_id,
        }

    def template(self) -> str:
        """The body as API Gateway's mapping template."""
        return json.dumps(self.document("$context.requestId"))


_SIGN_IN = "reauthenticate"
_CORRECT = "correct_and_resubmit"
_OPERATOR = "contact_operator"

PROBLEMS: tuple[Problem, ...] = (
    Problem("ACCESS_DENIED", 403, "forbidden", "The token's scopes do not allow this.", _OPERATOR),
    Problem(
        "API_CONFIGURATION_ERROR", 500, "internal_failure", "The gateway failed.", "wait_and_retry", True
    ),
    Problem(
        "AUTHORIZER_CONFIGURATION_ERROR",
        500,
        "internal_failure",
        "The gateway failed.",
        "wait_and_retry",
        True,
    ),
    Problem("AUTHORIZER_FAILURE", 500, "internal_failure", "The gateway failed.", "wait_and_retry", True),
    Problem("BAD_REQUEST_BODY", 400, "malformed_request", "The request is malformed.", _CORRECT),
    Problem("BAD_REQUEST_PARAMETERS", 400, "malformed_request", "The request is malformed.", _CORRECT),
    Problem("DEFAULT_4XX", 400, "malformed_request", "The request is malformed.", _CORRECT),
    Problem("DEFAULT_5XX", 500, "internal_failure", "The gateway failed.", "wait_and_retry", True),
    Problem("EXPIRED_TOKEN", 401, "unauthenticated", "The token has expired.", _SIGN_IN),
    Problem("INTEGRATION_FAILURE", 500, "internal_failure", "The function failed.", "wait_and_retry", True),
    Problem(
        "INTEGRATION_TIMEOUT",
        504,
        "request_timeout",
        "The function took too long.",
        "retry_same_request",
        True,
    ),
    Problem("INVALID_API_KEY", 403, "forbidden", "The request is not allowed.", _OPERATOR),
    Problem("INVALID_SIGNATURE", 401, "unauthenticated", "The credential is not valid.", _SIGN_IN),
    # The gateway's word for a path or method that does not exist.
    Problem("MISSING_AUTHENTICATION_TOKEN", 404, "not_found", "There is no such resource.", "none"),
    Problem("QUOTA_EXCEEDED", 429, "rate_limited", "Too many requests.", "wait_and_retry", True),
    Problem("REQUEST_TOO_LARGE", 413, "input_budget_exceeded", "The request is too large.", _CORRECT),
    Problem("RESOURCE_NOT_FOUND", 404, "not_found", "There is no such resource.", "none"),
    Problem("THROTTLED", 429, "rate_limited", "Too many requests.", "wait_and_retry", True),
    Problem("UNAUTHORIZED", 401, "unauthenticated", "A valid access token is required.", _SIGN_IN),
    Problem("UNSUPPORTED_MEDIA_TYPE", 415, "unsupported_media_type", "Send application/json.", _CORRECT),
    Problem("WAF_FILTERED", 403, "forbidden", "The request was blocked.", _OPERATOR),
)
