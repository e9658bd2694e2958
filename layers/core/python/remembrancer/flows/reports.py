"""What reviewers read about decay: the list, the scheduled report and its links."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from remembrancer.domain.canonical import canonical_json
from remembrancer.domain.decay_report import REASONS, to_html
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.cursors import Cursors, instant_and_id
from remembrancer.flows.instants import instant
from remembrancer.flows.tenants import Walk
from remembrancer.store import reports, retention
from remembrancer.store.database import Row, Unit

AHEAD = timedelta(days=30)
LISTED = 1_000
"""Rows that one section of a report, of one reason, lists; its counts are of all."""
LINK_S = 300


def decayed(
    services: Services, call: Call, at: datetime | None, cursor: str | None, limit: int
) -> dict[str, Any]:
    """Memories that are over at `at` (now), longest first: metadata, never text."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review")
        moment = unit.now if at is None else at
        filters = {"reader": str(unit.principal.principal_id), "at": None if at is None else at.isoformat()}
        cursors = Cursors(services.macs)
        position = cursors.decode(unit.tenant_id, "decayed", filters, cursor)
        rows = retention.decayed(unit, unit.principal.settings, moment, instant_and_id(position), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [page[-1]["expiry"].isoformat(), str(page[-1]["memory_id"])]
            more = cursors.encode(unit.tenant_id, "decayed", filters, last)
        private = unit.principal.private_space
        return {
            "at": instant(moment),
            "memories": [
                _shown(row, "private" if row["space_id"] == private else "team_shared") for row in page
            ],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def list_reports(services: Services, call: Call, cursor: str | None, limit: int) -> dict[str, Any]:
    """Decay reports, newest first."""

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "review", space=unit.principal.team_space)
        cursors = Cursors(services.macs)
        position = cursors.decode(unit.tenant_id, "decay-reports", {}, cursor)
        rows = reports.list_of(unit, "decay", instant_and_id(position), limit + 1)
        page = rows[:limit]
        more = None
        if len(rows) > limit:
            last = [page[-1]["created_at"].isoformat(), str(page[-1]["report_id"])]
            more = cursors.encode(unit.tenant_id, "decay-reports", {}, last)
        return {
            "reports": [
                {
                    "report_id": format_id("rep", row["report_id"]),
                    "created_at": instant(row["created_at"]),
                    "counts": row["counts"],
                }
                for row in page
            ],
            "next_cursor": more,
        }

    return services.database.read(call.credential, read)


def get_report(services: Services, call: Call, report: str) -> dict[str, Any]:
    """The report's JSON, and a link to the page for people that works for LINK_S seconds."""

    def read(unit: Unit) -> Row:
        authorize(unit.principal, "review", space=unit.principal.team_space)
        row = reports.get(unit, public_id("rep", report), "decay")
        if row is None:
            raise Problem("not_found")
        return row

    row = services.database.read(call.credential, read)
    page = None
    if row["object_key"] is not None and services.objects is not None:
        page = services.objects.link(f"{row['object_key']}.html", LINK_S)
    return {"report_id": format_id("rep", row["report_id"]), **row["document"], "page": page}


def write_decay_reports(services: Services) -> dict[str, int]:
    """One report a tenant, to the object store and announced; the schedule's work."""
    made = 0
    walk = Walk()
    for tenant_id, settings in services.database.tenants():
        with walk.part(tenant_id):
            report_id = services.new_id()
            document = services.database.job(
                tenant_id, partial(decay_document, settings=settings), audited=False
            )
            key = store_report(services, tenant_id, report_id, document)
            services.database.job(tenant_id, _recorder(report_id, document, key))
            made += 1
    walk.end()
    return {"reports": made}


def store_report(
    services: Services, tenant_id: UUID, report_id: UUID, document: dict[str, Any]
) -> str | None:
    """The key without the ending: `.html` for people, `.json` for machines; None without an object store."""
    if services.objects is None:
        return None
    key = f"reports/{tenant_id}/{document['at'][:10]}-{report_id.hex}"
    services.objects.put(f"{key}.json", canonical_json(document).encode(), "application/json")
    services.objects.put(f"{key}.html", to_html(document).encode(), "text/html; charset=utf-8")
    return key


def decay_document(unit: Unit, settings: TenantSettings) -> dict[str, Any]:
    """Ids, kinds, counts, dates and reasons of what has decayed and of what will within AHEAD."""
    at, until = unit.now, unit.now + AHEAD
    by_kind: dict[str, dict[str, int]] = {}
    counts: dict[str, dict[str, int]] = {"decayed": {}, "expiring": {}}
    for row in retention.totals(unit, settings, at, until):
        which = "decayed" if row["decayed"] else "expiring"
        counts[which][row["retention_reason"]] = counts[which].get(row["retention_reason"], 0) + row["n"]
        kinds = by_kind.setdefault(row["kind"], {})
        kinds[which] = kinds.get(which, 0) + row["n"]
    shared = _team_space(unit)
    return {
        "at": instant(at),
        "until": instant(until),
        "retention": settings.retention.model_dump(),
        "counts": counts,
        "by_kind": by_kind,
        "decayed": [
            _shown(row, "team_shared" if row["space_id"] == shared else "private")
            for reason in REASONS
            for row in retention.decayed(unit, settings, at, None, LISTED, reason)
        ],
        "expiring": [
            _shown(row, "team_shared" if row["space_id"] == shared else "private")
            for row in retention.expiring(unit, settings, at, until, LISTED)
        ],
    }


def _recorder(report_id: UUID, document: dict[str, Any], key: str | None) -> Any:
    def record(unit: Unit) -> None:
        reports.add(unit, report_id, "decay", document, key)
        public = format_id("rep", report_id)
        unit.audit("decay_reported", public, counts=document["counts"])
        unit.alert("decay_report", public)

    return record


def _team_space(unit: Unit) -> UUID | None:
    row = unit.row(
        "select space_id from space where tenant_id = %(tenant)s and kind = 'team_shared'",
        {"tenant": unit.tenant_id},
    )
    return None if row is None else row["space_id"]


def _shown(row: Row, space: str) -> dict[str, Any]:
    return {
        "memory_id": format_id("mem", row["memory_id"]),
        "version": row["version"],
        "owner_id": format_id("prin", row["owner_id"]),
        "space": space,
        "kind": row["kind"],
        "created_at": instant(row["created_at"]),
        "expiry": instant(row["expiry"]),
        "retention_reason": row["retention_reason"],
    }
