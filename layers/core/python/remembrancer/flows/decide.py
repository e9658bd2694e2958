"""Human decisions on proposals: on exactly the bytes shown, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from remembrancer.domain.digests import proposal_digest
from remembrancer.domain.ids import format_id, parse_id
from remembrancer.domain.memory import Passages
from remembrancer.domain.principal import authorize
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.requests import (
    ApproveRequest,
    DecideRequest,
    DecideRow,
    EditRequest,
    ProposalRequest,
    RejectRequest,
)
from remembrancer.domain.screen import Verdict
from remembrancer.domain.screen_policy import effective
from remembrancer.domain.secrets import redact_secrets
from remembrancer.domain.tenant_settings import TenantSettings
from remembrancer.flows import gate
from remembrancer.flows.admit import Candidate, Target, admit, conflict_summary
from remembrancer.flows.context import Call, Services, witness
from remembrancer.flows.context import public_id as public_id
from remembrancer.flows.index import Text, passages_of, passages_of_many
from remembrancer.flows.keyed import Answer, Keyed, keyed
from remembrancer.flows.propose import public_scores, scored
from remembrancer.store import conflicts, memories, proposals
from remembrancer.store.database import Row, Unit

T = TypeVar("T")


BATCH_BUDGET = timedelta(seconds=20)
"""How long a batch goes on deciding: the gateway gives up after 29 s."""


@dataclass(frozen=True)
class _Approval:
    """What a decision says, whether it came alone or as a row of a batch."""

    proposal: str
    said: ApproveRequest | DecideRow


@dataclass(frozen=True)
class _Prepared:
    """What is to be admitted, made from `body` as the row had it before the write."""

    body: dict[str, Any]
    request: ProposalRequest
    report: dict[str, Any]
    passages: Passages
    settings: TenantSettings


def approve(services: Services, call: Call, proposal: str, request: ApproveRequest) -> Answer:
    """Promote a pending proposal to a memory, in one transaction; 200."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay
        approval = _Approval(proposal, request)
        [prepared] = _prepare(services, call, [approval])
        if isinstance(prepared, Problem):
            raise prepared
        return _approve(services, call, start, approval, prepared)[1]


def reject(services: Services, call: Call, proposal: str, request: RejectRequest) -> Answer:
    """Turn a pending proposal down; 200. The reason stays in the decision, the chain holds its keyed digest."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay
        return _reject(services, call, start, proposal, request)[1]


def decide(services: Services, call: Call, request: DecideRequest) -> Answer:
    """Up to a hundred decisions, each in a transaction of its own, each with its outcome; 200.

    The texts are read and embedded together. Rows that the time does not reach are `not_attempted`.
    """
    deadline = services.clock() + BATCH_BUDGET
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay
        approvals = [_Approval(row.proposal_id, row) for row in request.rows if row.decision == "approve"]
        prepared = iter(_prepare(services, call, approvals))
        unkeyed = Keyed(start.principal, None, None)
        rows = [
            _decide_row(services, call, unkeyed, row, next(prepared) if row.decision == "approve" else None)
            if services.clock() < deadline
            else {"proposal_id": _echo(row), "outcome": "not_attempted"}
            for row in request.rows
        ]
        body = {"rows": rows, "correlation_id": call.correlation_id}
        refs = [
            *(parse_id("prop", str(row["proposal_id"])) for row in rows if row["proposal_id"]),
            *(parse_id("mem", str(row["memory_id"])) for row in rows if row.get("memory_id")),
        ]
        return services.database.operate(call.credential, lambda unit: start.answer(unit, 200, body, refs))


def edit(services: Services, call: Call, proposal: str, request: EditRequest) -> Answer:
    """Replace the text of a pending proposal: screened, scored and digested anew; 200 with the new digest."""
    with keyed(services, call, request.model_dump(mode="json"), _reviewer) as start:
        if start.replay is not None:
            return start.replay
        examined = gate.examine(services, request.proposal, start.principal.settings)
        if examined.verdict is Verdict.REJECT:
            raise gate.rejected(services, call, examined)
        clean = examined.request
        passages = passages_of(services.embedder, Text(clean.content, clean.author, clean.observed_at))

        def commit(unit: Unit) -> Answer | Problem:
            start.fence(unit)
            gate.same_policy(unit, start.principal.settings)
            row = _pending(unit, proposal, request.content_digest)
            if isinstance(row, Problem):
                return row
            values = scored(unit, examined, passages)
            proposals.rewrite(unit, row["proposal_id"], values)
            after = proposal_digest(row["proposal_id"], bytes(row["salt"]), row["space_id"], values["body"])
            shown = format_id("prop", row["proposal_id"])
            unit.audit(
                "proposal_edited",
                shown,
                before=witness(services, unit, request.content_digest),
                after=witness(services, unit, after),
                verdict=examined.verdict.value,
                correlation_id=call.correlation_id,
            )
            body = {
                "proposal_id": shown,
                "status": "pending",
                "content_digest": after,
                "verdict": examined.verdict.value,
                "signals": examined.report["signals"],
                "redactions": [{"pointer": p, "kind": kind} for p, kind in examined.redactions],
                "scores": public_scores(values["scores"]),
                "correlation_id": call.correlation_id,
            }
            return start.answer(unit, 200, body, [row["proposal_id"]])

        return _settle(services.database.write(call.credential, commit))


def _decide_row(
    services: Services, call: Call, start: Keyed, row: DecideRow, prepared: _Prepared | Problem | None
) -> dict[str, Any]:
    try:
        if isinstance(prepared, Problem):
            raise prepared
        if prepared is None:
            outcome = _reject(services, call, start, row.proposal_id, row)[0]
        else:
            outcome = _approve(services, call, start, _Approval(row.proposal_id, row), prepared)[0]
    except Problem as problem:
        errors = [{"pointer": e.pointer, "code": e.code, "detail": e.detail} for e in problem.errors]
        return {
            "proposal_id": _echo(row),
            "outcome": "failed",
            "code": problem.code,
            "errors": errors,
            **({"winner": problem.extensions["outcome"]} if "outcome" in problem.extensions else {}),
        }
    return {"outcome": "done", **outcome}


def _echo(row: DecideRow) -> str | None:
    """The row's id if it is one: an answer is kept, and any other text would be kept with it."""
    try:
        return format_id("prop", parse_id("prop", row.proposal_id))
    except ValueError:
        return None


