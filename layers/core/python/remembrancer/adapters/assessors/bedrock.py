"""An assessor on Amazon Bedrock: one Converse call, strictly structured, every untrusted span guarded."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final, Literal

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from remembrancer.adapters.assessors.reading import count, members
from remembrancer.domain.assessment import Conversation
from remembrancer.domain.assessment_prompt import PROMPT_VERSION, Message, messages, system_prompt
from remembrancer.domain.assessment_schema import ANSWER_SCHEMA
from remembrancer.domain.assessment_validation import Stop
from remembrancer.domain.ports import Answer, ProviderUnavailable
from remembrancer.settings import Settings, SettingsError

CONNECT_S: Final = 5
READ_S: Final = 100
"""Of one answer. The first use of a schema compiles it, which can take minutes: warm it at deployment."""

_CODES: Final[Mapping[str, Literal["throttled", "timeout", "refused", "unavailable"]]] = {
    "ThrottlingException": "throttled",
    "ServiceQuotaExceededException": "throttled",
    "ModelTimeoutException": "timeout",
    "AccessDeniedException": "refused",
    "ResourceNotFoundException": "refused",
    "ValidationException": "refused",
    "UnrecognizedClientException": "refused",
    "ExpiredTokenException": "refused",
    "InternalServerException": "unavailable",
    "ServiceUnavailableException": "unavailable",
    "ModelNotReadyException": "unavailable",
    "ModelErrorException": "unavailable",
}
_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "guardrail_intervened": "blocked",
    "content_filtered": "blocked",
}

# botocore's parser trusts the form of a body; what it trips over is in the text of what it raises.
_UNPARSED: Final = (ValueError, TypeError, AttributeError, LookupError)

# At debug level botocore logs what is sent and received.
logging.getLogger("botocore").setLevel(logging.INFO)


class BedrockAssessor:
    name = "bedrock"

    def __init__(self, read: Settings, *, client: Any = None) -> None:
        """Raises SettingsError when the model or the guardrail is not named."""
        guardrail, _, version = (read.guardrail or "").rpartition(":")
        if read.assessor_model is None or not guardrail or not version:
            raise SettingsError("REM_ASSESSOR_MODEL and REM_GUARDRAIL must be set for this REM_ASSESSOR")
        self._model = read.assessor_model
        self._max_tokens = read.assessor_max_tokens
        self._guardrail = {
            "guardrailIdentifier": guardrail,
            "guardrailVersion": version,
            "trace": "disabled",  # it would echo the text
        }
        self._client = client or _client(read.region)

    def answer(self, conversation: Conversation) -> Answer:
        request = self._request(conversation)
        try:
            response = self._client.converse(**request)
        except ClientError as error:
            raise _unavailable(error) from None
        except (ReadTimeoutError, ConnectTimeoutError):
            raise ProviderUnavailable("timeout", "no_answer") from None
        except ParamValidationError:
            raise ProviderUnavailable("refused", "parameters") from None
        except (ResponseParserError, *_UNPARSED):
            raise ProviderUnavailable("unavailable", "not_a_response") from None
        except BotoCoreError:
            raise ProviderUnavailable("unavailable", "connection") from None
        return self._read(response)

    def _request(self, conversation: Conversation) -> dict[str, Any]:
        return {
            "modelId": self._model,
            "system": [{"text": system_prompt()}, {"cachePoint": {"type": "default"}}],
            "messages": [_message(message) for message in messages(conversation)],
            "inferenceConfig": {"maxTokens": self._max_tokens},
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {
                        "jsonSchema": {
                            "name": PROMPT_VERSION.replace("-", "_"),
                            "schema": json.dumps(ANSWER_SCHEMA, separators=(",", ":")),
                        }
                    },
                }
            },
            "guardrailConfig": self._guardrail,
        }

    def _read(self, response: Mapping[str, Any]) -> Answer:
        if "stopReason" not in response:  # botocore makes an empty response of a body that is cut off
            raise ProviderUnavailable("unavailable", "not_a_response")
        usage = members(response, "usage")
        cached = count(usage.get("cacheReadInputTokens"))
        read = count(usage.get("inputTokens")) + cached + count(usage.get("cacheWriteInputTokens"))
        stop: Stop = _STOPS.get(str(response.get("stopReason")), "malformed")
        content = members(members(response, "output"), "message").get("content")
        blocks = content if isinstance(content, list) else []
        said = [
            block["text"]
            for block in blocks
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        # A blocked answer is the guardrail's own words.
        text = "" if stop == "blocked" else "".join(said)
        return Answer(text, self._model, read, count(usage.get("outputTokens")), cached, stop)


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": [
            {"guardContent": {"text": {"text": part.text}}} if part.untrusted else {"text": part.text}
            for part in message.parts
        ],
    }


def _unavailable(error: ClientError) -> ProviderUnavailable:
    code = error.response.get("Error", {}).get("Code", "")
    if code in _CODES:
        return ProviderUnavailable(_CODES[code], code)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind: Literal["throttled", "refused", "unavailable"] = (
        "throttled" if status == 429 else "refused" if 400 <= status < 500 else "unavailable"
    )
    return ProviderUnavailable(kind, f"http_{status}" if isinstance(status, int) else "unknown")


def _client(region: str) -> Any:
    import boto3

    # One call is one call: what is tried again is decided by the workflow, which counts.
    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    return boto3.client("bedrock-runtime", region_name=region or None, config=config)
