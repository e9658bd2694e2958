"""A full, valid body for every route that takes one: every member of its contract is filled in."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PEM = (
    Ed25519PrivateKey.generate()
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)
_TIME = "2024-05-01T12:00:00Z"
_DIGEST = "0" * 64
_PROPOSAL = "prop_" + "0" * 32
_MEMORY = "mem_" + "0" * 32

_CAPTURED: dict[str, Any] = {
    "title": "Where Ana works",
    "kind": "fact",
    "domain": "people",
    "author": "Ana",
    "source": "structured",
    "assertion_kind": "stated",
    "observed_at": _TIME,
    "valid_from": _TIME,
    "valid_to": "2099-05-01T12:00:00Z",
    "expires_at": "2099-06-01T12:00:00Z",
    "data_subjects": ["ana"],
    "source_uri": "notes/ana.txt",
    "revision": "7",
    "entities": [{"name": "Ana", "kind": "person", "aliases": ["Anita"]}],
    "relations": [
        {
            "subject": "Ana",
            "subject_kind": "person",
            "predicate": "works_at",
            "object": "Globex",
            "object_kind": "organization",
            "polarity": "+",
            "valid_from": _TIME,
            "valid_to": "2099-05-01T12:00:00Z",
        },
        {
            "subject": "Ana",
            "subject_kind": "person",
            "predicate": "has_team_size",
            "object_kind": None,
            "value": {"type": "string", "value": "seven", "unit": "people"},
            "polarity": "+",
            "valid_from": _TIME,
            "valid_to": "2099-05-01T12:00:00Z",
        },
    ],
}
_IMPORTED: dict[str, Any] = {
    "kind": "fact",
    "domain": "people",
    "author": "Ana",
    "observed_at": _TIME,
    "expires_at": "2099-06-01T12:00:00Z",
    "data_subjects": ["ana"],
    "target_space": "team_shared",
}
_SUPERSEDES = {"memory_id": _MEMORY, "version": 1}
_PROPOSED = {**_CAPTURED, "content": "Ana works at Globex.", "source_prompt": "Where do you work?"}

SAMPLES: dict[str, Any] = {
    "POST /v1/ingest": {**_CAPTURED, "content": "Ana works at Globex.", "target_space": "team_shared"},
    "POST /v1/ingest/proposal": _PROPOSED,
    "POST /v1/proposals/{id}/approve": {
        "content_digest": _DIGEST,
        "supersedes": _SUPERSEDES,
        "override_reason": "The quote is about the attack.",
        "reason": "Known.",
    },
    "POST /v1/proposals/{id}/reject": {"content_digest": _DIGEST, "reason": "Not ours."},
    "POST /v1/proposals/{id}/edit": {"content_digest": _DIGEST, "proposal": _PROPOSED},
    "POST /v1/proposals/decide": {
        "rows": [
            {
                "proposal_id": _PROPOSAL,
                "decision": "approve",
                "content_digest": _DIGEST,
                "supersedes": _SUPERSEDES,
                "override_reason": "The quote is about the attack.",
                "reason": "Known.",
            }
        ]
    },
    "POST /v1/quarantine/{id}/release": {"content_digest": _DIGEST, "reason": "Harmless."},
    "POST /v1/quarantine/{id}/reject": {"content_digest": _DIGEST, "reason": "Harmful."},
    "POST /v1/conflicts/{id}/resolve": {"resolution": "dismissed", "reason": "Both hold."},
    "POST /v1/recall": {
        "query": "Where does Ana work?",
        "limit": 5,
        "spaces": ["team_shared"],
        "domains": ["people"],
        "kinds": ["fact"],
        "sources": ["structured"],
        "since": _TIME,
        "at": _TIME,
        "known_at": _TIME,
        "min_relevance": 0.5,
        "include": ["nearest"],
        "context": 1,
        "graph": True,
        "token_budget": 1000,
        "explain": False,
    },
    "POST /v1/verify": {"claim": "Ana works at Globex.", "memory_ids": [_MEMORY], "query": None},
    "POST /v1/purge": {
        "memory_ids": [_MEMORY],
        "proposal_ids": [_PROPOSAL],
        "data_subject": None,
        "owner": None,
        "dry_run": True,
        "reason": "other",
    },
    "POST /v1/offboard": {"tenant": "acme", "reason": "contract_ended", "dry_run": True},
    "POST /v1/dsar": {
        "action": "refuse",
        "jurisdiction": "gdpr",
        "received_at": _TIME,
        "data_subject": "ana",
        "entities": ["ent_" + "1" * 32],
        "author": "Ana",
        "owner": "prin_" + "1" * 32,
        "case_reference": "case-7",
        "reason": "withdrawn",
        "dry_run": True,
    },
    "POST /v1/legal-holds": {
        "memory_ids": [_MEMORY],
        "data_subject": None,
        "reason": "litigation",
        "case_reference": "case-7",
    },
    "POST /v1/legal-holds/{id}/release": {"reason": "case_closed"},
    "PATCH /v1/settings": {
        "default_space": "team_shared",
        "four_eyes": False,
        "secrets": "redact",
        "screen": {"reject_at": None, "hold_at": None, "rules_reject": "critical"},
        "pii": {"hold": ["iban"], "refuse": ["card"]},
        "proposal_ttl_s": 604_800,
        "retention": {"fact": 365, "episodic": 30, "procedure": 730, "step": 730, "decision": 730},
        "skip_prefixes": ["HEARTBEAT"],
        "route_at": 0.3,
        "principal_rate": 100,
        "principal_burst": 1_000,
        "tenant_rate": 1_000,
        "tenant_burst": 10_000,
        "principal_daily_bytes": 500_000_000,
        "tenant_daily_bytes": 5_000_000_000,
        "tenant_passages": 20_000_000,
        "dsar_days": 1_825,
    },
    "POST /v1/ingest/markdown": {
        **_IMPORTED,
        "content": "# Ana\n\nAna works at Globex.\n",
        "title": "Where Ana works",
        "valid_from": _TIME,
        "valid_to": "2099-05-01T12:00:00Z",
        "source_uri": "notes/ana.md",
        "revision": "7",
    },
    "POST /v1/ingest/memory": {**_IMPORTED, "content": "## [ 2024-05-01 ] Work\nAna works at Globex.\n"},
    "POST /v1/ingest/ump": {
        "records": [
            {"ump": "1.0", "body": {"text": "Ana works at Globex."}, "scope": {"visibility": "shared"}}
        ],
        "domain": "people",
        "target_space": "team_shared",
    },
    "POST /v1/memories/{id}/retract": {"version": 1, "undo": False, "reason": "It was never so."},
    "POST /v1/memories/{id}/renew": {"version": 1, "expires_at": "2099-06-01T12:00:00Z"},
    "POST /v1/entities/{id}/merge": {"into": "ent_" + "1" * 32, "reason": "One person."},
    "POST /v1/export": {
        "format": "ump",
        "spaces": ["team_shared"],
        "domains": ["people"],
        "kinds": ["fact"],
    },
    "POST /v1/remember": {
        "idempotency_key": "remember-1",
        "target_space": "team_shared",
        "evidence": [
            {
                "content": "Ana works at Globex.",
                "force_insert": False,
                "source_type": "conversation",
                "source": "chat",
                "source_group": "support",
                "authority": "primary",
                "source_key": "chat-7",
                "source_revision": "2",
                "previous_source_revision": None,
                "supersedes_evidence_ids": [_MEMORY],
                "labels": ["work"],
                "metadata": {"channel": "general"},
                "observed_at": _TIME,
                "data_subjects": ["ana"],
            }
        ],
        "relationships": [
            {
                "ref": "r1",
                "subject": {"name": "Ana", "known_entity_id": None, "entity_kind": "person"},
                "predicate": {"proposed_key": "works_at", "known_predicate_key": None},
                "object": {
                    "entity": {"name": "Globex", "known_entity_id": None, "entity_kind": "organization"}
                },
                "polarity": "+",
                "evidence_indices": [0],
                "known_evidence_ids": [_MEMORY],
                "valid_from": _TIME,
                "valid_to": "2099-05-01T12:00:00Z",
                "correction_target": {"relationship_id": "rel_" + "0" * 32, "expected_version": 1},
                "client_comment": "She said so.",
            }
        ],
    },
    "POST /v1/remember/{id}/cancel": {"reason": "no_longer_needed"},
    "PUT /v1/retention": {"fact": 365, "episodic": 30, "procedure": 730, "step": 730, "decision": 730},
    "POST /v1/principals": {
        "name": "Nora New",
        "kind": "agent",
        "issuer": "https://issuer.test/pool",
        "subject": "agent-sample",
        "capabilities": ["pii"],
        "team_grant": "none",
    },
    "PATCH /v1/principals/{id}": {
        "name": "Nora New",
        "active": True,
        "capabilities": ["pii"],
        "team_grant": "read",
        "add_credential": {"issuer": "https://issuer.test/pool", "subject": "agent-sample-2"},
        "remove_credential": {"issuer": "https://issuer.test/pool", "subject": "agent-sample"},
        "revoke_keys": ["key_" + "0" * 32],
    },
    "POST /v1/principals/{id}/keys": {"algorithm": "ed25519", "public_key": _PEM},
}
"""By method and path of the manifest."""

IDS = {
    "proposals": "prop",
    "memories": "mem",
    "quarantine": "mem",
    "conflicts": "con",
    "principals": "prin",
    "entities": "ent",
    "jobs": "job",
    "legal-holds": "hold",
    "private-memories": "mem",
    "dsar": "dsr",
    "relationships": "rel",
    "decay-reports": "rep",
    "remember": "att",
    "attempts": "att",
}
"""The kind of id that `{id}` is, by the segment before it."""


def path_with(path: str, digits: str = "0" * 32) -> str:
    """The path with an id of the right kind in it, if it has one."""
    if "{id}" not in path:
        return f"{path}?name=Ana" if path == "/v1/entities" else path
    head = path.split("/")[2]
    return path.replace("{id}", f"{IDS[head]}_{digits}")