def _reviewer(unit: Unit) -> None:
    authorize(unit.principal, "review", space=unit.principal.team_space)


def _prepare(services: Services, call: Call, approvals: Sequence[_Approval]) -> list[_Prepared | Problem]:
    """Read, re-screen and embed what is to be admitted, outside any write; a problem stands in its place.

    The write checks that the row still has that text, and only then whether the report lets it in: that a
    proposal is decided or expired is said before what the screen thinks of it.
    """

    def read(unit: Unit) -> tuple[TenantSettings, list[Row | Problem]]:
        _reviewer(unit)
        return unit.principal.settings, [_readable(unit, approval.proposal) for approval in approvals]

    settings, rows = services.database.read(call.credential, read)
    requests = [ProposalRequest.model_validate(row["body"]) for row in rows if not isinstance(row, Problem)]
    texts = [Text(request.content, request.author, request.observed_at) for request in requests]
    made = iter(zip(requests, passages_of_many(services.embedder, texts), strict=True))
    policy = effective(services.screen_policy, settings)
    found: list[_Prepared | Problem] = []
    for row in rows:
        if isinstance(row, Problem):
            found.append(row)
            continue
        request, passages = next(made)
        report = gate.fresh_verdict(gate.text_fields(row["body"]), row["screen"], policy)
        found.append(_Prepared(row["body"], request, report, passages, settings))
    return found


def _check_screen(report: dict[str, Any], override_reason: str | None) -> None:
    """Raises Problem input_rejected, or invalid_input when the screen holds the text and nobody says why not."""
    if report["verdict"] == Verdict.REJECT.value:
        raise Problem("input_rejected", gate.report_errors(report))
    if report["verdict"] == Verdict.QUARANTINE.value and override_reason is None:
        error = FieldError(
            "/override_reason", "required", "the screen holds this text: say why it is admitted"
        )
        raise Problem("invalid_input", [error])


def _approve(
    services: Services, call: Call, start: Keyed, approval: _Approval, prepared: _Prepared
) -> tuple[dict[str, Any], Answer]:
    said = approval.said

    def commit(unit: Unit) -> tuple[dict[str, Any], Answer] | Problem:
        start.fence(unit)
        locked = _pending(unit, approval.proposal, said.content_digest)
        if isinstance(locked, Problem):
            return locked
        _check_author(unit, locked)
        if locked["body"] != prepared.body:
            raise Problem("digest_mismatch")
        gate.same_policy(unit, prepared.settings)
        _check_screen(prepared.report, said.override_reason)
        target = None
        if said.supersedes is not None:
            target = Target(public_id("mem", said.supersedes.memory_id), said.supersedes.version)
        admitted = admit(
            unit,
            Candidate(
                request=prepared.request,
                passages=prepared.passages,
                report=prepared.report,
                pii=locked["pii"],
                held=False,
                overridden=prepared.report["verdict"] == Verdict.QUARANTINE.value,
                space_id=locked["space_id"],
                owner_id=locked["submitted_by"],
                admitted_by="proposal",
                approved_by=unit.principal.principal_id,
                proposal_id=locked["proposal_id"],
            ),
            call.correlation_id,
            supersedes=target,
        )
        if target is not None:
            conflicts.close_between(unit, admitted.memory_id, target.memory_id)
        superseded = None if target is None else format_id("mem", target.memory_id)
        reason, override = _kept(said.reason), _kept(said.override_reason)
        decision = {"reason": reason, "override_reason": override, "supersedes": superseded}
        if not proposals.decide(unit, locked["proposal_id"], "approved", decision, admitted.memory_id):
            raise Problem("already_decided")
        shown = format_id("prop", locked["proposal_id"])
        memory_id = format_id("mem", admitted.memory_id)
        unit.audit(
            "proposal_approved",
            shown,
            memory_id=memory_id,
            supersedes=superseded,
            override=witness(services, unit, override),
            reason=witness(services, unit, reason),
            content=witness(services, unit, said.content_digest),
            correlation_id=call.correlation_id,
        )
        unit.alert("approved", shown)
        body = {
            "proposal_id": shown,
            "status": "approved",
            "memory_id": memory_id,
            "duplicate": admitted.duplicate,
            "superseded": superseded,
            "conflict": conflict_summary(admitted.conflict),
            "confidence": None if admitted.confidence is None else admitted.confidence.to_dict(),
            "relationship_ids": [format_id("rel", rid) for rid in admitted.relationship_ids],
            "correlation_id": call.correlation_id,
        }
        return body, start.answer(unit, 200, body, [locked["proposal_id"], admitted.memory_id])

    return _settle(services.database.write(call.credential, commit))


