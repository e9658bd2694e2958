"""Verifies an export of an audit chain without the database, against checkpoints that were kept elsewhere."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from remembrancer.domain.audit import ChainPoint
from remembrancer.domain.audit_export import NotAnExport, verify_lines

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Unverifiable(Exception):
    """A file is not what it should be; the text says which and why."""


def audit_verify(export: Path, checkpoints: Sequence[Path], key: Path | None) -> int:
    """0 when the chain is whole and agrees with every checkpoint, 1 when not; says where it does not."""
    try:
        points = {point: tenant for tenant, point in (_checkpoint(path, key) for path in checkpoints)}
        with export.open(encoding="utf-8") as lines:
            found, outcome = verify_lines(lines, witnesses=points)
    except (NotAnExport, UnicodeDecodeError) as error:
        raise Unverifiable(f"{export}: {error}") from None
    if set(points.values()) - {str(found.tenant)}:
        raise Unverifiable("a checkpoint is of another tenant")
    for fault in outcome.faults:
        place = f"row {fault.seq}" if fault.until == fault.seq else f"rows {fault.seq} to {fault.until}"
        print(f"{fault.kind.value}: {place}")
    witnessed = f"{len(points)} checkpoints" + ("" if key else ", whose signatures were not checked")
    print(
        f"{'whole' if outcome.intact else 'BROKEN'}: {outcome.rows} rows, head {outcome.reached.seq}; {witnessed}"
    )
    return 0 if outcome.intact else 1


def _checkpoint(path: Path, key: Path | None) -> tuple[str, ChainPoint]:
    """The tenant and the point of a checkpoint's object, as `checkpoint_sign` stores it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        statement = str(document["statement"])
        if key is not None:
            _check(key, base64.b64decode(document["signature"], validate=True), statement.encode())
        said: dict[str, Any] = json.loads(statement)
        if type(said["sequence"]) is not int or not _SHA256.fullmatch(said["head"]):
            raise ValueError("malformed")
        return str(said["tenant_id"]), ChainPoint(said["sequence"], bytes.fromhex(said["head"]))
    except InvalidSignature:
        raise Unverifiable(f"{path}: the signature is not of this key") from None
    except (ValueError, TypeError, KeyError):
        raise Unverifiable(f"{path}: not a checkpoint") from None


def _check(key: Path, signature: bytes, statement: bytes) -> None:
    public = serialization.load_pem_public_key(key.read_bytes())
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise Unverifiable(f"{key}: not an ECDSA key")
    public.verify(signature, statement, ec.ECDSA(hashes.SHA256()))
