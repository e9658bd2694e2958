"""What passes through the work bucket between the database's side of a turn and the model's, as JSON bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from remembrancer.domain.assessment import Conversation
from remembrancer.domain.ports import Answer

MEDIA_TYPE = "application/json"
_STOPS = ("complete", "truncated", "malformed", "blocked")


def asked(conversation: Conversation) -> bytes:
    return _dump(conversation.to_json())


def read_asked(body: bytes) -> Conversation:
    """Raises ValueError."""
    return Conversation.from_json(json.loads(body))


def answered(answer: Answer) -> bytes:
    return _dump(asdict(answer))


def read_answered(body: bytes) -> Answer:
    """Raises ValueError. The writer is ours; its text is the model's, and is not read here."""
    document = json.loads(body)
    try:
        answer = Answer(**document)
    except TypeError:
        raise ValueError("not an answer") from None
    if answer.stop not in _STOPS or not isinstance(answer.text, str):
        raise ValueError("not an answer")
    return answer


def _dump(document: object) -> bytes:
    # Escaped: a model may answer with a lone surrogate, which UTF-8 cannot carry.
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Turn:
    """What the state of a workflow carries: ids, a counter, a deadline. `verdict` is what the next choice looks at.

    `until` is the end of the assessment, RFC 3339.
    """

    attempt_id: str
    tenant_id: str
    turn: int
    until: str
    verdict: Literal["ask", "valid"] = "ask"

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Turn:
        """Raises KeyError."""
        return cls(state["attempt_id"], state["tenant_id"], state["turn"], state["until"])

    def to_state(self) -> dict[str, str | int]:
        return asdict(self)