def _reject(
    services: Services, call: Call, start: Keyed, proposal: str, said: RejectRequest | DecideRow
) -> tuple[dict[str, Any], Answer]:
    def commit(unit: Unit) -> tuple[dict[str, Any], Answer] | Problem:
        start.fence(unit)
        locked = _pending(unit, proposal, said.content_digest)
        if isinstance(locked, Problem):
            return locked
        _check_author(unit, locked)
        reason = _kept(said.reason)
        if not proposals.decide(unit, locked["proposal_id"], "rejected", {"reason": reason}, None):
            raise Problem("already_decided")
        shown = format_id("prop", locked["proposal_id"])
        unit.audit(
            "proposal_rejected",
            shown,
            reason=witness(services, unit, reason),
            correlation_id=call.correlation_id,
        )
        unit.alert("rejected", shown)
        body = {"proposal_id": shown, "status": "rejected", "correlation_id": call.correlation_id}
        return body, start.answer(unit, 200, body, [locked["proposal_id"]])

    return _settle(services.database.write(call.credential, commit))


def _readable(unit: Unit, proposal: str) -> Row | Problem:
    try:
        row = proposals.get(unit, public_id("prop", proposal))
    except Problem as problem:
        return problem
    return Problem("not_found") if row is None else row


def _pending(unit: Unit, proposal: str, digest: str | None) -> Row | Problem:
    """The row, locked, if it may be decided now by this person on these bytes.

    A row past its deadline is expired here, audited; that problem is returned, so that the caller commits
    before it raises.
    """
    _reviewer(unit)
    proposal_id = public_id("prop", proposal)
    # Before the row: an erasure holds the space and then deletes proposals.
    memories.lock(unit, "space", [unit.principal.team_space.bytes], shared=True)
    row = proposals.get(unit, proposal_id, for_update=True)
    if row is None:
        raise Problem("not_found")
    if row["status"] == "expired":
        raise Problem("expired")
    if row["status"] != "pending":
        raise Problem("already_decided", extensions=_outcome(row))
    if row["deadline"] <= unit.now:
        proposals.decide(unit, proposal_id, "expired", {}, None)
        unit.audit("proposal_expired", format_id("prop", proposal_id))
        unit.alert("expired", format_id("prop", proposal_id))
        return Problem("expired")
    if row["pii"] and not unit.principal.sees_pii:
        raise Problem("forbidden", [FieldError("", "masked", "the text is masked for you")])
    shown = proposal_digest(proposal_id, bytes(row["salt"]), row["space_id"], row["body"])
    if digest is not None and digest != shown:
        raise Problem("digest_mismatch")
    return row


def _check_author(unit: Unit, row: Row) -> None:
    """Raises Problem forbidden when four eyes are asked for and these words are the decider's own."""
    authors = (row["submitted_by"], *row["editors"])
    if unit.principal.settings.four_eyes and unit.principal.principal_id in authors:
        raise Problem("forbidden", [FieldError("", "four_eyes", "nobody decides on words of their own")])


def _outcome(row: Row) -> dict[str, object]:
    return {
        "outcome": {
            "status": row["status"],
            "decided_at": row["decided_at"].isoformat(),
            "decided_by": row["decider_name"],
            "memory_id": None if row["memory_id"] is None else format_id("mem", row["memory_id"]),
        }
    }


def _kept(reason: str | None) -> str | None:
    """What a person typed beside a decision, without the secret that it may be about."""
    return None if reason is None else redact_secrets(reason)[0]


def _settle(result: T | Problem) -> T:
    """Raise the problem that a transaction committed an expiry for; otherwise its result."""
    if isinstance(result, Problem):
        raise result
    return result
