"""The first step of an attempt: what the request means here and now is found once, and the assessor is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from remembrancer.domain import remember_work as work
from remembrancer.domain.assessment import Conversation
from remembrancer.domain.attempt_objects import key
from remembrancer.domain.digests import request_hash
from remembrancer.domain.ids import format_id
from remembrancer.domain.ports import EmbeddingUnavailable
from remembrancer.domain.problems import Problem
from remembrancer.domain.remember_plan import Context, text_sha
from remembrancer.domain.remember_work import Turn
from remembrancer.flows.attempt import Opened, failing, in_time, objects, open_attempt, write_object
from remembrancer.flows.context import Services
from remembrancer.flows.instants import instant
from remembrancer.flows.remember_context import assessment_request, cut_new, gather, known_texts, space_of
from remembrancer.store import attempts
from remembrancer.store.database import Unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

EMBED_BATCH = 16


def prepare(services: Services, attempt_id: UUID, assessor_id: str) -> Turn:
    """Resolve what the request means here and now, and ask; or reuse what an earlier attempt had validated.

    A validated answer is reused of the same assessor alone: `assessor_id` names it, its model and its prompt.
    """
    opened = open_attempt(services, attempt_id)
    with failing(services, opened):
        in_time(services.clock, opened.deadlines.assessment)
        context = _context(services, opened, assessor_id)
        turn = Turn(
            attempt_id=format_id("att", attempt_id),
            tenant_id=str(opened.tenant_id),
            turn=1,
            until=_text(opened.deadlines.assessment),
        )
        if _reused(services, opened, context, assessor_id):
            return replace(turn, verdict="valid")
        asked = assessment_request(opened.request, context)
        write_object(
            objects(services),
            key(opened.tenant_id, attempt_id, 1, "req"),
            work.asked(Conversation(asked)),
        )
        in_time(services.clock, opened.deadlines.assessment)
        return turn


def _context(services: Services, opened: Opened, assessor_id: str) -> Context:
    """Found once and kept; a step that runs again goes on with what the first run found."""
    row = opened.row
    if row["context"] is not None:
        return Context.from_json(row["context"]["found"])
    request = opened.request

    def known(unit: Unit) -> tuple[UUID, frozenset[int]]:
        space_id = space_of(unit, request)
        return space_id, known_texts(unit, request, space_id)

    space_id, stored = services.database.operate(opened.credential, known)
    texts = cut_new(services.embedder, request, stored)
    rendered = [passage.rendered for passages in texts.values() for passage in passages]
    vectors = embed_in_time(services, rendered, opened.deadlines.embedding(services.clock()))
    contract = services.embedder.contract

    def gathered(unit: Unit) -> Context:
        found = gather(unit, request, space_id, texts, vectors, contract, floor=services.duplicate_floor)
        kept = {"found": found.to_json(), "hash": _hash(assessor_id, found).hex()}
        if not attempts.set_prepared(unit, opened.attempt_id, kept, _shown(found)):
            raise Problem("commit_conflict")
        attempts.save_vectors(unit, opened.attempt_id, contract, vectors)
        return found

    return services.database.operate(opened.credential, gathered)


def _hash(assessor_id: str, context: Context) -> bytes:
    """Of everything that an answer depends on, but the request, which is the chain's own."""
    return request_hash({"context": context.to_json(), "assessor": assessor_id})


def _shown(context: Context) -> list[UUID]:
    """The rows whose text the assessor is shown: erasing one of them ends the attempt."""
    return sorted(context.shown | {candidate.entity_id for candidate in context.entities})


def _reused(services: Services, opened: Opened, context: Context, assessor_id: str) -> bool:
    """Whether the answer is there: validated by this attempt, or by an earlier one of the chain in the same context."""
    if opened.row["assessment"] is not None:
        return True

    def take(unit: Unit) -> bool:
        found = attempts.checkpoint(unit, opened.row["chain_id"], _hash(assessor_id, context))
        return found is not None and bool(
            attempts.set_assessment(unit, opened.attempt_id, found["assessment"])
        )

    return services.database.operate(opened.credential, take)


def embed_in_time(services: Services, rendered: Sequence[str], until: datetime) -> dict[bytes, Vector]:
    """The vectors of the texts by `text_sha`, in batches, so that the clock is looked at between two.

    Raises Problem request_timeout, embedding_unavailable.
    """
    texts = {text_sha(text): text for text in rendered}
    shas = list(texts)
    vectors: dict[bytes, Vector] = {}
    for start in range(0, len(shas), EMBED_BATCH):
        in_time(services.clock, until)
        batch = shas[start : start + EMBED_BATCH]
        try:
            found = services.embedder.embed([texts[sha] for sha in batch])
        except EmbeddingUnavailable:
            raise Problem("embedding_unavailable") from None
        if len(found) != len(batch):
            raise Problem("embedding_unavailable")
        vectors |= dict(zip(batch, found, strict=True))
    in_time(services.clock, until)
    return vectors


def _text(at: datetime) -> str:
    shown = instant(at)
    assert shown is not None
    return shown
