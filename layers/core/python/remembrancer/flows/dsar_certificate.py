"""The certificate of a data subject's request: what was given and erased, what remains, and how to check it later."""

from __future__ import annotations

from typing import Any

from remembrancer.domain.audit import ChainPoint
from remembrancer.domain.dsar import PERIODS, Jurisdiction, certificate_digest, tombstone_root
from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import Problem
from remembrancer.flows.context import Call, Services, public_id
from remembrancer.flows.instants import instant
from remembrancer.store import audit_log, dsar, erasure_work
from remembrancer.store.database import Row, Unit
from remembrancer.store.jobs import UNFINISHED

FORMAT = "remembrancer-dsar-certificate-1"
COMPLETED = "dsar_completed"
_REMAINS = [
    "tombstones: keyed digests of the erased ids, with time, actor and reason code; kept",
    "the audit chain: ids, counts and codes, the subject as a keyed digest; kept",
    "backups and point-in-time recovery: the bytes, until their retention ends; a restored database replays the "
    "tombstones before it opens",
    "what a legal hold keeps, as listed, until the hold is released and the request repeated",
]


def certify(services: Services, unit: Unit, job: Row) -> None:
    """The end of a request's job: its certificate, whose digest goes into the chain, and what else it answers."""
    about = job["request"]
    dsar_id = public_id("dsr", about["dsar_id"])
    row = dsar.get(unit, dsar_id)
    if row is None:
        raise Problem("not_found")
    certificate = _certificate(unit, row, job)
    dsar.close(unit, dsar_id, certificate)
    answered = dsar.answer_open(unit, dsar_id, bytes(row["selectors"]), row["action"])
    unit.audit(
        COMPLETED,
        about["dsar_id"],
        certificate=certificate_digest(certificate).hex(),
        answered=[format_id("dsr", one) for one in answered],
        **about["evidence"],
    )
    unit.alert(COMPLETED, about["dsar_id"])


def _certificate(unit: Unit, row: Row, job: Row) -> dict[str, Any]:
    result = job["result"] or {}
    bundle = result.get("bundle")
    macs = erasure_work.macs_of(unit, job["job_id"])
    head = audit_log.head(unit)
    jurisdiction: Jurisdiction = row["jurisdiction"]
    purges = job["request"]["purge"]
    return {
        "format": FORMAT,
        "dsar_id": format_id("dsr", row["dsar_id"]),
        "tenant_id": str(unit.tenant_id),
        "job_id": format_id("job", job["job_id"]),
        "action": row["action"],
        "jurisdiction": jurisdiction,
        "law": PERIODS[jurisdiction].law,
        "case_reference": row["case_reference"],
        "received_at": instant(row["received_at"]),
        "deadline": instant(row["deadline"]),
        "completed_at": instant(unit.now),
        "in_time": unit.now <= row["deadline"],
        "requested_by": format_id("prin", row["requested_by"]),
        "signature": job["request"]["evidence"],
        "subject_digest": bytes(row["selectors"]).hex(),
        "found_by": row["found_by"],
        "located": row["located"],
        "exported": None if bundle is None else {**bundle, "until": instant(unit.now + UNFINISHED)},
        "erased": result.get("erased", {"memories": 0, "proposals": 0}) if purges else None,
        "held": result.get("held"),
        "tombstones": {"count": len(macs), "root": tombstone_root(macs)},
        "chain_head": {"seq": head.seq, "hash": head.hash.hex()},
        "remains": _REMAINS if purges else [],
    }


def get_certificate(services: Services, call: Call, request: str) -> dict[str, Any]:
    """The certificate, its digest, the row of the chain that witnesses it, and whether all that still agrees.

    Raises Problem not_found, request_in_progress.
    """

    def read(unit: Unit) -> dict[str, Any]:
        authorize(unit.principal, "admin")
        row = dsar.get(unit, public_id("dsr", request))
        if row is None:
            raise Problem("not_found")
        if row["state"] == "working":
            raise Problem("request_in_progress", retry_after=10)
        certificate = row["certificate"]
        if certificate is None:
            raise Problem("not_found")
        digest = certificate_digest(certificate).hex()
        head = certificate["chain_head"]
        said = ChainPoint(head["seq"], bytes.fromhex(head["hash"]))
        recorded = audit_log.first_after(unit, said.seq, COMPLETED, request)
        macs = erasure_work.macs_of(unit, row["job_id"])
        checks = {
            "recorded": recorded is not None and recorded["detail"].get("certificate") == digest,
            "chain_head": audit_log.point_at(unit, said.seq) == said,
            "tombstones": certificate["tombstones"] == {"count": len(macs), "root": tombstone_root(macs)},
        }
        return {
            "certificate": certificate,
            "digest": digest,
            "recorded": None if recorded is None else {"seq": recorded["seq"], "hash": recorded["hash"]},
            "checks": checks,
            "valid": all(checks.values()),
        }

    return services.database.read(call.credential, read)
