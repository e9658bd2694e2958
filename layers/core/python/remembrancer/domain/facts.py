"""Facts with a subject, a predicate and an object, read from simple clauses.

Both `Anna's manager is Tom` and `Anna reports to Tom` become (anna, manager, Tom), so that statements in
different words meet on one key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from remembrancer.domain import lexicon
from remembrancer.domain.clauses import Clause, Token, is_date, phrase_key
from remembrancer.domain.lexicon import stem
from remembrancer.domain.measures import Number
from remembrancer.domain.temporal import Window, explicit_interval
from remembrancer.domain.triples import Span, Triple


@dataclass(frozen=True)
class Fact:
    """`subject` and `predicate` are comparable keys; `single` means one object at a time."""

    subject: str
    predicate: str
    object: str
    named: bool
    """Whether the object is written like a name or is a measure, not a description such as `a bank`."""
    negative: bool
    single: bool
    window: Window
    span: Span | None


_FRAMES: dict[tuple[str, ...], str] = {
    tuple(stem(word) for word in frame.split()): predicate
    for predicate, frames in (
        ("located_in", "live in|reside in|be base in|be locate in|be headquarter in|be situate in"),
        ("located_in", "move to|relocate to"),
        ("works_at", "work at|work for|be employ by|be employ at"),
        ("manager", "report to|be manage by|be supervise by"),
        ("spouse", "be marry to"),
        ("owner", "be own by"),
        ("lead", "be lead by|be head by"),
        ("maintainer", "be maintain by"),
        ("founder", "be found by"),
    )
    for frame in frames.split("|")
}
_PREDICATE_ALIASES = {
    alias: predicate
    for predicate, aliases in (
        ("located_in", "lives_in live_in resides_in based_in residence location located_at home_city city"),
        ("works_at", "works_for employer employed_by works_with company"),
        ("manager", "reports_to managed_by has_manager boss supervisor"),
        ("spouse", "married_to wife husband spouse_of"),
        ("e-mail", "email mail email_address has_email"),
        ("phone", "phone_number telephone has_phone"),
        ("owner", "owned_by"),
        ("lead", "led_by"),
        ("birthday", "birth_date born_on date_of_birth birthdate"),
        ("birthplace", "born_in place_of_birth"),
        ("deadline", "due due_on due_date"),
    )
    for name in (predicate, *aliases.split())
    for alias in (name, "_".join(stem(part) for part in name.split("_")))
}
_HAS_ATTRIBUTES = frozenset(
    stem(word) for word in ("e-mail", "mail", "phone", "address", "birthday", "salary")
)
_BREAK = re.compile(r"[,;:()\[\]]")
_SEATS = frozenset(stem(word) for word in ("headquarters", "residence", "home"))
_FEW_WORDS = 6


def predicate_key(predicate: str) -> str:
    """A predicate's key with its common spellings made one (`lives_in`, `resides_in`)."""
    return _PREDICATE_ALIASES.get(predicate, predicate)


def fact_of_triple(triple: Triple, single_valued: frozenset[str]) -> Fact:
    return Fact(
        phrase_key(triple.subject),
        predicate_key(triple.predicate),
        triple.object,
        named=True,
        negative=triple.polarity == "-",
        single=triple.predicate in single_valued,
        window=(triple.valid_from, triple.valid_to),
        span=triple.span,
    )


def facts_of(clause: Clause) -> Iterator[Fact]:
    """The facts that one clause states; none for hedged, relative, additive or imperative ones."""
    if (
        clause.imperative
        or clause.relative_time
        or clause.additive
        or clause.verb[:1] in (("must",), ("can",))
    ):
        return
    for fact in (*_framed(clause), *_attributes(clause), *_roles(clause), *_lifetime(clause)):
        if fact.object:
            yield fact


