"""An assessor behind any endpoint that speaks OpenAI's chat completions, a model on one's own machine too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as NoAnswerInTime

from remembrancer.adapters.assessors.reading import count, members
from remembrancer.domain.assessment import Conversation
from remembrancer.domain.assessment_prompt import PROMPT_VERSION, messages, system_prompt
from remembrancer.domain.assessment_schema import ANSWER_SCHEMA
from remembrancer.domain.assessment_validation import Stop
from remembrancer.domain.ports import Answer, ProviderUnavailable
from remembrancer.settings import Settings, SettingsError

CONNECT_S: Final = 5
READ_S: Final = 100
MAX_BODY: Final = 8_000_000
"""Bytes of a response that are read."""

_STOPS: Final[Mapping[str, Stop]] = {
    "stop": "complete",
    "length": "truncated",
    "content_filter": "blocked",
}


class OpenAiAssessor:
    name = "openai"

    def __init__(self, read: Settings, *, connect_s: float = CONNECT_S, read_s: float = READ_S) -> None:
        """Raises SettingsError when the model or a usable URL is missing."""
        if read.assessor_model is None or read.assessor_url is None:
            raise SettingsError("REM_ASSESSOR_MODEL and REM_ASSESSOR_URL must be set for this REM_ASSESSOR")
        if urlsplit(read.assessor_url).scheme not in ("http", "https"):
            raise SettingsError("REM_ASSESSOR_URL is not an http or https URL")
        self._url = read.assessor_url.rstrip("/") + "/chat/completions"
        self._model = read.assessor_model
        self._max_tokens = read.assessor_max_tokens
        key = {"Authorization": f"Bearer {read.assessor_key}"} if read.assessor_key else {}
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **key}
        # One call is one call, to where the settings say: no retries, no redirects.
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(connect=connect_s, read=read_s)
        )

    def answer(self, conversation: Conversation) -> Answer:
        body = json.dumps(self._request(conversation), separators=(",", ":")).encode()
        try:
            response = self._pool.request(
                "POST", self._url, body=body, headers=self._headers, redirect=False, preload_content=False
            )
            try:
                said = response.read(MAX_BODY + 1, decode_content=True)
            finally:
                response.close()
        except NewConnectionError:  # refused at once, but of the family of time-outs
            raise ProviderUnavailable("unavailable", "connection") from None
        except NoAnswerInTime:
            raise ProviderUnavailable("timeout", "no_answer") from None
        except HTTPError:
            raise ProviderUnavailable("unavailable", "connection") from None
        if response.status != 200:
            return self._failed(response.status, said)
        return self._read(said)

    def _request(self, conversation: Conversation) -> dict[str, Any]:
        said = [{"role": message.role, "content": message.text} for message in messages(conversation)]
        return {
            "model": self._model,
            "messages": [{"role": "system", "content": system_prompt()}, *said],
            "max_completion_tokens": self._max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": PROMPT_VERSION.replace("-", "_"),
                    "strict": True,
                    "schema": ANSWER_SCHEMA,
                },
            },
        }

    def _failed(self, status: int, body: bytes) -> Answer:
        """Raises ProviderUnavailable, unless the provider's filter refused the texts."""
        error = members(_json(body), "error")
        if status == 400 and error.get("code") == "content_filter":
            return Answer("", self._model, 0, 0, stop="blocked")
        kind: Literal["throttled", "timeout", "refused", "unavailable"] = "unavailable"
        if status == 429:
            kind = "throttled"
        elif status in (408, 504):
            kind = "timeout"
        elif 300 <= status < 500:
            kind = "refused"
        raise ProviderUnavailable(kind, f"http_{status}")

    def _read(self, body: bytes) -> Answer:
        """Raises ProviderUnavailable when the response is not a chat completion."""
        document = _json(body)
        choices = document.get("choices") if isinstance(document, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise ProviderUnavailable("unavailable", "not_a_completion")
        stop: Stop = _STOPS.get(str(choices[0].get("finish_reason")), "malformed")
        text = members(choices[0], "message").get("content")
        usage = members(document, "usage")
        return Answer(
            text if isinstance(text, str) and stop != "blocked" else "",
            self._model,
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
            count(members(usage, "prompt_tokens_details").get("cached_tokens")),
            stop,
        )


def _json(body: bytes) -> Any:
    """None for what is no JSON, or longer than is read."""
    if len(body) > MAX_BODY:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
