"""What the flows need from the outside, as small protocols that store and adapters satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

if TYPE_CHECKING:  # numpy costs 60 ms at import: functions that do not embed must not pay it
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """Shape (n, 384), each row of L2 norm 1."""


class EmbeddingUnavailable(Exception):
    """The embedder cannot answer: its model is missing or broke."""


class ObjectStoreUnavailable(Exception):
    """The bucket does not answer."""


class ClassifierUnavailable(Exception):
    """Layer 2 of the screen cannot answer."""


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
    """Bundles and reports, in a bucket of our own. A fault is raised as ObjectStoreUnavailable."""

    def put(self, key: str, body: bytes, media_type: str) -> None:
        """Write one object."""

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
