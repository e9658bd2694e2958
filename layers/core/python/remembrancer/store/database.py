"""The unit of work: the one place that opens transactions, sets who is asking, and ends with the audit row.

Four kinds of transaction, so that a route cannot forget a rule:
- `read`: read only, refused by PostgreSQL when it writes;
- `operate`: operational rows alone (idempotency, nonces), no audit;
- `write`: must record at least one audit event, appended as the last statement before COMMIT;
- `job`: a write on behalf of a schedule, one tenant at a time.

The first three count the request against its principal's and its tenant's rate and quotas, and log which rows with
personal data were shown as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.ports import Clock, Ids
from remembrancer.domain.principal import Credential, Principal, effective_capabilities
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.tenant_settings import TenantSettings

T = TypeVar("T")
Row = dict[str, Any]
Connection = psycopg.Connection[Row]

ATTEMPTS = 4
"""A deadlock or serialization victim is run again this often before the caller sees commit_conflict."""

# pgvector goes on scanning until enough rows pass the filters; without it a small tenant gets nothing.
_SET = """
set_config('statement_timeout', %(timeout_ms)s, true), set_config('TimeZone', 'UTC', true),
set_config('hnsw.iterative_scan', 'relaxed_order', true), transaction_timestamp() as now
"""
# The spaces are those of Principal.visible_spaces, which `_enter` compares with them.
_ENTER = f"""
select p.*, set_config('rem.tenant', p.tenant_id::text, true), {_SET},
       set_config('rem.spaces', concat_ws(',', p.private_space, case when p.team_grant <> 'none' then p.team_space end),
                  true) as spaces
from resolve_principal(%(issuer)s, %(subject)s) p
"""
_SETTINGS = f"""
select set_config('rem.tenant', %(tenant)s, true), set_config('rem.spaces', %(spaces)s, true), {_SET}
"""
_TAKE = "select rate_take(%(issuer)s, %(subject)s) as wait, null as quota"
# For a request with text: the quota is not asked when the rate says no.
_TAKE_BYTES = """
select coalesce(nullif(r.wait, 0), q.wait) as wait, q.quota
from (select rate_take(%(issuer)s, %(subject)s) as wait offset 0) r
left join lateral quota_take(%(issuer)s, %(subject)s, %(bytes)s) q on r.wait = 0
"""


@dataclass
class Unit:
    """One transaction in progress. `now` is the database's clock, the same for all that the transaction writes."""

    connection: Connection
    tenant_id: UUID
    now: datetime
    new_id: Ids
    who: Principal | None
    _events: list[tuple[str, str | None, str]] = field(default_factory=list)
    _alerts: list[tuple[str, str]] = field(default_factory=list)
    _seen: list[str] = field(default_factory=list)

    @property
    def principal(self) -> Principal:
        """Who asks. Raises LookupError in a job."""
        if self.who is None:
            raise LookupError("a job has no principal")
        return self.who

    def rows(self, sql: LiteralString, params: Mapping[str, Any] | None = None) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    def row(self, sql: LiteralString, params: Mapping[str, Any] | None = None) -> Row | None:
        return self.connection.execute(sql, params).fetchone()

    def run(self, sql: LiteralString, params: Mapping[str, Any] | None = None) -> int:
        """Rows affected."""
        return self.connection.execute(sql, params).rowcount

    def run_many(self, sql: LiteralString, params: Sequence[Mapping[str, Any]]) -> None:
        if params:
            with self.connection.cursor() as cursor:
                cursor.executemany(sql, params)

    def audit(self, action: str, target: str | None = None, **detail: Any) -> None:
        """Record what happened; appended to the tenant's chain at the end. Never content."""
        self._events.append((action, target, canonical_json(detail)))

    def alert(self, kind: str, target: str) -> None:
        """Tell the outside, by ids only; delivered after the commit, at least once."""
        self._alerts.append((kind, target))

    def saw_personal(self, public_ids: Iterable[str]) -> None:
        """These rows' personal data is shown unmasked: it goes to the read log before the answer does."""
        self._seen.extend(public_ids)

    @property
    def seen_personal(self) -> list[str]:
        """Each once, in the order of the ids."""
        return sorted(set(self._seen))

    @property
    def alerted(self) -> bool:
        return bool(self._alerts)

    def close(self, *, audited: bool) -> None:
        """The end of every transaction: the alerts, then the audit rows, last of all."""
        if audited and not self._events:
            raise RuntimeError("a write ended without an audit event")
        if self._alerts:
            self.run(
                "insert into outbox (tenant_id, delivery_id, kind, target, created_at)"
                " select %(tenant)s, id, kind, target, %(now)s"
                " from unnest(%(ids)s::uuid[], %(kinds)s::text[], %(targets)s::text[]) as alert (id, kind, target)",
                {
                    "tenant": self.tenant_id,
                    "ids": [self.new_id() for _ in self._alerts],
                    "kinds": [kind for kind, _ in self._alerts],
                    "targets": [target for _, target in self._alerts],
                    "now": self.now,
                },
            )
        if self._events:
            actor = None if self.who is None else str(self.who.principal_id)
            kind = "system" if self.who is None else self.who.kind
            events = [
                {"actor": actor, "actor_kind": kind, "action": action, "target": target, "detail": detail}
                for action, target, detail in self._events
            ]
            self.run("select audit_append_many(%(events)s)", {"events": Jsonb(events)})


