"""Every way to change a chain is found and located."""

import dataclasses
import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.audit import (
    GENESIS,
    MAX_FAULTS,
    AuditEvent,
    AuditRow,
    ChainPoint,
    Fault,
    FaultKind,
    event_hash,
    verify,
)

TENANT = UUID("018f0000-0000-7000-8000-000000000001")
OTHER = UUID("018f0000-0000-7000-8000-000000000002")
START = datetime(2026, 11, 29, 12, 0, 0, 123_456, tzinfo=UTC)


def sealed(event):
    return AuditRow(event, event_hash(event))


def extend(rows, count, tenant=TENANT, note=""):
    """The chain continued by `count` honest rows."""
    rows = list(rows)
    for _ in range(count):
        seq = len(rows) + 1
        event = AuditEvent(
            tenant=tenant,
            seq=seq,
            at=START + timedelta(seconds=seq),
            actor_id=OTHER if seq % 2 else None,
            actor_kind="human" if seq % 2 else "system",
            action="proposal_approved",
            target=f"prop_{seq}" if seq % 3 else None,
            detail=f'{{"n":{seq},"note":"{note}"}}',
            prev_hash=rows[-1].hash if rows else GENESIS.hash,
        )
        rows.append(sealed(event))
    return rows


CHAIN = extend([], 10)
HEAD = ChainPoint(10, CHAIN[-1].hash)


def found(rows, head=HEAD, **options):
    return verify(rows, tenant=TENANT, head=head, **options).faults


def rewritten_from(index, **changes):
    """The row changed and everything after it sealed anew: what a writer of the table can do."""
    rows = CHAIN[:index]
    for row in CHAIN[index:]:
        prev_hash = rows[-1].hash if rows else GENESIS.hash
        changed = changes if row is CHAIN[index] else {}
        rows.append(sealed(dataclasses.replace(row.event, prev_hash=prev_hash, **changed)))
    return rows


def test_an_untouched_chain_is_intact():
    outcome = verify(CHAIN, tenant=TENANT, head=HEAD, checkpoints=[ChainPoint(4, CHAIN[3].hash)])
    assert outcome.intact
    assert (outcome.rows, outcome.reached) == (10, HEAD)


def test_a_part_is_verified_from_a_checkpoint():
    checkpoint = ChainPoint(5, CHAIN[4].hash)
    outcome = verify(CHAIN[5:], tenant=TENANT, head=HEAD, from_checkpoint=checkpoint)
    assert outcome.intact
    assert (outcome.rows, outcome.reached) == (5, HEAD)


def test_an_empty_chain_is_intact():
    assert verify([], tenant=TENANT, head=GENESIS).intact
    assert verify([], tenant=TENANT).reached == GENESIS


CHANGES = [
    {"at": START + timedelta(seconds=5, microseconds=1)},
    {"actor_id": TENANT},
    {"actor_id": None},
    {"actor_kind": "agent"},
    {"action": "proposal_rejected"},
    {"target": "prop_6"},
    {"target": None},
    {"target": ""},
    {"detail": "{}"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_an_edit_is_located_and_only_it(change):
    rows = list(CHAIN)
    rows[4] = AuditRow(dataclasses.replace(rows[4].event, **change), rows[4].hash)
    assert found(rows) == (Fault(FaultKind.EDITED, 5, 5),)


def test_an_edit_sealed_anew_breaks_the_link_after_it():
    rows = list(CHAIN)
    rows[4] = sealed(dataclasses.replace(rows[4].event, action="nothing_happened"))
    assert found(rows) == (Fault(FaultKind.RELINKED, 6, 6),)


def test_an_edit_of_the_last_row_sealed_anew_contradicts_the_head():
    rows = rewritten_from(9, action="nothing_happened")
    assert found(rows) == (Fault(FaultKind.UNWITNESSED, 10, 10),)


def test_a_rewritten_chain_with_its_head_is_betrayed_by_a_signed_checkpoint():
    rows = rewritten_from(2, action="nothing_happened")
    head = ChainPoint(10, rows[-1].hash)
    assert found(rows, head=head) == ()
    assert found(
        rows, head=head, checkpoints=[ChainPoint(6, CHAIN[5].hash), ChainPoint(9, CHAIN[8].hash)]
    ) == (
        Fault(FaultKind.UNWITNESSED, 6, 6),
        Fault(FaultKind.UNWITNESSED, 9, 9),
    )


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 4), (5, 5), (4, 7), (9, 9)])
def test_a_deletion_is_located(first, last):
    rows = CHAIN[: first - 1] + CHAIN[last:]
    assert found(rows) == (Fault(FaultKind.MISSING, first, last),)


@pytest.mark.parametrize("kept", [0, 1, 9])
def test_a_truncation_is_located_against_the_head(kept):
    assert found(CHAIN[:kept]) == (Fault(FaultKind.TRUNCATED, kept + 1, 10),)


def test_a_truncation_with_its_head_is_located_against_a_checkpoint():
    head = ChainPoint(7, CHAIN[6].hash)
    checkpoint = ChainPoint(9, CHAIN[8].hash)
    assert found(CHAIN[:7], head=head) == ()
    assert found(CHAIN[:7], head=head, checkpoints=[ChainPoint(9, CHAIN[8].hash)]) == (
        Fault(FaultKind.TRUNCATED, 8, 9),
    )
    assert found([], head=head, from_checkpoint=checkpoint) == (Fault(FaultKind.TRUNCATED, 8, 9),)


