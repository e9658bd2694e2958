"""Which live memory a candidate contradicts, and in what words. Surfaced to a person, never acted on.

Three rules (gate.md, section 2): (a) same subject and single-valued predicate with another object, from the
callers' relations or read from simple statements; (b) near-identical statements that differ in a number, date,
name or value; (c) the same statement affirmed here and denied there. Likeness alone is never a conflict, and
neither are two statements whose times do not meet. A false conflict costs a reviewer's trust, so whatever the
reader does not understand is no conflict. English only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice, product
from typing import Any, Literal
from uuid import UUID

from remembrancer.domain import lexicon
from remembrancer.domain.clauses import Clause, Token, read_clauses, word_keys
from remembrancer.domain.facts import Fact, fact_of_triple, facts_of, is_attribute, split_attribute
from remembrancer.domain.ids import format_id
from remembrancer.domain.lexicon import stem
from remembrancer.domain.measures import ClockTime, Date, Measure, Number, differ, find_measures, kind_of
from remembrancer.domain.names import fold
from remembrancer.domain.temporal import explicit_interval, overlap
from remembrancer.domain.triples import Span, Triple

Reason = Literal["single_valued_relation", "number", "date", "name", "value", "polarity"]

_MAX_PAIRS = 400


@dataclass(frozen=True)
class Statement:
    """A text with the relations its caller sent and the window in which it holds (None: open)."""

    text: str
    relations: tuple[Triple, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True)
class Neighbour:
    """A live memory near the candidate."""

    memory_id: UUID
    version: int
    statement: Statement
    cosine: float


@dataclass(frozen=True)
class Conflict:
    """The memory contradicted, why, and where both texts say it (empty for callers' relations).

    The explanation quotes neither text: whoever shows it beside the two shows them through redaction.
    """

    memory_id: UUID
    version: int
    reason: Reason
    explanation: str
    candidate_spans: tuple[Span, ...] = ()
    memory_spans: tuple[Span, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; spans are half-open ranges of code points."""
        return {
            "memory_id": format_id("mem", self.memory_id),
            "version": self.version,
            "reason": self.reason,
            "explanation": self.explanation,
            "candidate_spans": [list(span) for span in self.candidate_spans],
            "memory_spans": [list(span) for span in self.memory_spans],
        }


@dataclass(frozen=True)
class _Finding:
    reason: Reason
    explanation: str
    candidate_span: Span | None
    memory_span: Span | None


class _Reading:
    """A statement taken apart once, indexed by subject so that comparison stays near linear."""

    def __init__(self, statement: Statement, single_valued: frozenset[str]) -> None:
        self.clauses: dict[tuple[str, ...], list[Clause]] = defaultdict(list)
        self.facts: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        facts: list[Fact] = [fact_of_triple(triple, single_valued) for triple in statement.relations]
        for clause in read_clauses(statement.text):
            self.clauses[clause.subject_key].append(clause)
            facts.extend(facts_of(clause))
        for fact in facts:
            self.facts[fact.subject, fact.predicate].append(fact)

    @cached_property
    def subjects(self) -> list[frozenset[str]]:
        """Of each subject the words of its key that a text must have to speak of it."""
        keys = [*self.clauses, *(tuple(subject.split()) for subject, _ in self.facts)]
        return [frozenset(filter(_is_word, key)) for key in keys]


def _is_word(part: str) -> bool:
    """Whether part of a subject's key stands as it is for one word: the first person is written in several."""
    return part.isascii() and part.isalpha() and part != "i"


class Reader:
    """Finds conflicts among many texts and takes each memory apart once, however often it is a neighbour.

    `single_valued` are the keys of predicates of cardinality one, which count besides those the reader knows
    (lives_in, works_at, e-mail, ...).
    """

    def __init__(self, single_valued: Collection[str]) -> None:
        self._single = frozenset(single_valued)
        self._read: dict[UUID, _Reading] = {}
        self._words: dict[UUID, set[str]] = {}

    def find(
        self, candidate: Statement, neighbours: Sequence[Neighbour], memory_id: UUID | None = None
    ) -> Conflict | None:
        """The contradicted memory nearest by cosine, or None.

        `neighbours` are live memories only (the caller filters). Under `memory_id` the candidate may be a
        neighbour of others later.
        """
        if not neighbours:
            return None
        mine = self._reading(memory_id, candidate)
        for neighbour in sorted(neighbours, key=lambda other: -other.cosine):
            if not _windows_meet(candidate, neighbour.statement):
                continue
            if not self._may_meet(mine, neighbour):
                continue
            finding = _compare(mine, self._reading(neighbour.memory_id, neighbour.statement))
            if finding is not None:
                return Conflict(
                    neighbour.memory_id,
                    neighbour.version,
                    finding.reason,
                    finding.explanation,
                    () if finding.candidate_span is None else (finding.candidate_span,),
                    () if finding.memory_span is None else (finding.memory_span,),
                )
        return None

    def _may_meet(self, mine: _Reading, neighbour: Neighbour) -> bool:
        """Whether the memory may speak of a subject of the candidate. Most do not and need not be read."""
        if neighbour.statement.relations:
            return True
        if neighbour.memory_id not in self._words:
            self._words[neighbour.memory_id] = word_keys(neighbour.statement.text)
        return any(subject <= self._words[neighbour.memory_id] for subject in mine.subjects)

    def _reading(self, memory_id: UUID | None, statement: Statement) -> _Reading:
        known = None if memory_id is None else self._read.get(memory_id)
        if known is None:
            known = _Reading(statement, self._single)
            if memory_id is not None:
                self._read[memory_id] = known
        return known


def find_conflict(
    candidate: Statement, neighbours: Sequence[Neighbour], single_valued: Collection[str]
) -> Conflict | None:
    """`Reader.find` for one text."""
    return Reader(single_valued).find(candidate, neighbours)


def _windows_meet(a: Statement, b: Statement) -> bool:
    return overlap((a.valid_from, a.valid_to), (b.valid_from, b.valid_to))


def _compare(mine: _Reading, theirs: _Reading) -> _Finding | None:
    for key, facts in mine.facts.items():
        for a, b in islice(product(facts, theirs.facts.get(key, ())), _MAX_PAIRS):
            finding = _compare_facts(a, b)
            if finding is not None:
                return finding
    for subject, clauses in mine.clauses.items():
        for p, q in islice(product(clauses, theirs.clauses.get(subject, ())), _MAX_PAIRS):
            finding = _compare_clauses(p, q)
            if finding is not None:
                return finding
    return None


def _compare_facts(a: Fact, b: Fact) -> _Finding | None:
    """Rule (a), and (c) for facts: one subject and predicate, two objects or two polarities."""
    if not overlap(a.window, b.window) or (a.negative and b.negative):
        return None
    apart = objects_differ(a.object, b.object)
    what = _named_predicate(a.predicate)
    if a.negative != b.negative:
        if apart is not False:
            return None
        affirms, denies = ("memory", "candidate") if a.negative else ("candidate", "memory")
        text = f"The {affirms} affirms {what} of one subject and the {denies} denies it."
        return _Finding("polarity", text, a.span, b.span)
    if apart is not True or not (a.single or b.single) or not (a.named and b.named):
        return None
    text = f"A subject has one value for {what} at a time; candidate and memory give two."
    measure = _whole_measure(a.object)
    if measure is not None and a.span is not None and b.span is not None:
        reason: Reason = "number" if kind_of(measure) == "number" else "date"
        return _Finding(reason, text, a.span, b.span)
    return _Finding("single_valued_relation", text, a.span, b.span)


def _compare_clauses(a: Clause, b: Clause) -> _Finding | None:
    """Rules (b) and (c): one subject and verb, and complements that differ in one slot or not at all."""
    if a.relative_time or b.relative_time or a.imperative != b.imperative or a.verb != b.verb:
        return None
    if (a.tense == "past") != (b.tense == "past"):
        return None
    if a.negative != b.negative:
        return _opposite(a, b)
    if a.negative or a.additive or b.additive:
        return None
    left, right = a.complement, b.complement
    changes = [
        (tag, left[i:j], right[k:m], left[:i], left[j:])
        for tag, i, j, k, m in SequenceMatcher(
            None, [token.key for token in left], [token.key for token in right], autojunk=False
        ).get_opcodes()
        if tag != "equal"
    ]
    changes = [change for change in changes if not _agree(change[1], change[2])]
    if _is_swapped(a, b):
        text = "The same preference the other way round."
        return _Finding("value", text, _span(left), _span(right))
    if not changes or any(tag != "replace" for tag, *_ in changes):
        return None
    if len(changes) > 1 and not (
        len(changes) == 2 and all(_is_when(c[1]) and _is_when(c[2]) for c in changes)
    ):
        return None
    _, mine, theirs, before, after = changes[0]
    if any(token.key in ("and", "or") for token in (*before[-1:], *after[:1])):
        return None
    if any(token.key in lexicon.STOPS for token in (*mine, *theirs)):
        return None  # more than one thing differs
    reason = _slot_reason(a, b, mine, theirs, before, after)
    if reason is None or not _clauses_meet(a, b, reason):
        return None
    text = f"The same statement with another {reason}."
    return _Finding(reason, text, _span(mine), _span(theirs))


def _is_swapped(a: Clause, b: Clause) -> bool:
    """`prefers tea over coffee` beside `prefers coffee over tea`."""
    if a.verb != (stem("prefer"),):
        return False
    sides = []
    for clause in (a, b):
        keys = [token.key for token in clause.complement]
        at = next((i for i, key in enumerate(keys) if key in ("over", "to")), 0)
        sides.append((keys[:at], keys[at + 1 :]))
    return bool(sides[0][0]) and sides[0] == sides[1][::-1]


def _opposite(a: Clause, b: Clause) -> _Finding | None:
    """Rule (c)."""
    if a.first_person and (a.tense == "past" or not _lasting(a)):
        return None
    if a.imperative and not a.complement:
        return None
    affirmed, denied = (b, a) if a.negative else (a, b)
    if not _same_content(affirmed.complement, denied.complement) or not _clauses_meet(a, b, "polarity"):
        return None
    denies = "candidate" if a.negative else "memory"
    text = f"The same statement, which the {denies} denies."
    return _Finding("polarity", text, (a.start, a.end), (b.start, b.end))


def _lasting(clause: Clause) -> bool:
    """Whether a first person's statement is about habits or possessions and not about the moment."""
    return clause.verb[-1] in lexicon.LASTING_VERBS or clause.verb in lexicon.NAMED_FRAMES


def _same_content(affirmed: Sequence[Token], denied: Sequence[Token]) -> bool:
    """Equal word for word, but for `any`, `some` and the number that only an affirmation gives."""
    loose = ("any", "some", "at", "all") if denied and denied[-1].key == "all" else ("any", "some")
    left = [token for token in affirmed if token.key not in ("some", "any")]
    right = [token for token in denied if token.key not in loose]
    if not any(isinstance(token.measure, Number) for token in right):
        left = [token for token in left if not _is_count(token)]
    return len(left) == len(right) and all(_tokens_agree(x, y) for x, y in zip(left, right, strict=True))


def _is_count(token: Token) -> bool:
    return isinstance(token.measure, Number) and token.measure.dimension is None


def _clauses_meet(a: Clause, b: Clause, reason: Reason) -> bool:
    """Whether the times that the two sentences give leave them a common instant."""
    if reason == "date":
        return True  # the differing date is what is said, not when it holds
    return overlap(_window(a), _window(b))


def _window(clause: Clause) -> tuple[datetime | None, datetime | None]:
    interval = explicit_interval(clause.text)
    return (None, None) if interval is None else (interval.valid_from, interval.valid_to)


def _agree(left: Sequence[Token], right: Sequence[Token]) -> bool:
    return len(left) == len(right) == 1 and _tokens_agree(left[0], right[0])


def _tokens_agree(x: Token, y: Token) -> bool:
    if x.measure is not None and y.measure is not None:
        return differ(x.measure, y.measure) is False
    return x.key == y.key


def _is_when(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and isinstance(tokens[0].measure, (Date, ClockTime))


def _slot_reason(
    a: Clause,
    b: Clause,
    mine: Sequence[Token],
    theirs: Sequence[Token],
    before: Sequence[Token],
    after: Sequence[Token],
) -> Reason | None:
    """Which kind of contradiction the one differing slot is, if it is one."""
    x, y = mine[0].measure, theirs[0].measure
    if len(mine) == len(theirs) == 1 and x is not None and y is not None:
        if differ(x, y) is not True:
            return None
        kind = kind_of(x)
        if kind == "number":
            return "number" if _number_slot(a, before) else None
        return "date" if _date_slot(a, before) else None
    if any(token.measure is not None for token in (*mine, *theirs)) and not _mixed_values(mine, theirs):
        return None
    return _value_reason(a, b, mine, theirs, before, after)


def _mixed_values(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Names that carry a number (`Gate 12`, `Ubuntu 22.04`) may be compared as names."""
    return any(token.named for token in mine) and any(token.named for token in theirs)


def _number_slot(clause: Clause, before: Sequence[Token]) -> bool:
    """Whether the number says how much of one thing, and not which thing or how much this time."""
    head = clause.verb[-1]
    label = before[-1] if before else None
    if label is not None and label.key in lexicon.COUNTED_THINGS:
        return _functional_frame(clause, before) or (clause.verb == ("be",) and clause.definite)
    if label is not None and label.named and head in lexicon.PLURAL_VERBS and head != stem("use"):
        return False
    if clause.tense == "past":
        return not clause.first_person and (clause.verb[0] == "be" or head not in lexicon.REPEATABLE)
    return True


def _date_slot(clause: Clause, before: Sequence[Token]) -> bool:
    """Whether the date or time is what the statement says, and not the window in which it holds."""
    preposition = before[-1].key if before and before[-1].key in lexicon.PREPOSITIONS else ""
    verb = _plain_verb(clause)
    if preposition in ("since", "until", "till"):
        return not clause.first_person or clause.tense == "present"
    if preposition in ("before", "after", "from"):
        return False
    if verb == ("be",):
        return not (clause.first_person and len(clause.subject) == 1) and len(before) <= 1
    if clause.definite and clause.tense == "present" and any(isinstance(t.measure, Date) for t in before):
        return True  # `on Tuesdays at 19:00` beside `on Tuesdays at 20:00`
    if verb in lexicon.PRESENT_DATED:
        return clause.definite and clause.tense == "present"
    if verb in lexicon.DATED_FRAMES or (*verb, *(token.key for token in before[:1])) in lexicon.DATED_FRAMES:
        return clause.tense != "past" or not clause.first_person or verb[-1] in lexicon.ONE_TIME
    return verb[-1] in lexicon.ONE_TIME


def _value_reason(
    a: Clause,
    b: Clause,
    mine: Sequence[Token],
    theirs: Sequence[Token],
    before: Sequence[Token],
    after: Sequence[Token],
) -> Reason | None:
    named = _is_value(mine[-1]) and _is_value(theirs[-1])
    reason: Reason = "name" if named else "value"
    if _exclusive(mine, theirs, a, before):
        return "value"
    left, right = _around(a, mine), _around(b, theirs)
    if objects_differ(left, right) is not True or max(len(mine), len(theirs)) > 4:
        return None
    if _is_functional(a, before, after, named):
        return reason
    return None


def _is_functional(clause: Clause, before: Sequence[Token], after: Sequence[Token], named: bool) -> bool:
    """Whether the slot behind `before` takes one object at a time."""
    if clause.tense == "past" and not (clause.verb[:1] == ("be",) and len(clause.verb) > 1):
        return False
    if clause.several:
        return False
    if after and after[0].key == "as" and any(token.key in lexicon.SINGULARIZERS for token in after):
        return True  # `use MySQL as our primary database`
    frame = _frame(clause, before)
    if len(frame) == 3 and frame[0] == "be" and frame[2] == "by" and frame[1] not in lexicon.PLURAL_VERBS:
        return named  # the one who did it
    if frame in lexicon.OPEN_FRAMES:
        return True
    if frame in lexicon.NAMED_FRAMES:
        return named
    if clause.verb != ("be",):
        return False
    keys = [token.key for token in before]
    if keys and keys[0] not in ("in", "at", "on"):
        return False
    owned = split_attribute(clause)
    words = owned[1] if owned else clause.subject_key
    if not keys and words and is_attribute(words):
        return clause.definite or bool(owned)
    if not named or not (clause.definite or clause.label):
        return False
    article = clause.complement[0].article
    return (
        not article
        and words[-1] not in lexicon.PLURAL_ATTRIBUTES
        and not clause.subject[-1].text.endswith("s")
    )


def _functional_frame(clause: Clause, before: Sequence[Token]) -> bool:
    frame = _frame(clause, before[:-1])
    return frame in lexicon.OPEN_FRAMES or frame in lexicon.NAMED_FRAMES


def _frame(clause: Clause, before: Sequence[Token]) -> tuple[str, ...]:
    """Verb and the last preposition before the slot."""
    at = [token.key for token in before if token.key in lexicon.PREPOSITIONS]
    return (*_plain_verb(clause), *at[-1:])


def _plain_verb(clause: Clause) -> tuple[str, ...]:
    return clause.verb[1:] if clause.verb[0] in ("must", "can") else clause.verb


def _exclusive(
    mine: Sequence[Token], theirs: Sequence[Token], clause: Clause, before: Sequence[Token]
) -> bool:
    """Whether two single words exclude each other as a quality (red, blue) or a rhythm (daily, weekly)."""
    if len(mine) != 1 or len(theirs) != 1 or clause.tense == "past":
        return False
    group = lexicon.EXCLUSIVE.get(mine[0].key)
    if group is None or group != lexicon.EXCLUSIVE.get(theirs[0].key):
        return False
    if group == lexicon.EXCLUSIVE[stem("daily")]:
        return not clause.first_person
    return clause.verb == ("be",) and all(token.key in lexicon.PREPOSITIONS for token in before)


def _around(clause: Clause, slot: Sequence[Token]) -> str:
    """The slot with the capitalized words that belong to the same name (`San` before `Francisco`)."""
    tokens = clause.complement
    first = next(i for i, token in enumerate(tokens) if token.start == slot[0].start)
    last = first + len(slot) - 1
    while first > 0 and tokens[first - 1].named and _touch(clause, tokens[first - 1], tokens[first]):
        first -= 1
    while (
        last + 1 < len(tokens) and tokens[last + 1].named and _touch(clause, tokens[last], tokens[last + 1])
    ):
        last += 1
    return clause.text[tokens[first].start - clause.start : tokens[last].end - clause.start]


def _touch(clause: Clause, left: Token, right: Token) -> bool:
    return clause.text[left.end - clause.start : right.start - clause.start] in (" ", ". ")


def _is_value(token: Token) -> bool:
    return token.named or token.measure is not None


def _span(tokens: Sequence[Token]) -> Span:
    return (tokens[0].start, tokens[-1].end)


def _named_predicate(predicate: str) -> str:
    """A predicate read from text is quoted only when it is one of ours: text may be personal."""
    return f"`{predicate}`" if predicate in lexicon.SHOWN_PREDICATES else "this attribute"


def objects_differ(a: str, b: str) -> bool | None:
    """True: two different things. False: the same. None: perhaps one thing named twice.

    Perhaps the same: one name within the other, initials, nicknames, a city and a country, a typing error.
    """
    whole = [_whole_measure(text) for text in (a, b)]
    if whole[0] is not None and whole[1] is not None:
        return differ(whole[0], whole[1])
    left, right = _key(a), _key(b)
    if left == right:
        return False
    if not left or not right:
        return None
    if not any(c.isalpha() for c in left + right):
        return _digits(left) != _digits(right)  # +1 202 555 0143 and +1-202-555-0143
    if any(c in text for text in (left, right) for c in "@/:") or (_has_digit(left) and _has_digit(right)):
        return True
    p, q = left.split(), right.split()
    if all(len(words) == 1 and set(words[0]) & set("-_.") for words in (p, q)) and (a + b).islower():
        return True  # identifiers, not one name spelled twice
    if set(p) <= set(q) or set(q) <= set(p) or _initials(p) == right or _initials(q) == left:
        return None
    if _place_rank(left) != _place_rank(right):
        return None
    if len(p) == len(q) and all(_maybe_same_word(x, y) for x, y in zip(p, q, strict=True)):
        return None
    return True


def _whole_measure(text: str) -> Measure | None:
    found = find_measures(text.strip(), months_alone=True)
    if len(found) == 1 and found[0].start == 0 and found[0].end == len(text.strip()):
        return found[0].measure
    return None


def _key(text: str) -> str:
    words = [word.strip('.,;:!"“”()`*_') for word in fold(text).split()]
    if len(words) > 1 and words[0] in lexicon.DETERMINERS:
        words = words[1:]
    skipped = lexicon.LEGAL_FORMS | lexicon.TITLES
    kept = [word for word in words if word and word not in skipped] or [word for word in words if word]
    key = " ".join(kept)
    return lexicon.PLACE_ALIASES.get(key, key)


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _place_rank(key: str) -> int:
    if key in lexicon.CONTINENTS:
        return 3
    if key in lexicon.COUNTRIES:
        return 2
    return 1 if key in lexicon.REGIONS else 0


def _maybe_same_word(x: str, y: str) -> bool:
    if x == y or _synonym(x) == _synonym(y) or lexicon.NICKNAMES.get(x, x) == lexicon.NICKNAMES.get(y, y):
        return True
    shorter, longer = sorted((x, y), key=len)
    if len(shorter) >= 4 and longer.startswith(shorter):
        return True
    return len(shorter) >= 5 and SequenceMatcher(None, x, y, autojunk=False).ratio() >= 0.85


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def _synonym(word: str) -> str:
    key = stem(word)
    return lexicon.SYNONYMS.get(key, key)