def _framed(clause: Clause) -> Iterator[Fact]:
    """`X lives in Y`, `X reports to Y`."""
    if not clause.complement:
        return
    frame = (*clause.verb, clause.complement[0].key)
    predicate = _FRAMES.get(frame)
    moved = clause.verb[0] in (stem("move"), stem("relocate"))
    if predicate is None or clause.tense != ("past" if moved else "present"):
        return
    made = _fact(clause, predicate, clause.complement[1:], single=True)
    if made is not None:
        yield made
        if predicate == "spouse" and made.named:
            yield replace(made, subject=phrase_key(made.object), object=_subject_text(clause))


def _attributes(clause: Clause) -> Iterator[Fact]:
    """`X's email is Y`, `the manager of X is Y`, `X has the email Y`, `port: 8080`."""
    if clause.tense == "past":
        return
    if clause.verb == (stem("have"),) and len(clause.complement) >= 2:
        attribute = clause.complement[0].key
        value = clause.complement[-1]
        if attribute in _HAS_ATTRIBUTES and _is_value(value) and len(clause.complement) <= 3:
            yield _make(clause, " ".join(clause.subject_key), _attribute_name((attribute,)), (value,), True)
        return
    if clause.verb != ("be",) or not clause.complement or clause.several:
        return
    split = split_attribute(clause)
    if split is None:
        return
    owner, attribute_words = split
    first = clause.complement[0]
    if first.key == "in" and owner and attribute_words[-1] in _SEATS:
        seat = _fact(clause, "located_in", clause.complement[1:], single=True)
        if seat is not None:
            yield replace(seat, subject=" ".join(owner))
    if first.key in lexicon.PREPOSITIONS:
        return
    if first.article and not is_attribute(attribute_words):
        return
    made = _fact(clause, _attribute_name(attribute_words), clause.complement, single=False)
    if made is not None:
        one = is_attribute(attribute_words)
        by_name = all(token.measure is None for token in clause.complement) and not _is_plural(
            attribute_words
        )
        yield replace(
            made, subject=" ".join(owner), single=one or (made.named and by_name), named=one or made.named
        )


def _roles(clause: Clause) -> Iterator[Fact]:
    """`X is (the) CEO of Y`: Y has one CEO, and X is CEO of one. `X is Y's manager`."""
    if clause.verb != ("be",) or clause.tense == "past" or len(clause.complement) < 3:
        return
    keys = [token.key for token in clause.complement]
    subject = _subject_text(clause)
    if "of" in keys[1:4]:
        at = keys.index("of", 1)
        role = clause.complement[at - 1].key
        owner = object_of(clause, clause.complement[at + 1 :])
        unique = role in lexicon.UNIQUE_ROLES
        if owner and (unique or role in lexicon.ATTRIBUTES) and not clause.complement[0].article:
            owner_text = _text(clause, owner)
            name = "_".join(keys[:at])
            yield _make(clause, phrase_key(owner_text), _attribute_name(keys[:at]), None, True, subject)
            if unique:
                yield _make(clause, " ".join(clause.subject_key), f"{name}_of", owner, True)
    elif "'s" in keys[1:5]:
        at = keys.index("'s", 1)
        rest = keys[at + 1 :]
        owner_text = _text(clause, clause.complement[:at])
        if 1 <= len(rest) <= 3 and is_attribute(rest):
            yield _make(clause, phrase_key(owner_text), _attribute_name(rest), None, True, subject)


def _lifetime(clause: Clause) -> Iterator[Fact]:
    """`X was born on D`, `X was born in P`, `X was founded in Y`, `X is due on D`, `X is 30 years old`."""
    complement = clause.complement
    if clause.verb == ("be",) and clause.tense == "present" and complement:
        measure = complement[0].measure
        old = len(complement) == 2 and complement[1].key == "old"
        if isinstance(measure, Number) and measure.dimension == "months" and old:
            yield _make(clause, " ".join(clause.subject_key), "age", complement[:1], True)
        if complement[0].key == "due" and len(complement) <= 3 and is_date(complement[-1]):
            yield _make(clause, " ".join(clause.subject_key), "deadline", complement[-1:], True, dated=True)
        return
    if clause.tense != "past" or len(complement) < 2 or clause.verb[:1] != ("be",):
        return
    what = {stem("born"): "birth", stem("found"): "foundation"}.get(clause.verb[-1])
    if what is None or complement[0].key not in ("in", "on"):
        return
    if is_date(complement[1]):
        name = "birthday" if what == "birth" else "founded_on"
        yield _make(clause, " ".join(clause.subject_key), name, complement[1:2], True, dated=True)
    elif what == "birth" and complement[1].named:
        yield _make(
            clause, " ".join(clause.subject_key), "birthplace", object_of(clause, complement[1:]), True
        )


