"""The chain leaves as JSON lines and is verified without the database; checkpoints kept elsewhere witness it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from functions.checkpoint_sign.handler import statement
from local.__main__ import main
from remembrancer.domain.audit import AuditRow, ChainPoint, event_hash
from remembrancer.domain.audit_export import NotAnExport, _row, verify_lines
from remembrancer.domain.audit_export import lines as write
from tests.integration.probe import QuickEmbedder, public_pem, scratch_world, with_cursor
from tests.integration.world import ADMIN, AGENT, AUDITOR, World


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("export")) as made:
        for number in range(6):
            made.ingest(f"Note {number}.")
        yield made


def exported(world: World, *, limit: int = 4) -> list[str]:
    """Pages end to end, as the runbook says."""
    lines: list[str] = []
    after = 0
    while True:
        reply = world.call(AUDITOR, "GET", f"/v1/audit/export?after={after}&limit={limit}")
        assert reply.status == 200 and reply.headers["Content-Type"] == "application/x-ndjson"
        page = reply.text.splitlines(keepends=True)
        lines += page
        if len(page) == 1:
            return lines
        after = json.loads(page[-1])["seq"]


def checkpoint(
    world: World, seq: int, key: ec.EllipticCurvePrivateKey, path: Path, digest: bytes | None = None
) -> Path:
    """As `checkpoint_sign` stores it, with a key of this test; of another chain when `digest` is given."""
    [row] = world.sql("select hash from audit_event where tenant_id = %s and seq = %s", world.tenant_id, seq)
    shown = bytes(row["hash"] if digest is None else digest).hex()
    head = {"tenant_id": world.tenant_id, "sequence": seq, "head": shown, "at": "now"}
    signed = statement(head)
    signature = base64.b64encode(key.sign(signed, ec.ECDSA(hashes.SHA256()))).decode()
    path.write_text(json.dumps({"signature": signature, "statement": signed.decode()}))
    return path


def rewritten(lines: list[str], keep: int) -> list[str]:
    """A whole new chain in the place of the old one from the row `keep` on, with a head to match."""
    about = json.loads(lines[0])
    tenant = UUID(about["tenant_id"])
    rows = [_row(tenant, json.loads(line)) for line in lines if "format" not in line]
    made: list[AuditRow] = rows[:keep]
    for row in rows[keep:]:
        event = replace(row.event, prev_hash=made[-1].hash, action="harmless")
        made.append(AuditRow(event, event_hash(event)))
    return list(write(tenant, ChainPoint(made[-1].event.seq, made[-1].hash), {}, made))


def test_an_export_is_whole_without_the_database(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = exported(world)
    path, key = tmp_path / "chain.jsonl", ec.generate_private_key(ec.SECP256R1())
    path.write_text("".join(lines))
    pem = tmp_path / "key.pem"
    pem.write_text(public_pem(key))
    stored = checkpoint(world, 5, key, tmp_path / "5.json")
    assert main(["audit-verify", str(path)]) == 0
    assert main(["audit-verify", str(path), "--checkpoint", str(stored), "--key", str(pem)]) == 0
    assert capsys.readouterr().out.count("whole:") == 2
    # Somebody who can rewrite everything, head included, is found by the checkpoint alone.
    path.write_text("".join(rewritten(lines, 3)))
    assert main(["audit-verify", str(path)]) == 0
    assert main(["audit-verify", str(path), "--checkpoint", str(stored), "--key", str(pem)]) == 1
    assert "unwitnessed: row 5" in capsys.readouterr().out
    # Two checkpoints of one place that differ: one of the two chains was put in the place of the other.
    path.write_text("".join(lines))
    forged = checkpoint(world, 5, key, tmp_path / "5b.json", bytes(32))
    both = [one for file in (stored, forged) for one in ("--checkpoint", str(file))]
    for order in (both, both[2:] + both[:2]):
        assert main(["audit-verify", str(path), *order, "--key", str(pem)]) == 1
        assert "unwitnessed: row 5" in capsys.readouterr().out
    other = tmp_path / "other.pem"
    other.write_text(public_pem(ec.generate_private_key(ec.SECP256R1())))
    assert main(["audit-verify", str(path), "--checkpoint", str(stored), "--key", str(other)]) == 2
    assert main(["audit-verify", str(tmp_path / "absent")]) == 2
    path.write_text("no export")
    assert main(["audit-verify", str(path)]) == 2


def test_tampering_is_located_in_the_export(world: World) -> None:
    lines = exported(world, limit=5000)
    about, rows = lines[0], [line for line in lines if "format" not in line]
    edited = json.dumps({**json.loads(rows[2]), "action": "other"})
    cases = {
        "edited": [about, *rows[:2], edited, *rows[3:]],
        "missing": [about, *rows[:2], *rows[3:]],
        "truncated": [about, *rows[:-1]],
        "out_of_place": [about, *rows, rows[1]],
    }
    for kind, tampered in cases.items():
        _, outcome = verify_lines(tampered)
        assert kind in [fault.kind.value for fault in outcome.faults], kind
    swapped = [about, rows[1], rows[0], *rows[2:]]
    assert not verify_lines(swapped)[1].intact


@given(
    st.lists(st.text(max_size=30) | st.sampled_from(['{"format": 1}', "[]", "null", '{"a":1}']), min_size=1)
)
def test_what_is_no_export_is_said_to_be_none(lines: list[str]) -> None:
    with pytest.raises(NotAnExport):
        verify_lines(lines)


def test_from_the_last_checkpoint_or_from_the_start(world: World) -> None:
    key = "insert into audit_checkpoint values (%s, %s, %s, now(), 'k', null, 's')"
    [row] = world.sql("select hash from audit_event where tenant_id = %s and seq = 4", world.tenant_id)
    world.sql(key, world.tenant_id, 4, row["hash"])

    def verify(begin: str) -> Any:
        reply = world.call(AUDITOR, "GET", f"/v1/audit/verify?from={begin}")
        assert reply.status == 200, reply.text
        return reply.json

    whole, tail = verify("start"), verify("checkpoint")
    assert whole["ok"] and tail["ok"] and (whole["from"], tail["from"]) == (0, 4)
    assert whole["rows"] == whole["events"] and tail["rows"] == tail["events"] - 4
    assert whole["checkpoints"] == 1
    assert world.call(AUDITOR, "GET", "/v1/audit/verify?from=yesterday").code == "invalid_input"
    # A checkpoint that says otherwise than the chain: both ways find it.
    world.sql("update audit_checkpoint set head = sha256('x')")
    assert [fault["seq"] for fault in verify("start")["faults"]] == [4]
    assert [fault["seq"] for fault in verify("checkpoint")["faults"]] == [5]
    world.sql("delete from audit_checkpoint")


def test_rows_appended_while_it_is_verified_are_no_fault(world: World) -> None:
    """Other connections append between the reading of the head and that of the rows."""

    def before(query: str) -> None:
        if "from audit_event where" in query:
            world.call(AGENT, "POST", "/v1/ingest", {"content": f"Meanwhile {len(query)}."})

    with_cursor(world, "audit", before)
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
    page = world.call(AUDITOR, "GET", "/v1/audit/export?limit=5000").text
    assert verify_lines(page.splitlines())[1].intact
    world._open.pop("audit").database.close()


def test_a_row_beyond_the_head_is_found(world: World) -> None:
    world.sql(
        "insert into audit_event select tenant_id, seq + 1, at, actor_id, actor_kind, action, target, detail,"
        " hash, sha256('x') from audit_event where tenant_id = %s order by seq desc limit 1",
        world.tenant_id,
    )
    found = world.call(AUDITOR, "GET", "/v1/audit/verify").json
    assert found["ok"] is False and [fault["seq"] for fault in found["faults"]] == [found["events"] + 1]
    # It keeps every row out, so that the alert is what tells.
    alerts = world.sql("select target from outbox where kind = 'chain_broken'")
    assert str(found["events"]) in [row["target"] for row in alerts]


def test_only_auditors_export(world: World) -> None:
    for person in (ADMIN, AGENT):
        assert world.call(person, "GET", "/v1/audit/export").code == "forbidden"
