"""A remember without its workflow: prepare and commit as their own database roles, the assessor scripted.

The assessor of these tests accepts what it is asked: it reuses the one candidate, creates what has none, calls
several ambiguous, and cites the whole text of the first evidence. Tests change single verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from remembrancer.api import wiring
from remembrancer.domain.assessment import (
    Ambiguous,
    Assessment,
    AssessmentRequest,
    Chosen,
    Create,
    EvidenceVerdict,
    MentionView,
    PredicateView,
    ProposalVerdict,
    Register,
    Resolution,
    Reuse,
    Split,
    SupportSpan,
)
from remembrancer.domain.ports import Embedder
from remembrancer.domain.remember_plan import Context, text_sha
from remembrancer.domain.remember_requests import RememberRequest
from remembrancer.flows.remember_commit import Committed, Work, commit
from remembrancer.flows.remember_context import (
    assessment_request,
    cut_new,
    gather,
    known_texts,
    space_of,
)
from remembrancer.store.database import Database, Unit, connect
from tests.integration.probe import call_of
from tests.integration.world import AGENT, Person, World

SINGLE = {"works_at", "lives_in", "has_age"}
"""Predicates that the scripted assessor registers as states of cardinality one."""
EVENTS = {"born_in"}
FLOOR = 0.9
SCREENED = {
    "report": {"verdict": "clean", "signals": [], "layer2": {"verdict": "clean"}},
    "pii": [False] * 20,
}

Decide = Callable[[AssessmentRequest, Assessment], Assessment]


def evidence(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, **more}


def relation(
    subject: str | Mapping[str, Any],
    predicate: str,
    target: str | Mapping[str, Any],
    *,
    ref: str = "",
    cites: Sequence[int] = (0,),
    **more: Any,
) -> dict[str, Any]:
    """`subject` and `target` are names of people and organizations, or whole references; a value has a `type`."""
    subject = {"name": subject, "entity_kind": "person"} if isinstance(subject, str) else dict(subject)
    if isinstance(target, str):
        target = {"entity": {"name": target, "entity_kind": "organization"}}
    elif "type" in target:
        target = {"value": dict(target)}
    elif "entity" not in target:
        target = {"entity": dict(target)}
    return {
        "ref": ref or f"{predicate}-{sum(map(ord, str(subject) + str(target)))}",
        "subject": subject,
        "predicate": {"proposed_key": predicate},
        "object": target,
        "evidence_indices": list(cites),
        **more,
    }


def request_of(
    items: Sequence[Mapping[str, Any]],
    relations: Sequence[Mapping[str, Any]],
    space: str = "team_shared",
) -> RememberRequest:
    return RememberRequest.model_validate(
        {
            "idempotency_key": "k",
            "target_space": space,
            "evidence": list(items),
            "relationships": list(relations),
        }
    )


@dataclass
class Desk:
    world: World
    embedder: Embedder
    floor: float = FLOOR
    _open: dict[str, Database] = field(default_factory=dict)

    def database(self, role: str) -> Database:
        if role not in self._open:
            url = self.world.database.url(role)
            self._open[role] = Database(connect(url), wiring.new_id, clock=self.world.clock)
        return self._open[role]

    def close(self) -> None:
        for database in self._open.values():
            database.close()

    def prepare(self, request: RememberRequest, person: Person = AGENT) -> Work:
        """A work whose assessment is the scripted assessor's."""
        credential = call_of(person, "remember").credential
        database = self.database("rem_remember_prepare")

        def known(unit: Unit) -> tuple[UUID, frozenset[int]]:
            space = space_of(unit, request)
            return space, known_texts(unit, request, space)

        space_id, stored = database.read(credential, known)
        texts = cut_new(self.embedder, request, stored)
        rendered = sorted({p.rendered for passages in texts.values() for p in passages})
        vectors = dict(
            zip(map(text_sha, rendered), self.embedder.embed(rendered) if rendered else [], strict=True)
        )
        contract = self.embedder.contract
        context = database.read(
            credential,
            lambda unit: gather(unit, request, space_id, texts, vectors, contract, floor=self.floor),
        )
        assert Context.from_json(context.to_json()) == context
        return Work(
            attempt_id=wiring.new_id(),
            request=request,
            context=context,
            assessment=accept(assessment_request(request, context)),
            vectors=vectors,
            contract=contract,
            screened=SCREENED,
            correlation_id="test",
        )

    def commit(self, work: Work, person: Person = AGENT, database: Database | None = None) -> Committed:
        credential = call_of(person, "remember").credential
        used = database or self.database("rem_remember_commit")
        return used.write(credential, lambda unit: commit(unit, work))

    def remember(
        self,
        items: Sequence[Mapping[str, Any]],
        relations: Sequence[Mapping[str, Any]],
        *,
        person: Person = AGENT,
        space: str = "team_shared",
        decide: Decide | None = None,
    ) -> dict[str, Any]:
        """The result document."""
        work = self.prepare(request_of(items, relations, space), person)
        if decide is not None:
            asked = assessment_request(work.request, work.context)
            work = replace(work, assessment=decide(asked, work.assessment))
        return self.commit(work, person).document

    def tell(self, subject: str, predicate: str, target: Any, person: Person = AGENT, **more: Any) -> Any:
        """One text, one relationship; its result. The text is made of the statement unless `text` is given."""
        text = more.pop("text", None) or f"{subject} {predicate} {target} {more}."
        space = more.pop("space", "team_shared")
        document = self.remember(
            [evidence(text)], [relation(subject, predicate, target, **more)], person=person, space=space
        )
        [result] = document["relationships"]
        return result


def accept(asked: AssessmentRequest) -> Assessment:
    texts = {item.ref: item.text for item in asked.evidence}
    verdicts = []
    for proposal in asked.proposals:
        first = proposal.evidence[0]
        target = proposal.object
        split = Split(
            _resolve(proposal.subject),
            _resolve(target) if isinstance(target, MentionView) else None,
            _predicate(proposal.predicate),
            (SupportSpan(first, 0, len(texts[first])),),
        )
        verdicts.append(ProposalVerdict(proposal.ref, True, (split,)))
    return Assessment(tuple(EvidenceVerdict(item.ref, False) for item in asked.evidence), tuple(verdicts))


def _resolve(mention: MentionView) -> Resolution:
    if mention.required is not None:
        return Reuse(mention.required)
    if not mention.options:
        return Create()
    return Reuse(mention.options[0].ref) if len(mention.options) == 1 else Ambiguous()


def _predicate(view: PredicateView) -> Chosen | Register:
    if view.required is not None:
        return Chosen(view.required)
    key = view.proposed_key
    assert key is not None
    for option in view.options:
        if key == option.key or key in option.aliases:
            return Chosen(option.ref)
    kind = "event" if key in EVENTS else "state"
    return Register(key, kind, "one" if key in SINGLE | EVENTS else "many")  # type: ignore[arg-type]


def same_as_first(asked: AssessmentRequest, given: Assessment) -> Assessment:
    """Every item that has a duplicate candidate is that duplicate."""
    verdicts = [
        replace(verdict, duplicate=item.duplicates[0].ref) if item.duplicates else verdict
        for item, verdict in zip(asked.evidence, given.evidence, strict=True)
    ]
    return replace(given, evidence=tuple(verdicts))
