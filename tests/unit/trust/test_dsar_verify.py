"""Files that are not what the offline verifier of certificates is given."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from local.audit_verify import Unverifiable
from local.dsar_verify import COMPLETED, dsar_verify
from remembrancer.domain.audit import GENESIS, AuditEvent, AuditRow, ChainPoint, event_hash
from remembrancer.domain.audit_export import lines
from remembrancer.domain.dsar import certificate_digest, tombstone_root

CERTIFICATE: dict[str, Any] = {
    "format": "remembrancer-dsar-certificate-1",
    "dsar_id": "dsr_1",
    "job_id": "job_1",
    "tombstones": {"count": 0, "root": tombstone_root([])},
    "chain_head": {"seq": 0, "hash": GENESIS.hash.hex()},
}
TOMBSTONES = json.dumps({"tombstones": []})


def export(folder: Path, detail: str) -> Path:
    event = AuditEvent(
        UUID(int=1),
        1,
        datetime(2026, 1, 1, tzinfo=UTC),
        None,
        "job",
        COMPLETED,
        "dsr_1",
        detail,
        GENESIS.hash,
    )
    row = AuditRow(event, event_hash(event))
    path = folder / "chain.jsonl"
    path.write_text("".join(lines(UUID(int=1), ChainPoint(1, row.hash), {}, [row])), encoding="utf-8")
    return path


def verified(folder: Path, certificate: Any, detail: str, tombstones: str = TOMBSTONES) -> int:
    said, buried = folder / "certificate.json", folder / "tombstones.jsonl"
    said.write_text(json.dumps(certificate), encoding="utf-8")
    buried.write_text(tombstones, encoding="utf-8")
    return dsar_verify(said, export(folder, detail), [buried], [], None)


def witness(**more: Any) -> str:
    return json.dumps({"certificate": certificate_digest(CERTIFICATE).hex(), **more}, ensure_ascii=False)


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x7f"])
def test_a_line_of_an_export_ends_at_its_line_feed_alone(tmp_path: Path, separator: str) -> None:
    assert verified(tmp_path, CERTIFICATE, witness(note=f"a{separator}b")) == 0


@pytest.mark.parametrize("detail", ["[]", "null", "5", "{"])
def test_a_row_whose_detail_is_no_object_witnesses_nothing(tmp_path: Path, detail: str) -> None:
    assert verified(tmp_path, CERTIFICATE, detail) == 1


@pytest.mark.parametrize("member", ["chain_head", "job_id", "tombstones"])
def test_a_certificate_that_lacks_a_member_is_none(tmp_path: Path, member: str) -> None:
    with pytest.raises(Unverifiable):
        verified(tmp_path, {k: v for k, v in CERTIFICATE.items() if k != member}, witness())


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"tombstones": [1]}', '{"tombstones": [{"job_id": "job_1", "mac": 5}]}']
)
def test_a_file_that_lists_no_tombstones_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unverifiable):
        verified(tmp_path, CERTIFICATE, witness(), text)
