"""Capture for review: screened and scored, held for a person; no knowledge row."""

from __future__ import annotations

import secrets
from typing import Any

from remembrancer.domain.canonical import canonical_json, digest
from remembrancer.domain.digests import content_sha
from remembrancer.domain.ids import format_id
from remembrancer.domain.memory import Passages
from remembrancer.domain.principal import Principal, authorize
from remembrancer.domain.requests import ProposalRequest
from remembrancer.domain.sanitize import mask_source_prompt
from remembrancer.domain.scoring import confidence, novelty, salience
from remembrancer.domain.screen import Verdict
from remembrancer.flows import gate
from remembrancer.flows.admit import conflict_with, neighbours
from remembrancer.flows.context import Call, Services
from remembrancer.flows.index import Text, passages_of
from remembrancer.flows.ingest import refuse_manual
from remembrancer.flows.keyed import Answer, keyed
from remembrancer.store import memories, proposals, spaces
from remembrancer.store.database import Unit


def capture(services: Services, call: Call, request: ProposalRequest) -> Answer:
    """201 for a new proposal, 200 when the identical one is pending already. Proposals go to the team's space."""

    def allowed(unit: Unit) -> None:
        principal = unit.principal
        authorize(principal, proposing(principal), space=principal.team_space)
        refuse_manual(principal, request.source)

    with keyed(services, call, request.model_dump(mode="json"), allowed) as start:
        if start.replay is not None:
            return start.replay
        examined = gate.examine(services, request, start.principal.settings)
        if examined.verdict is Verdict.REJECT:
            raise gate.rejected(services, call, examined)
        clean = examined.request
        passages = passages_of(services.embedder, Text(clean.content, clean.author, clean.observed_at))

        def commit(unit: Unit) -> Answer:
            start.fence(unit)
            gate.same_policy(unit, start.principal.settings)
            allowed(unit)
            team = unit.principal.team_space
            memories.lock(unit, "space", [team.bytes], shared=True)
            spaces.unchanged(unit, start.principal, [team])
            row = scored(unit, examined, passages)
            stale = proposals.expire_stale(unit, unit.principal.principal_id, row["pending_key"])
            if stale is not None:
                unit.audit("proposal_expired", format_id("prop", stale))
                unit.alert("expired", format_id("prop", stale))
            proposal_id = unit.new_id()
            prompt = clean.source_prompt
            pending = proposals.insert(
                unit,
                proposal_id,
                {
                    **row,
                    "space_id": unit.principal.team_space,
                    "submitted_by": unit.principal.principal_id,
                    "salt": secrets.token_bytes(16),
                    "source_prompt": None if prompt is None else mask_source_prompt(prompt),
                    "correlation_id": call.correlation_id,
                    "deadline": unit.now + unit.principal.settings.proposal_ttl,
                },
            )
            public_id = format_id("prop", pending or proposal_id)
            unit.audit(
                "proposal_duplicate" if pending else "proposal_pending",
                public_id,
                source=clean.source,
                verdict=examined.verdict.value,
                correlation_id=call.correlation_id,
            )
            if pending is None:
                unit.alert("pending", public_id)
            if examined.verdict is Verdict.QUARANTINE:
                unit.alert("screen", public_id)
            body = {
                "proposal_id": public_id,
                "status": "pending",
                "duplicate": pending is not None,
                "verdict": examined.verdict.value,
                "signals": examined.report["signals"],
                "pii": examined.pii,
                "redactions": [{"pointer": pointer, "kind": kind} for pointer, kind in examined.redactions],
                "scores": public_scores(row["scores"]),
                "correlation_id": call.correlation_id,
            }
            refs = [
                pending or proposal_id,
                *([row["conflict_memory_id"]] if row["conflict_memory_id"] else []),
            ]
            return start.answer(unit, 200 if pending else 201, body, refs)

        return services.database.write(call.credential, commit)


def proposing(principal: Principal) -> Any:
    """Whoever reviews may also capture; the scope that the token carries decides which of the two it is."""
    return "propose" if "propose" in principal.scopes else "review"


def scored(unit: Unit, examined: gate.Examined[ProposalRequest], passages: Passages) -> dict[str, Any]:
    """The columns of a proposal that follow from its text: body, screen, scores, conflict, keys."""
    clean = examined.request
    near = neighbours(unit, unit.principal.team_space, passages)
    same = next((row["memory_id"] for row in near if row["content"] == clean.content), None)
    conflict = conflict_with(unit, unit.principal.team_space, clean, near)
    body = clean.model_dump(mode="json", exclude={"source_prompt"}, exclude_none=True)
    nearest = (near[0]["memory_id"], near[0]["cosine"]) if near else None
    scores: dict[str, Any] = {
        "novelty": novelty(nearest, same).to_dict(),
        "salience": salience(clean.content, len(clean.entities)).to_dict(),
        "confidence": confidence(clean.source, conflict is not None, clean.assertion_kind).to_dict(),
    }
    if conflict is not None:
        scores["conflict"] = {"reason": conflict.reason, "explanation": conflict.explanation}
    return {
        "body": body,
        "pending_key": digest({"body": canonical_json(body)}),
        "content_sha": content_sha(clean.content),
        "pii": examined.pii,
        "screen": examined.report,
        "scores": scores,
        "conflict_memory_id": None if conflict is None else conflict.memory_id,
        "conflict_version": None if conflict is None else conflict.version,
    }


def public_scores(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores as the capturing agent sees them: parts and ids, no text of another memory."""
    if "conflict" not in scores:
        return scores
    return {**scores, "conflict": {"reason": scores["conflict"]["reason"]}}
