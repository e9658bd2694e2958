"""Digests that bind a decision to what was shown, and that tell one text from another."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import Value, canonical_json, digest


def content_sha(content: str) -> bytes:
    """SHA-256 of the exact bytes of a text."""
    return hashlib.sha256(content.encode()).digest()


def request_hash(body: Any) -> bytes:
    """SHA-256 of the canonical JSON of a request body: what an idempotency key is bound to."""
    return hashlib.sha256(canonical_json(body).encode()).digest()


def dedup_key(
    *,
    space_id: UUID,
    content: str,
    title: str | None,
    kind: str,
    domain: str,
    valid_from: datetime | None,
    valid_to: datetime | None,
    source_uri: str | None,
    revision: str | None,
) -> bytes:
    """What makes two writes of the lifecycle paths the same memory (model.md, Duplicates)."""
    return digest(
        {
            "space": space_id.bytes,
            "content": content,
            "title": title,
            "kind": kind,
            "domain": domain,
            "valid_from": valid_from,
            "valid_to": valid_to,
            "source_uri": source_uri,
            "revision": revision,
        }
    )


def dedup_keys(
    *,
    space_id: UUID,
    content: str,
    title: str | None,
    kind: str,
    domains: Collection[str],
    valid_from: datetime | None,
    valid_to: datetime | None,
    source_uri: str | None,
    revision: str | None,
) -> set[bytes]:
    """Every key under which a memory that says just this may lie: in one of the domains, with the start or without the
    one that it got by taking another's place, and with the revision or as a part of a source."""
    return {
        dedup_key(
            space_id=space_id,
            content=content,
            title=title,
            kind=kind,
            domain=domain,
            valid_from=start,
            valid_to=valid_to,
            source_uri=source_uri,
            revision=said,
        )
        for domain in set(domains)
        for start in {valid_from, None}
        for said in {revision, None}
    }


def proposal_digest(proposal_id: UUID, salt: bytes, space_id: UUID, body: Mapping[str, Any]) -> str:
    """64 hex digits over everything that a decision admits, unmasked; the salt keeps short texts unguessable."""
    shown: dict[str, Value] = {
        "version": 1,
        "proposal": proposal_id.bytes,
        "salt": salt,
        "space": space_id.bytes,
        "body": canonical_json(body),
    }
    return digest(shown).hex()


HELD_TEXTS = (
    "title",
    "content",
    "author",
    "source_uri",
    "revision",
    "heading_path",
    "data_subjects",
    "held_graph",
)
"""Columns of a held memory that readers are shown once it is released; what its sender claimed is one more."""


def memory_digest(memory: Mapping[str, Any]) -> str:
    """64 hex digits over a stored memory as a reviewer of the quarantine is shown it, unmasked."""
    return digest(
        {
            "version": 1,
            "memory": memory["memory_id"].bytes,
            "space": memory["space_id"].bytes,
            "kind": memory["kind"],
            "domain": memory["domain"],
            "observed_at": memory["observed_at"],
            "valid_from": memory["valid_from"],
            "valid_to": memory["valid_to"],
            "texts": canonical_json({name: memory[name] for name in (*HELD_TEXTS, "claimed")}),
        }
    ).hex()
