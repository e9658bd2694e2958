"""What is read from a text that its sender did not say: relations, and since when or until when they hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from remembrancer.domain.linker import link
from remembrancer.domain.names import fold
from remembrancer.domain.requests import Closed, EntityIn, IngestRequest, RelationIn
from remembrancer.domain.temporal import Interval, denies, explicit_interval, extract_interval, sentences
from remembrancer.domain.triples import Triple

M = TypeVar("M", bound=Closed)


def enriched(request: IngestRequest, now: datetime) -> IngestRequest:
    """The request with the graph and the validity that its text states, where the caller gave none.

    Explicit values win. A relation is dated by the sentence that names both its ends, a denied one by none. A
    memory itself gets a window only when all its text is one statement, and only while that holds: a sentence about
    the past is still worth finding today, and would vanish from the default view behind an end that is over.
    """
    said = sentences(request.content)
    changed: dict[str, Any] = _linked(request)
    if request.relations:
        folded = [fold(sentence) for sentence in said]
        changed["relations"] = [_dated(request, relation, said, folded) for relation in request.relations]
    if request.valid_from is None and request.valid_to is None and len(said) == 1 and not denies(said[0]):
        interval = _stated(said[0], request.observed_at)
        if interval is not None and _holds(interval, now):
            changed |= {"valid_from": interval.valid_from, "valid_to": interval.valid_to}
    return request.model_copy(update=changed) if changed else request


def _stated(text: str, observed_at: datetime | None) -> Interval | None:
    """`yesterday` needs a day to count from; a text of unknown age is read for its absolute dates alone."""
    return explicit_interval(text) if observed_at is None else extract_interval(text, observed_at)


def _linked(request: IngestRequest) -> dict[str, Any]:
    """Entities and relations of the text when the caller sent neither."""
    if request.entities or request.relations:
        return {}
    links = link(request.content, request.title, request.observed_at)
    entities = [
        _made(EntityIn, name=entity.name, kind=entity.kind, aliases=list(entity.aliases))
        for entity in links.entities
    ]
    relations = [_relation(triple) for triple in links.triples]
    return {
        "entities": [entity for entity in entities if entity is not None],
        "relations": [relation for relation in relations if relation is not None],
    }


def _relation(triple: Triple) -> RelationIn | None:
    return _made(
        RelationIn,
        subject=triple.subject,
        predicate=triple.predicate,
        object=triple.object,
        polarity=triple.polarity,
        valid_from=triple.valid_from,
        valid_to=triple.valid_to,
    )


def _made(model: type[M], **fields: Any) -> M | None:
    """None for what the contract has no room for, such as a name that is too long in its compatibility form."""
    try:
        return model(**fields)
    except ValidationError:
        return None


def _dated(
    request: IngestRequest, relation: RelationIn, said: Sequence[str], folded: Sequence[str]
) -> RelationIn:
    if relation.valid_from is not None or relation.valid_to is not None or relation.polarity == "-":
        return relation
    value = relation.object if relation.value is None else str(relation.value.value)
    ends = [fold(relation.subject), fold(value or "")]
    own = [
        sentence
        for sentence, plain in zip(said, folded, strict=True)
        if len(said) == 1 or all(end in plain for end in ends)
    ]
    interval = _stated(own[0], request.observed_at) if len(own) == 1 else None
    if interval is None:
        return relation
    return relation.model_copy(update={"valid_from": interval.valid_from, "valid_to": interval.valid_to})


def _holds(interval: Interval, now: datetime) -> bool:
    started = interval.valid_from is None or interval.valid_from <= now
    return started and (interval.valid_to is None or now < interval.valid_to)
