"""What the flows need from the outside, as small protocols that store and adapters satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol
from uuid import UUID

if TYPE_CHECKING:  # numpy costs 60 ms at import: functions that do not embed must not pay it
    import numpy as np
    from numpy.typing import NDArray

    from remembrancer.domain.assessment import Conversation

    Vectors = NDArray[np.float32]
    """Shape (n, 384), each row of L2 norm 1."""


class EmbeddingUnavailable(Exception):
    """The embedder cannot answer: its model is missing or broke."""


class ObjectStoreUnavailable(Exception):
    """The bucket does not answer."""


class MachineUnavailable(Exception):
    """The state machine could not be started."""


class ClassifierUnavailable(Exception):
    """Layer 2 of the screen cannot answer."""


class ProviderUnavailable(Exception):
    """The assessor's model gave no answer. Holds a kind and a code of our own, never text of the provider.

    `throttled`, `timeout` and `unavailable` pass with time; `refused` (credentials, model id, a parameter)
    does not.
    """

    def __init__(self, kind: Literal["throttled", "timeout", "refused", "unavailable"], code: str) -> None:
        super().__init__(f"{kind}: {code}")
        self.kind = kind
        self.code = code


class Clock(Protocol):
    def __call__(self) -> datetime:
        """Now, timezone-aware, UTC."""


class Ids(Protocol):
    def __call__(self) -> UUID:
        """A new UUIDv7."""


class Embedder(Protocol):
    """A named, versioned vector space. Vectors of two contracts never share a column."""

    @property
    def contract(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text. Raises EmbeddingUnavailable; never truncates (raises ValueError)."""

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` in this contract's tokenizer, special tokens not counted."""


class MacKeys(Protocol):
    """Keyed digests for the audit chain and tombstones; the key is kept outside the database."""

    def mac(self, purpose: str, tenant: UUID, message: bytes) -> bytes:
        """HMAC-SHA-256, 32 bytes, under the tenant's key of that purpose."""


class ObjectStore(Protocol):
    """Bundles, reports and what workflows hand on, in a bucket of our own. A fault is raised as
    ObjectStoreUnavailable."""

    def put(self, key: str, body: bytes, media_type: str) -> None:
        """Write one object."""

    def get(self, key: str) -> bytes | None:
        """The object, or None when there is none."""

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; one that is not there is removed already."""

    def link(self, key: str, seconds: int) -> str:
        """A link that reads the object for so long."""


class ScreenModel(Protocol):
    """Layer 2 of the screen. A fault is raised as ClassifierUnavailable and fails closed."""

    @property
    def model_id(self) -> str: ...

    def scores(self, texts: Sequence[str]) -> list[float]:
        """For each text of one request the probability 0..1 that it is an attack: the maximum over its windows."""

    def scores_each(self, requests: Sequence[Sequence[str]]) -> list[list[float]]:
        """The same for several requests, in one batch."""


@dataclass(frozen=True)
class Answer:
    """What a model said, unread, and why it ended.

    `truncated` (the output limit) and `malformed` answers are invalid turns. `blocked` means that a guardrail
    or a content filter of the provider refused the texts: no turn would change that, so it is treated as a
    rejection of the batch.
    Tokens are those the provider counted, cached input included; 0 for the embedded rules.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    stop: Literal["complete", "truncated", "malformed", "blocked"] = "complete"


class Assessor(Protocol):
    """Judges whether evidence supports proposals. Its answer is only text until the domain has validated it."""

    @property
    def name(self) -> str:
        """`rules`, `bedrock` or `openai`: shown in the result."""

    def answer(self, conversation: Conversation) -> Answer:
        """Exactly one model call, never retried here. Raises ProviderUnavailable."""
