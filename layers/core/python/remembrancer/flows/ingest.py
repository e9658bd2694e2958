"""Direct admission: screened like every write, without a human."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from remembrancer.domain.ids import format_id
from remembrancer.domain.principal import Principal
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import IngestRequest
from remembrancer.domain.screen import Verdict
from remembrancer.flows import gate
from remembrancer.flows.admit import Admitted, Candidate, admit, conflict_summary
from remembrancer.flows.batch import Item, text_of, writable_space
from remembrancer.flows.context import Call, Services
from remembrancer.flows.enrich import enriched
from remembrancer.flows.index import cut_few, embedded
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.flows.stage import stage_import
from remembrancer.store import spaces
from remembrancer.store.database import Unit


def ingest(services: Services, call: Call, request: IngestRequest) -> Answer:
    """201 for a new memory, 200 for a duplicate, 202 with a job for a text of more than MAX_PASSAGES passages.
    A quarantined text is stored, held and said to be."""

    def allowed(unit: Unit) -> None:
        space_of(unit)

    def space_of(unit: Unit) -> UUID:
        refuse_manual(unit.principal, request.source)
        return writable_space(unit, request.target_space)

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay
        examined = gate.examine(services, request, start.principal.settings)
        if examined.verdict is Verdict.REJECT:
            raise gate.rejected(services, call, examined)
        held = examined.verdict is Verdict.QUARANTINE
        cuts = cut_few(services.embedder, [text_of(examined.request)])
        if cuts is None:
            alone = Item(0, examined.request, examined.report, examined.pii, held)
            return stage_import(services, call, start, [alone], screened(examined))
        clean = enriched(examined.request, services.clock())
        [passages] = embedded(services.embedder, cuts)

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            gate.same_policy(unit, start.principal.settings)
            space_id = space_of(unit)
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
            spaces.unchanged(unit, start.principal, [space_id])
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
            refs = [admitted.memory_id, admitted.occurrence_id]
            return start.answer(unit, 200 if admitted.duplicate else 201, body, refs)

        return services.database.write(call.credential, commit)


def refuse_manual(principal: Principal, source: str) -> None:
    """Only a person's hand is manual. Raises Problem forbidden for an agent."""
    if source == "manual" and not principal.human:
        raise Problem("forbidden", [FieldError("/source", "manual", "is reserved for people")])


def screened(examined: gate.Examined[Any]) -> dict[str, Any]:
    """What the caller is told of the gate's work."""
    return {
        "verdict": examined.verdict.value,
        "signals": examined.report["signals"],
        "pii": examined.pii,
        "redactions": [{"pointer": pointer, "kind": kind} for pointer, kind in examined.redactions],
    }


def _result(
    admitted: Admitted, examined: gate.Examined[IngestRequest], correlation_id: str
) -> dict[str, object]:
    return {
        "memory_id": format_id("mem", admitted.memory_id),
        "occurrence_id": format_id("occ", admitted.occurrence_id),
        "status": "held" if admitted.held else "stored",
        "duplicate": admitted.duplicate,
        **screened(examined),
        "confidence": None if admitted.confidence is None else admitted.confidence.to_dict(),
        "conflict": conflict_summary(admitted.conflict),
        "relationship_ids": [format_id("rel", rid) for rid in admitted.relationship_ids],
        "correlation_id": correlation_id,
    }
