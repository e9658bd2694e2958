"""Verifies the certificate of a data subject's request offline: against an export of the chain, and the tombstones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.audit_verify import Unverifiable, audit_verify
from remembrancer.domain.dsar import certificate_digest, tombstone_root

COMPLETED = "dsar_completed"


def dsar_verify(
    certificate: Path, export: Path, tombstones: Sequence[Path], checkpoints: Sequence[Path], key: Path | None
) -> int:
    """0 when the chain is whole and witnesses the certificate, 1 when not. Raises Unverifiable."""
    said = _certificate(certificate)
    broken = audit_verify(export, checkpoints, key)
    digest = certificate_digest(said).hex()
    rows = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines() if line.strip()]
    witnesses = [
        row for row in rows if row.get("action") == COMPLETED and row.get("target") == said.get("dsar_id")
    ]
    found = any(json.loads(row["detail"]).get("certificate") == digest for row in witnesses)
    stood = _stood(rows, said)
    print(f"certificate {digest}: {'witnessed by the chain' if found else 'NOT in the chain'}")
    print(f"chain head it names: {'as exported' if stood else 'NOT as exported'}")
    whole = not broken and found and stood
    if tombstones:
        whole &= _buried(said, tombstones)
    return 0 if whole else 1


def _certificate(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        said: dict[str, Any] = document.get("certificate", document)
        if not isinstance(said, dict) or said.get("format") != "remembrancer-dsar-certificate-1":
            raise ValueError("another document")
    except (ValueError, AttributeError):
        raise Unverifiable(f"{path}: not a certificate") from None
    return said


def _stood(rows: Sequence[dict[str, Any]], said: dict[str, Any]) -> bool:
    """An export may begin later; a row that it has must agree."""
    head = said["chain_head"]
    at = [row for row in rows if row.get("seq") == head["seq"] and "action" in row]
    return all(row["hash"] == head["hash"] for row in at)


def _buried(said: dict[str, Any], files: Sequence[Path]) -> bool:
    """Whether the tombstones of this request give its root; the files may hold others too."""
    macs = [
        bytes.fromhex(one["mac"])
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
        for one in json.loads(line)["tombstones"]
        if one["job_id"] == said["job_id"]
    ]
    agrees: bool = said["tombstones"] == {"count": len(macs), "root": tombstone_root(macs)}
    print(f"tombstones: {len(macs)}, {'as certified' if agrees else 'NOT as certified'}")
    return agrees