class Database:
    """One connection an environment, reopened once when it broke between two requests.

    `connect` opens a connection in autocommit mode and raises psycopg.OperationalError when it cannot.
    `kick` wakes the delivery of alerts after a commit that raised one. `clock` replaces the database's own
    clock (tests only).
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        new_id: Ids,
        *,
        kick: Callable[[UUID, datetime], None] | None = None,
        clock: Clock | None = None,
        statement_timeout_ms: int = 25_000,
    ) -> None:
        self._connect = connect
        self._new_id = new_id
        self._kick = kick
        self._clock = clock
        self._timeout_ms = statement_timeout_ms
        self._connection: Connection | None = None
        self._counted: Credential | None = None

    def read(self, credential: Credential, work: Callable[[Unit], T]) -> T:
        return self._serve(credential, work, read_only=True, audited=False)

    def operate(self, credential: Credential, work: Callable[[Unit], T]) -> T:
        return self._serve(credential, work, read_only=False, audited=False)

    def write(self, credential: Credential, work: Callable[[Unit], T]) -> T:
        return self._serve(credential, work, read_only=False, audited=True)

    def job(
        self,
        tenant_id: UUID,
        work: Callable[[Unit], T],
        *,
        audited: bool = True,
        spaces: tuple[UUID, ...] = (),
    ) -> T:
        """`spaces` for roles that see those of their transaction alone."""
        return self._transact(
            lambda c: self._job(c, tenant_id, spaces), work, read_only=False, audited=audited
        )

    def tenants(self) -> list[tuple[UUID, TenantSettings]]:
        """Every tenant, for scheduled work."""
        rows = self._transact(
            lambda c: Unit(c, UUID(int=0), datetime.min, self._new_id, None),
            lambda unit: unit.rows("select tenant_id, settings from list_tenants()"),
            read_only=True,
            audited=False,
        )
        return [(row["tenant_id"], TenantSettings.model_validate(row["settings"])) for row in rows]

    def attempt(self, attempt_id: UUID) -> tuple[UUID, Credential] | None:
        """Whose an attempt is and the credential that its work goes on with: a workflow knows its id alone.

        The request was counted against its rate when it came in, so what follows of it is not.
        """
        rows = self._transact(
            lambda c: Unit(c, UUID(int=0), datetime.min, self._new_id, None),
            lambda unit: unit.rows("select * from resolve_attempt(%(id)s)", {"id": attempt_id}),
            read_only=True,
            audited=False,
        )
        if not rows:
            return None
        [row] = rows
        self._counted = Credential(
            row["issuer"], row["subject"], frozenset(row["scopes"]), frozenset(row["groups"])
        )
        return row["tenant_id"], self._counted

    def migrate(self, migrate: Callable[[Connection], T]) -> T:
        """Hand the bare connection to the migrations, which open their own transactions."""
        return migrate(self._open())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _serve(
        self, credential: Credential, work: Callable[[Unit], T], *, read_only: bool, audited: bool
    ) -> T:
        def enter(connection: Connection) -> Unit:
            return self._enter(connection, credential)

        def count(connection: Connection) -> None:
            self._count(connection, credential)

        seen: list[str] = []

        def watched(unit: Unit) -> T:
            result = work(unit)
            seen[:] = unit.seen_personal
            return result

        result = self._transact(enter, watched, before=count, read_only=read_only, audited=audited)
        if seen:
            self._log_personal(credential, seen)
        return result

    def _log_personal(self, credential: Credential, seen: Sequence[str]) -> None:
        """Past the transaction, which may be read only; what cannot be logged is not shown."""
        try:
            self._open().execute(
                "select pii_read_log(%(issuer)s, %(subject)s, %(rows)s)",
                {"issuer": credential.issuer, "subject": credential.subject, "rows": list(seen)},
            )
        except psycopg.OperationalError:
            self.close()
            raise Problem("database_failure", retry_after=1) from None

    def _count(self, connection: Connection, credential: Credential) -> None:
        """One token a request, and its bytes of text, before its first transaction. Every request has a credential
        object of its own.

        It is here because nothing of a tenant is reached by another way: no route can leave it out.
        Raises Problem rate_limited.
        """
        if credential is self._counted:
            return
        row = connection.execute(
            _TAKE_BYTES if credential.text_bytes else _TAKE,
            {"issuer": credential.issuer, "subject": credential.subject, "bytes": credential.text_bytes},
        ).fetchone()
        assert row is not None
        if row["wait"]:
            used = (
                [FieldError("", row["quota"], "The quota of this name is used up.")] if row["quota"] else []
            )
            raise Problem("rate_limited", used, retry_after=row["wait"])
        self._counted = credential

    def _enter(self, connection: Connection, credential: Credential) -> Unit:
        row = connection.execute(
            _ENTER,
            {
                "issuer": credential.issuer,
                "subject": credential.subject,
                "timeout_ms": str(self._timeout_ms),
            },
        ).fetchone()
        # The row is read in every transaction, so that a deactivated principal stops at once.
        if row is None or not row["active"] or credential.principal_id not in (None, row["principal_id"]):
            raise Problem("forbidden")
        principal = Principal(
            tenant_id=row["tenant_id"],
            principal_id=row["principal_id"],
            kind=row["kind"],
            capabilities=effective_capabilities(
                row["kind"], frozenset(row["capabilities"]), credential.groups
            ),
            scopes=credential.scopes,
            team_grant=row["team_grant"],
            team_space=row["team_space"],
            private_space=row["private_space"],
            settings=TenantSettings.model_validate(row["settings"]),
            generations={
                row["team_space"]: row["team_generation"],
                row["private_space"]: row["private_generation"],
            },
        )
        if row["spaces"] != _written(principal.visible_spaces):
            raise RuntimeError("the database and the principal differ about the visible spaces")
        return Unit(connection, principal.tenant_id, self._now(row), self._new_id, principal)

    def _job(self, connection: Connection, tenant_id: UUID, spaces: tuple[UUID, ...]) -> Unit:
        row = connection.execute(
            _SETTINGS,
            {
                "tenant": str(tenant_id),
                "spaces": _written(spaces),
                "timeout_ms": str(self._timeout_ms),
            },
        ).fetchone()
        assert row is not None
        return Unit(connection, tenant_id, self._now(row), self._new_id, None)

    def _now(self, row: Row) -> datetime:
        now: datetime = row["now"] if self._clock is None else self._clock()
        return now

    def _transact(
        self,
        enter: Callable[[Connection], Unit],
        work: Callable[[Unit], T],
        *,
        before: Callable[[Connection], None] = lambda connection: None,
        read_only: bool,
        audited: bool,
    ) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            fresh = self._connection is None
            connection = self._open()
            entered = False
            try:
                before(connection)
                with connection.transaction():
                    if read_only:
                        connection.execute("set transaction read only")
                    unit = enter(connection)
                    entered = True
                    result = work(unit)
                    unit.close(audited=audited)
                if self._kick is not None and unit.alerted:
                    self._kick(unit.tenant_id, unit.now)
                return result
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                if attempt == ATTEMPTS:
                    raise Problem("commit_conflict") from None
            except psycopg.errors.QueryCanceled:
                raise Problem("request_timeout") from None
            except psycopg.OperationalError:
                self.close()
                # A connection that died while idle is noticed before any work: open another, once.
                if fresh or entered:
                    raise Problem("database_failure", retry_after=1) from None
        raise Problem("commit_conflict")

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            try:
                self._connection = self._connect()
            except psycopg.OperationalError:
                raise Problem("database_resuming", retry_after=20) from None
        return self._connection


def _written(spaces: Iterable[UUID]) -> str:
    return ",".join(map(str, spaces))


def connect(conninfo: str, password: Callable[[], str] | None = None) -> Callable[[], Connection]:
    """How a function connects: autocommit, no server-side prepared statements, three seconds to answer.

    `password` is asked at each connect (an IAM token, cached by its maker).
    """

    def open_connection() -> Connection:
        return psycopg.connect(
            conninfo,
            password=None if password is None else password(),
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=3,
            row_factory=dict_row,
        )

    return open_connection
