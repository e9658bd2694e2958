"""What a signed act carries from the verifier of its signature to the transaction that performs it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Algorithm = Literal["ed25519", "ecdsa-p256-sha256"]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A registered public key (PEM). Only the record decides the algorithm, never the request."""

    key_id: str
    algorithm: Algorithm
    public_key: str
    usable_from: datetime
    """A later key works only after a waiting time, so that a stolen session cannot use it at once."""
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """A signature that held. The act's transaction inserts (key_id, nonce), kept until `expires` at least."""

    key_id: str
    nonce: str
    created: datetime
    expires: datetime
    base_digest: bytes
    """SHA-256 of the RFC 9421 signature base: the evidence for the audit row."""
