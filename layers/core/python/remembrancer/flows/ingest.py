"""Direct admission: screened like every write, without a human."""

from __future__ import annotations

from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import Principal, authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import IngestRequest
from remembrancer.domain.screen import Verdict
from remembrancer.flows import gate
from remembrancer.flows.admit import Admitted, Candidate, admit, conflict_summary
from remembrancer.flows.context import Call, Services
from remembrancer.flows.index import Text, passages_of
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.store.database import Unit


def ingest(services: Services, call: Call, request: IngestRequest) -> Answer:
    """201 for a new memory, 200 for a duplicate. A quarantined text is stored, held and said to be."""

    def allowed(unit: Unit) -> None:
        principal = unit.principal
        authorize(principal, "write", space=target_space(principal, request.target_space))
        refuse_manual(principal, request.source)

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay
        settings = start.principal.settings
        examined = gate.examine(services, request, secrets=settings.secrets)
        if examined.verdict is Verdict.REJECT:
            raise gate.rejected(services, call, examined)
        clean = examined.request
        passages = passages_of(services.embedder, Text(clean.content, clean.author, clean.observed_at))
        held = examined.verdict is Verdict.QUARANTINE

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            allowed(unit)
            space_id = target_space(unit.principal, request.target_space)
            candidate = Candidate(
                request=clean,
                passages=passages,
                report=examined.report,
                pii=examined.pii,
                held=held,
                overridden=False,
                space_id=space_id,
                owner_id=unit.principal.principal_id,
                admitted_by="ingest",
            )
            admitted = admit(unit, candidate, call.correlation_id)
            public_id = format_id("mem", admitted.memory_id)
            unit.audit(
                "memory_duplicate" if admitted.duplicate else "memory_admitted",
                public_id,
                source=clean.source,
                verdict=examined.verdict.value,
                correlation_id=call.correlation_id,
            )
            if held:
                unit.alert("screen", public_id)
            body = _result(admitted, examined, call.correlation_id)
            return start.answer(unit, 200 if admitted.duplicate else 201, body, [admitted.memory_id])

        return services.database.write(call.credential, commit)


def target_space(principal: Principal, asked: str | None) -> UUID:
    """The space a write goes to. Refused by `authorize` when not allowed, never redirected."""
    wanted = asked or principal.settings.default_space
    return principal.private_space if wanted == "private" else principal.team_space


def refuse_manual(principal: Principal, source: str) -> None:
    """Only a person's hand is manual. Raises Problem forbidden for an agent."""
    if source == "manual" and not principal.human:
        raise Problem("forbidden", [FieldError("/source", "manual", "is reserved for people")])


def _result(
    admitted: Admitted, examined: gate.Examined[IngestRequest], correlation_id: str
) -> dict[str, object]:
    return {
        "memory_id": format_id("mem", admitted.memory_id),
        "occurrence_id": format_id("occ", admitted.occurrence_id),
        "status": "held" if admitted.held else "stored",
        "duplicate": admitted.duplicate,
        "verdict": examined.verdict.value,
        "signals": examined.report["signals"],
        "pii": examined.pii,
        "redactions": [{"pointer": pointer, "kind": kind} for pointer, kind in examined.redactions],
        "confidence": None if admitted.confidence is None else admitted.confidence.to_dict(),
        "conflict": conflict_summary(admitted.conflict),
        "relationship_ids": [format_id("rel", rid) for rid in admitted.relationship_ids],
        "correlation_id": correlation_id,
    }
