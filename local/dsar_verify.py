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
    rows = [json.loads(line) for line in _lines(export)]
    witnesses = [
        row for row in rows if row.get("action") == COMPLETED and row.get("target") == said.get("dsar_id")
    ]
    found = any(_witnessed(row["detail"]) == digest for row in witnesses)
    stood = _stood(rows, said)
    print(f"certificate {digest}: {'witnessed by the chain' if found else 'NOT in the chain'}")
    print(f"chain head it names: {'as exported' if stood else 'NOT as exported'}")
    whole = not broken and found and stood
    if tombstones:
        whole &= _buried(said, tombstones)
    return 0 if whole else 1


def _lines(path: Path) -> list[str]:
    """By line feeds alone: a text within a line may hold other separators."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _witnessed(detail: str) -> Any:
    """The digest of the certificate in the detail of a row, which may be forged."""
    try:
        said = json.loads(detail)
    except ValueError:
        return None
    return said.get("certificate") if isinstance(said, dict) else None


def _certificate(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        said: dict[str, Any] = document.get("certificate", document)
        if not isinstance(said, dict) or said.get("format") != "remembrancer-dsar-certificate-1":
            raise ValueError("another document")
        if not {"job_id", "tombstones"} <= said.keys() or not {"seq", "hash"} <= said["chain_head"].keys():
            raise ValueError("incomplete")
    except (ValueError, KeyError, AttributeError):
        raise Unverifiable(f"{path}: not a certificate") from None
    return said


def _stood(rows: Sequence[dict[str, Any]], said: dict[str, Any]) -> bool:
    """An export may begin later; a row that it has must agree."""
    head = said["chain_head"]
    at = [row for row in rows if row.get("seq") == head["seq"] and "action" in row]
    return all(row["hash"] == head["hash"] for row in at)


def _buried(said: dict[str, Any], files: Sequence[Path]) -> bool:
    """Whether the tombstones of this request give its root; the files may hold others too."""
    macs = [mac for path in files for mac in _macs(path, said["job_id"])]
    agrees: bool = said["tombstones"] == {"count": len(macs), "root": tombstone_root(macs)}
    print(f"tombstones: {len(macs)}, {'as certified' if agrees else 'NOT as certified'}")
    return agrees


def _macs(path: Path, job_id: str) -> list[bytes]:
    try:
        return [
            bytes.fromhex(one["mac"])
            for line in _lines(path)
            for one in json.loads(line)["tombstones"]
            if one["job_id"] == job_id
        ]
    except (ValueError, KeyError, TypeError):
        raise Unverifiable(f"{path}: lists no tombstones") from None
