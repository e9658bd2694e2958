"""What is read from a text that its sender did not say: relations, and since when or until when they hold."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from remembrancer.domain.linker import link
from remembrancer.domain.requests import Closed, EntityIn, IngestRequest, RelationIn
from remembrancer.domain.temporal import Interval, explicit_interval, extract_interval
from remembrancer.domain.triples import Triple

M = TypeVar("M", bound=Closed)


def enriched(request: IngestRequest, now: datetime) -> IngestRequest:
    """The request with the graph and the validity that its text states, where the caller gave none.

    Explicit values win. A memory itself gets a window only while that holds: a sentence about the past is
    still worth finding today, and would vanish from the default view behind an end that is over.
    """
    interval = _stated(request.content, request.observed_at)
    changed: dict[str, Any] = _linked(request, now)
    if interval is not None:
        if request.relations:
            changed["relations"] = [_dated(relation, interval) for relation in request.relations]
        if request.valid_from is None and request.valid_to is None and _holds(interval, now):
            changed |= {"valid_from": interval.valid_from, "valid_to": interval.valid_to}
    return request.model_copy(update=changed) if changed else request


def _stated(text: str, observed_at: datetime | None) -> Interval | None:
    """`yesterday` needs a day to count from; a text of unknown age is read for its absolute dates alone."""
    return explicit_interval(text) if observed_at is None else extract_interval(text, observed_at)


def _linked(request: IngestRequest, now: datetime) -> dict[str, Any]:
    """Entities and relations of the text when the caller sent neither."""
    if request.entities or request.relations:
        return {}
    links = link(request.content, request.title, request.observed_at or now)
    entities = [
        _made(EntityIn, name=entity.name, kind=entity.kind, aliases=list(entity.aliases))
        for entity in links.entities
    ]
    relations = [_relation(request, triple) for triple in links.triples]
    return {
        "entities": [entity for entity in entities if entity is not None],
        "relations": [relation for relation in relations if relation is not None],
    }


def _relation(request: IngestRequest, triple: Triple) -> RelationIn | None:
    window: tuple[datetime | None, datetime | None] = (triple.valid_from, triple.valid_to)
    if request.observed_at is None:
        said = None if triple.span is None else request.content[slice(*triple.span)]
        interval = None if said is None else explicit_interval(said)
        window = (None, None) if interval is None else (interval.valid_from, interval.valid_to)
    return _made(
        RelationIn,
        subject=triple.subject,
        predicate=triple.predicate,
        object=triple.object,
        polarity=triple.polarity,
        valid_from=window[0],
        valid_to=window[1],
    )


def _made(model: type[M], **fields: Any) -> M | None:
    """None for what the contract has no room for, such as a name that is too long in its compatibility form."""
    try:
        return model(**fields)
    except ValidationError:
        return None


def _dated(relation: RelationIn, interval: Interval) -> RelationIn:
    if relation.valid_from is not None or relation.valid_to is not None:
        return relation
    return relation.model_copy(update={"valid_from": interval.valid_from, "valid_to": interval.valid_to})


def _holds(interval: Interval, now: datetime) -> bool:
    started = interval.valid_from is None or interval.valid_from <= now
    return started and (interval.valid_to is None or now < interval.valid_to)
