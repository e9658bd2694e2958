"""The assessor's turns: one call of the model each, its answer validated as a whole, repaired at most twice."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from uuid import UUID

from remembrancer.domain import remember_work as work
from remembrancer.domain.assessment import Assessment, Conversation, Issue
from remembrancer.domain.assessment import Turn as FailedTurn
from remembrancer.domain.assessment_validation import validate
from remembrancer.domain.attempt_objects import key
from remembrancer.domain.ids import parse_id
from remembrancer.domain.ports import Answer, Assessor, Clock, ObjectStore
from remembrancer.domain.problems import FieldError, Problem
from remembrancer.domain.remember_limits import MAX_TURNS
from remembrancer.domain.remember_work import Turn
from remembrancer.flows.attempt import (
    Opened,
    failing,
    in_time,
    objects,
    open_attempt,
    read_object,
    write_object,
)
from remembrancer.flows.context import Services
from remembrancer.store import attempts
from remembrancer.store.database import Unit


def call_model(assessor: Assessor, store: ObjectStore, clock: Clock, turn: Turn) -> Turn:
    """Exactly one model call: reads the turn's request from the work bucket, leaves the answer there.

    Raises ProviderUnavailable, Problem request_timeout.
    """
    until = datetime.fromisoformat(turn.until)
    if not 1 <= turn.turn <= MAX_TURNS:
        raise Problem("internal_failure")
    in_time(clock, until)
    tenant_id, attempt_id = UUID(turn.tenant_id), parse_id("att", turn.attempt_id)
    conversation = work.read_asked(read_object(store, key(tenant_id, attempt_id, turn.turn, "req")))
    if len(conversation.turns) != turn.turn - 1:
        raise Problem("internal_failure")
    answer = assessor.answer(conversation)
    write_object(store, key(tenant_id, attempt_id, turn.turn, "res"), work.answered(answer))
    in_time(clock, until)
    return turn


def check(services: Services, turn: Turn) -> Turn:
    """Valid: kept as a checkpoint. Not valid: the next turn of the same conversation is asked, or it was the last."""
    opened = open_attempt(services, parse_id("att", turn.attempt_id))
    with failing(services, opened):
        in_time(services.clock, opened.deadlines.assessment)
        before = _checked_before(opened, turn)
        if before is not None:
            _delete(services, opened, turn.turn)
            return before
        asked = read_object(objects(services), key(opened.tenant_id, opened.attempt_id, turn.turn, "req"))
        answer = work.read_answered(
            read_object(objects(services), key(opened.tenant_id, opened.attempt_id, turn.turn, "res"))
        )
        conversation = work.read_asked(asked)
        verdict = () if answer.stop == "blocked" else validate(conversation.request, answer.text, answer.stop)
        checked = _record(services, opened, turn, (asked, answer), conversation, verdict)
        in_time(services.clock, opened.deadlines.assessment)
        _delete(services, opened, turn.turn)
        return checked


def _checked_before(opened: Opened, turn: Turn) -> Turn | None:
    """What a run that was lost had made of this turn: it kept the answer, or left the next request."""
    row = opened.row
    if row["assessment"] is not None:
        return replace(turn, verdict="valid")
    if row["turn"] == turn.turn + 1:
        return replace(turn, turn=turn.turn + 1)
    if row["turn"] != turn.turn:
        raise Problem("internal_failure")
    return None


def _record(
    services: Services,
    opened: Opened,
    turn: Turn,
    said: tuple[bytes, Answer],
    conversation: Conversation,
    verdict: Assessment | tuple[Issue, ...],
) -> Turn:
    """The exchange as a diagnostic and what comes of it, in one transaction."""
    asked, answer = said
    issues = () if isinstance(verdict, Assessment) else verdict
    refused = _refused(answer, verdict)
    last = turn.turn == MAX_TURNS
    if issues and not last:
        following = Conversation(conversation.request, (*conversation.turns, FailedTurn(answer.text, issues)))
        # Before the row says so: a run that is lost in between leaves an object that is written again.
        write_object(
            objects(services),
            key(opened.tenant_id, opened.attempt_id, turn.turn + 1, "req"),
            work.asked(following),
        )

    def write(unit: Unit) -> None:
        row = opened.row
        outcome = "rejected" if refused else "invalid" if issues else "valid"
        attempts.save_exchange(unit, row, _exchange(turn.turn, asked, answer, outcome, issues))
        if isinstance(verdict, Assessment) and refused is None:
            kept = {"verdicts": verdict.to_json(), "model": answer.model, "turns": turn.turn}
            attempts.set_assessment(unit, opened.attempt_id, kept)
            attempts.save_checkpoint(unit, row, bytes.fromhex(row["context"]["hash"]), kept)
        elif issues and not last:
            attempts.next_turn(unit, opened.attempt_id, turn.turn)

    services.database.operate(opened.credential, write)
    if refused is not None:
        raise refused
    if not issues:
        return replace(turn, verdict="valid")
    if last:
        raise Problem("provider_response_invalid")
    return replace(turn, turn=turn.turn + 1)


def _exchange(
    turn: int, asked: bytes, answer: Answer, outcome: str, issues: tuple[Issue, ...]
) -> attempts.Exchange:
    return attempts.Exchange(
        turn=turn,
        asked=asked.decode("ascii"),
        answered=answer.text,
        outcome=outcome,
        issues=[asdict(issue) for issue in issues],
        model=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
    )


def _refused(answer: Answer, verdict: Assessment | tuple[Issue, ...]) -> Problem | None:
    """One unsafe item refuses the batch; so does a provider that will not look at it."""
    if answer.stop == "blocked":
        detail = "the model provider refuses these texts"
        return _rejection([FieldError("/evidence", "provider_guardrail", detail)])
    if not isinstance(verdict, Assessment):
        return None
    errors = [
        FieldError(
            f"/evidence/{index}/content", finding.kind, f"at characters {finding.start} to {finding.end}"
        )
        for index, item in enumerate(verdict.evidence)
        if item.rejected
        for finding in item.findings
    ]
    return _rejection(errors) if errors else None


def _rejection(errors: list[FieldError]) -> Problem:
    return Problem("submission_policy_rejected", errors, extensions={"reason": "rejected"})


def _delete(services: Services, opened: Opened, turn: int) -> None:
    objects(services).delete(
        [
            key(opened.tenant_id, opened.attempt_id, turn, "req"),
            key(opened.tenant_id, opened.attempt_id, turn, "res"),
        ]
    )