def test_an_inserted_row_is_located():
    forged = sealed(dataclasses.replace(CHAIN[4].event, action="forged", prev_hash=CHAIN[4].hash))
    assert found([*CHAIN[:5], forged, *CHAIN[5:]]) == (Fault(FaultKind.OUT_OF_PLACE, 5, 5),)


def test_an_insertion_that_renumbers_the_rest_is_located():
    forged = sealed(dataclasses.replace(CHAIN[4].event, seq=6, action="forged", prev_hash=CHAIN[4].hash))
    moved = [AuditRow(dataclasses.replace(row.event, seq=row.event.seq + 1), row.hash) for row in CHAIN[5:]]
    faults = found([*CHAIN[:5], forged, *moved])
    assert [fault.seq for fault in faults] == [7, 8, 9, 10, 11]
    assert {fault.kind for fault in faults} == {FaultKind.EDITED}


def test_a_swap_of_contents_names_both_rows():
    rows = list(CHAIN)
    rows[2] = AuditRow(dataclasses.replace(CHAIN[6].event, seq=3), CHAIN[6].hash)
    rows[6] = AuditRow(dataclasses.replace(CHAIN[2].event, seq=7), CHAIN[2].hash)
    faults = found(rows)
    assert Fault(FaultKind.EDITED, 3, 3) in faults
    assert Fault(FaultKind.EDITED, 7, 7) in faults
    # The rows after the two are genuine and no longer continue what stands before them.
    assert {fault.seq for fault in faults} == {3, 4, 7, 8}


def test_rows_out_of_order_are_located():
    rows = [*CHAIN[:3], CHAIN[4], CHAIN[3], *CHAIN[5:]]
    assert found(rows) == (Fault(FaultKind.MISSING, 4, 4), Fault(FaultKind.OUT_OF_PLACE, 4, 4))


def test_a_row_of_another_tenant_is_located():
    foreign = extend([], 10, tenant=OTHER)
    assert found([*CHAIN[:4], foreign[4], *CHAIN[5:]]) == (
        Fault(FaultKind.FOREIGN, 5, 5),
        Fault(FaultKind.MISSING, 5, 5),
    )


def test_rows_beyond_the_head_are_located():
    assert found(extend(CHAIN, 2)) == (
        Fault(FaultKind.UNWITNESSED, 11, 11),
        Fault(FaultKind.UNWITNESSED, 12, 12),
    )


def test_a_head_that_contradicts_a_checkpoint_is_located():
    assert found(CHAIN[5:], from_checkpoint=ChainPoint(5, bytes(32))) == (Fault(FaultKind.RELINKED, 6, 6),)
    assert found([], head=ChainPoint(5, CHAIN[4].hash), from_checkpoint=ChainPoint(5, bytes(32))) == (
        Fault(FaultKind.UNWITNESSED, 5, 5),
    )
    assert found([], head=ChainPoint(0, bytes(31) + b"\1")) == (Fault(FaultKind.UNWITNESSED, 0, 0),)


def test_a_foreign_chain_gives_a_bounded_list():
    outcome = verify(extend([], 500, tenant=OTHER), tenant=TENANT)
    assert len(outcome.faults) == MAX_FAULTS
    assert outcome.rows == 500


FIELD_NAMES = [field.name for field in dataclasses.fields(AuditEvent)]
EVENTS = st.builds(
    AuditEvent,
    tenant=st.uuids(),
    seq=st.integers(1, 2**63 - 1),
    at=st.datetimes(timezones=st.just(UTC)),
    actor_id=st.none() | st.uuids(),
    actor_kind=st.text(max_size=5),
    action=st.text(max_size=5),
    target=st.none() | st.text(max_size=5),
    detail=st.text(max_size=5),
    prev_hash=st.binary(min_size=32, max_size=32),
)


@given(EVENTS, EVENTS, st.sampled_from(FIELD_NAMES))
def test_every_field_is_under_the_hash(event, other, name):
    changed = dataclasses.replace(event, **{name: getattr(other, name)})
    assert (event_hash(changed) == event_hash(event)) == (changed == event)


def test_neighbouring_fields_cannot_trade_bytes():
    event = CHAIN[0].event
    left = dataclasses.replace(event, action="ab", target="c")
    right = dataclasses.replace(event, action="a", target="bc")
    assert event_hash(left) != event_hash(right)
    assert event_hash(dataclasses.replace(event, target=None)) != event_hash(
        dataclasses.replace(event, target="")
    )


def test_the_layout_is_frozen():
    """Chains outlive the code. The expected bytes are written out, not computed by the function."""
    event = AuditEvent(TENANT, 7, START, None, "human", "é", "", "{}", b"\x11" * 32)
    expected = (
        b"\0\0\0\x14remembrancer-audit-1"
        b"\0\0\0\x24018f0000-0000-7000-8000-000000000001"
        b"\0\0\0\x017"
        b"\0\0\0\x101795953600123456"
        b"\xff\xff\xff\xff"
        b"\0\0\0\x05human"
        b"\0\0\0\x02\xc3\xa9"
        b"\0\0\0\0"
        b"\0\0\0\x02{}"
        b"\0\0\0\x20" + b"\x11" * 32
    )
    assert event_hash(event) == hashlib.sha256(expected).digest()
