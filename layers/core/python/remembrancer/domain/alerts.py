"""An alert of the outbox and what became of its delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Alert:
    """Ids only. `delivery_id` is the same in every attempt: receivers drop what they have seen."""

    delivery_id: UUID
    tenant: UUID
    kind: str
    target: str
    created_at: datetime

    def document(self) -> dict[str, str]:
        """What a receiver gets: delivery_id, tenant, kind, target, created_at (ISO 8601, UTC)."""
        return {
            "delivery_id": str(self.delivery_id),
            "tenant": str(self.tenant),
            "kind": self.kind,
            "target": self.target,
            "created_at": self.created_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Deliveries:
    """`delivered` may be marked; `failed` (id to reason code) stay due and are tried again."""

    delivered: frozenset[UUID] = frozenset()
    failed: Mapping[UUID, str] = field(default_factory=dict)


class AlertPublisher(Protocol):
    """Delivers at least once: an alert counts as delivered only when the receiver said so."""

    def publish(self, alerts: Sequence[Alert]) -> Deliveries:
        """Every alert is in exactly one half of the answer; a receiver's failure is not an exception."""