def split_attribute(clause: Clause) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """(owner, attribute) of a subject such as `Anna's email`, `the email of Anna`, or a label."""
    keys = clause.subject_key
    if "'s" in keys:
        at = len(keys) - 1 - keys[::-1].index("'s")
        return (keys[:at], keys[at + 1 :]) if at and keys[at + 1 :] else None
    if "of" in keys:
        at = keys.index("of")
        return (keys[at + 1 :], keys[:at]) if at and keys[at + 1 :] else None
    if "for" in keys:
        at = keys.index("for")
        return (keys[at + 1 :], keys[:at]) if at and keys[at + 1 :] else None
    return ((), keys) if keys and clause.definite else None


def is_attribute(words: Sequence[str]) -> bool:
    """Whether the noun phrase names one value: `manager`, `favourite food`."""
    return words[-1] in lexicon.ATTRIBUTES or any(word in lexicon.SINGULARIZERS for word in words)


def _is_plural(words: Sequence[str]) -> bool:
    return words[-1] in lexicon.PLURAL_ATTRIBUTES and not any(w in lexicon.SINGULARIZERS for w in words)


def _attribute_name(words: Sequence[str]) -> str:
    kept = [word for word in words if word not in lexicon.FILLERS and word not in ("address", "number")]
    return predicate_key("_".join(kept or words))


def _fact(clause: Clause, predicate: str, tokens: Sequence[Token], *, single: bool) -> Fact | None:
    found = object_of(clause, tokens)
    if not found:
        return None
    return _make(clause, " ".join(clause.subject_key), predicate, found, single)


def _make(
    clause: Clause,
    subject: str,
    predicate: str,
    tokens: Sequence[Token] | None,
    single: bool,
    text: str = "",
    *,
    dated: bool = False,
) -> Fact:
    interval = None if dated else explicit_interval(clause.text)
    named = not tokens or _is_value(tokens[-1])  # `the Zurich office` is a description
    return Fact(
        subject,
        predicate,
        _text(clause, tokens) if tokens else text,
        named=named or clause.text.islower(),
        negative=clause.negative,
        single=single,
        window=(None, None) if interval is None else (interval.valid_from, interval.valid_to),
        span=(tokens[0].start, tokens[-1].end) if tokens else (clause.start, clause.end),
    )


def object_of(clause: Clause, tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The leading noun phrase of `tokens`; empty when it is a list or too long to be a plain object."""
    kept: list[Token] = []
    for token in tokens:
        if token.key in ("and", "or", "&") and kept:
            return ()
        if token.text.lower() in lexicon.STOPS:
            break
        if kept and _BREAK.search(clause.text, kept[-1].end - clause.start, token.start - clause.start):
            break
        kept.append(token)
    return tuple(kept) if len(kept) <= _FEW_WORDS else ()


def _is_value(token: Token) -> bool:
    return token.named or token.measure is not None


def _text(clause: Clause, tokens: Sequence[Token]) -> str:
    return clause.text[tokens[0].start - clause.start : tokens[-1].end - clause.start] if tokens else ""


def _subject_text(clause: Clause) -> str:
    if clause.first_person and len(clause.subject) == 1:
        return clause.subject_key[0]
    return re.sub(r"^(?:the|a|an)\s+", "", _text(clause, clause.subject), flags=re.IGNORECASE)
