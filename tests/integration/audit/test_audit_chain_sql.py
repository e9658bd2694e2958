"""The chain as PostgreSQL writes it is the chain that Python verifies, also under concurrent writers."""

import json
import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain.audit import (
    GENESIS,
    AuditEvent,
    AuditRow,
    ChainPoint,
    Fault,
    FaultKind,
    event_hash,
    verify,
)

APPEND = "select audit_append(%s, %s, %s, %s, %s)"


@pytest.fixture
def connection(database):
    with database.superuser() as connection:
        yield connection


def as_tenant(connection, tenant):
    connection.execute("select set_config('rem.tenant', %s, true)", [str(tenant)])


def append(
    connection, tenant, *, actor=None, kind="human", action="memory_admitted", target=None, detail="{}"
):
    with connection.transaction():
        as_tenant(connection, tenant)
        return connection.execute(APPEND, [actor, kind, action, target, detail]).fetchone()[0]


def rows_of(connection, tenant):
    cursor = connection.execute(
        "select tenant_id, seq, at, actor_id, actor_kind, action, target, detail, prev_hash, hash"
        " from audit_event where tenant_id = %s order by seq",
        [tenant],
    )
    return [AuditRow(AuditEvent(*row[:-1]), row[-1]) for row in cursor]


def head_of(connection, tenant):
    row = connection.execute("select seq, hash from audit_head where tenant_id = %s", [tenant]).fetchone()
    return ChainPoint(*row) if row else GENESIS


def check(connection, tenant):
    return verify(rows_of(connection, tenant), tenant=tenant, head=head_of(connection, tenant))


def test_a_chain_written_by_sql_verifies(connection):
    tenant = uuid4()
    before = datetime.now(UTC)
    assert append(connection, tenant, actor=uuid4(), target="mem_1", detail='{"n":1}') == 1
    assert append(connection, tenant, kind="system") == 2
    assert append(connection, tenant, action="é\U0001f511", target="") == 3
    outcome = check(connection, tenant)
    assert outcome.intact
    assert outcome.rows == 3
    first = rows_of(connection, tenant)[0].event
    assert first.prev_hash == GENESIS.hash
    assert abs(first.at - before) < timedelta(seconds=60)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(
    tenant=st.uuids(),
    seq=st.integers(1, 2**63 - 1),
    at=st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)),
    actor_id=st.none() | st.uuids(),
    kind=TEXT,
    action=TEXT,
    target=st.none() | TEXT,
    detail=TEXT,
    prev_hash=st.binary(min_size=32, max_size=32),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_python_and_sql_agree_on_any_event(
    connection, tenant, seq, at, actor_id, kind, action, target, detail, prev_hash
):
    event = AuditEvent(tenant, seq, at, actor_id, kind, action, target, detail, prev_hash)
    in_sql = connection.execute(
        "select audit_hash(%s::uuid, %s::bigint, %s::timestamptz, %s::uuid, %s, %s, %s, %s, %s::bytea)",
        [tenant, seq, at, actor_id, kind, action, target, detail, prev_hash],
    ).fetchone()[0]
    assert in_sql == event_hash(event)


def test_many_events_keep_their_order(connection):
    tenant, actor = uuid4(), uuid4()
    append(connection, tenant)
    events = [
        {"actor": str(actor), "actor_kind": "human", "action": "a", "target": "mem_1", "detail": '{"i":0}'},
        {"actor": None, "actor_kind": "system", "action": "b", "target": None, "detail": "{}"},
    ]
    with connection.transaction():
        as_tenant(connection, tenant)
        last = connection.execute("select audit_append_many(%s)", [json.dumps(events)]).fetchone()[0]
        assert connection.execute("select audit_append_many('[]')").fetchone() == (None,)
    assert last == 3
    assert check(connection, tenant).intact
    written = [row.event for row in rows_of(connection, tenant)[1:]]
    assert [(e.actor_id, e.actor_kind, e.action, e.target, e.detail) for e in written] == [
        (actor, "human", "a", "mem_1", '{"i":0}'),
        (None, "system", "b", None, "{}"),
    ]


def test_without_a_tenant_nothing_is_appended(connection):
    with pytest.raises(psycopg.errors.NotNullViolation):
        connection.execute(APPEND, [None, "human", "a", None, "{}"])


def test_a_rolled_back_change_leaves_no_row_and_no_gap(connection):
    tenant = uuid4()
    append(connection, tenant)
    with connection.transaction(force_rollback=True):
        as_tenant(connection, tenant)
        connection.execute(APPEND, [None, "human", "lost", None, "{}"])
    assert append(connection, tenant) == 2
    assert check(connection, tenant).intact


def test_concurrent_writers_never_fork_the_chain(database):
    tenants = [uuid4(), uuid4()]
    start = threading.Barrier(8)

    def write():
        with database.superuser() as own:
            start.wait()
            for number in range(40):
                append(own, tenants[number % 2])

    writers = [threading.Thread(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with database.superuser() as connection:
        for tenant in tenants:
            outcome = check(connection, tenant)
            assert outcome.intact
            assert outcome.rows == 160
            times = [row.event.at for row in rows_of(connection, tenant)]
            assert times == sorted(times)


@pytest.mark.parametrize(
    ("tampering", "fault"),
    [
        ("update audit_event set action = 'nothing' where seq = 4", Fault(FaultKind.EDITED, 4, 4)),
        (
            "update audit_event set at = at + interval '1 microsecond' where seq = 4",
            Fault(FaultKind.EDITED, 4, 4),
        ),
        ("delete from audit_event where seq = 4", Fault(FaultKind.MISSING, 4, 4)),
        ("delete from audit_event where seq > 4", Fault(FaultKind.TRUNCATED, 5, 6)),
        ("delete from audit_event", Fault(FaultKind.TRUNCATED, 1, 6)),
        ("update audit_event set seq = 7 where seq = 4", Fault(FaultKind.MISSING, 4, 4)),
        ("update audit_head set seq = 5", Fault(FaultKind.UNWITNESSED, 5, 5)),
    ],
)
def test_tampering_in_the_table_is_located(connection, tampering, fault):
    tenant = uuid4()
    for number in range(6):
        append(connection, tenant, target=f"mem_{number}")
    assert check(connection, tenant).intact
    connection.execute(tampering)
    assert check(connection, tenant).faults[0] == fault
