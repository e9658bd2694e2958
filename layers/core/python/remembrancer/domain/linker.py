"""Entities and relations read from text when the caller sends none. Deterministic and bounded.

Entities: headings, emphasized terms, code spans, [[wikilinks]] and [[Name|alias]], and the ends of relations.
Relations: [[relation::entity]] about the nearest heading or the title, and simple statements with a small set
of verbs (`Anna works at Acme`). What stands in a code fence is code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken

from remembrancer.domain import lexicon
from remembrancer.domain.clauses import Clause, Token, read_clauses
from remembrancer.domain.facts import object_of
from remembrancer.domain.lexicon import stem
from remembrancer.domain.names import fold
from remembrancer.domain.temporal import explicit_interval, extract_interval
from remembrancer.domain.triples import Triple, predicate_slug

MAX_CHARACTERS = 20_000
MAX_ENTITIES = 200
MAX_TRIPLES = 200
MAX_NAME = 100
MAX_WORDS = 8

EntityKind = Literal["person", "organization", "place", "concept", "other"]


@dataclass(frozen=True)
class LinkedEntity:
    """A name as first written; `aliases` are other names the text gives it."""

    name: str
    kind: EntityKind = "other"
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Links:
    """`truncated` when the text was longer than is read or held more than is kept."""

    entities: tuple[LinkedEntity, ...]
    triples: tuple[Triple, ...]
    truncated: bool


@dataclass
class _Collector:
    entities: dict[str, LinkedEntity] = field(default_factory=dict)
    triples: dict[tuple[str, str, str, str], Triple] = field(default_factory=dict)
    truncated: bool = False

    def entity(self, name: str, kind: EntityKind = "other", alias: str = "") -> str | None:
        """Notes a name; gives it back trimmed, or None when it is no name."""
        name = " ".join(name.split()).strip(" .,;:!?\"'`*_")
        key = fold(name)
        if (
            not key
            or len(name) > MAX_NAME
            or len(name.split()) > MAX_WORDS
            or not any(c.isalnum() for c in key)
        ):
            return None
        known = self.entities.get(key)
        if known is None:
            if len(self.entities) == MAX_ENTITIES:
                self.truncated = True
                return None
            known = LinkedEntity(name)
        aliases = known.aliases
        if alias and fold(alias) not in (key, *(fold(other) for other in aliases)) and len(aliases) < 20:
            aliases = (*aliases, alias)
        chosen = kind if known.kind == "other" else known.kind
        self.entities[key] = LinkedEntity(known.name, chosen, aliases)
        return known.name

    def triple(self, triple: Triple) -> None:
        key = (fold(triple.subject), triple.predicate, fold(triple.object), triple.polarity)
        if key[0] == key[2] or key in self.triples:
            return  # a relation of a thing to itself says nothing
        if len(self.triples) == MAX_TRIPLES:
            self.truncated = True
            return
        self.triples[key] = triple


def link(text: str, title: str | None, reference: datetime | None) -> Links:
    """What `text` names and relates. `title` is what [[relation::entity]] above any heading is about.

    `reference` is the instant from which relative times in statements count (timezone-aware); without one only
    absolute dates are read.
    """
    found = _Collector(truncated=len(text) > MAX_CHARACTERS)
    text = text[:MAX_CHARACTERS]
    topic = found.entity(title, "concept") if title else None
    prose: list[str] = []
    for heading, inline in _inlines(text):
        if heading:
            topic = found.entity(_plain(inline), "concept") or topic
        else:
            prose.append(_plain(inline))
        _terms(found, inline)
        _wikilinks(found, inline.content, topic)
    for paragraph in prose:
        _statements(found, paragraph, reference)
    return Links(tuple(found.entities.values()), tuple(found.triples.values()), found.truncated)


_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("reference")
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]|\n]{1,200}))?\]\]")
_RELATION = re.compile(r"\s*([^:]{1,64}?)\s*::\s*(.{1,130}?)\s*")


def _inlines(text: str) -> Iterator[tuple[bool, MarkdownToken]]:
    """(is a heading, inline token) for every run of inline text; code blocks have none."""
    heading = False
    for token in _PARSER.parse(text):
        if token.type == "heading_open":
            heading = True
        elif token.type == "heading_close":
            heading = False
        elif token.type == "inline":
            yield heading, token


def _plain(inline: MarkdownToken) -> str:
    """The text without markup and without what is struck out; of a wikilink what a reader sees."""
    parts = []
    struck = 0
    for child in inline.children or ():
        struck += {"s_open": 1, "s_close": -1}.get(child.type, 0)
        if not struck and child.type in ("text", "code_inline", "softbreak", "hardbreak"):
            parts.append("\n" if child.type in ("softbreak", "hardbreak") else child.content)
    return _WIKILINK.sub(_shown, "".join(parts))


def _shown(match: re.Match[str]) -> str:
    relation = _RELATION.fullmatch(match[1])
    return match[2] or (relation[2] if relation else match[1])


def _terms(found: _Collector, inline: MarkdownToken) -> None:
    """Code spans and emphasized terms; emphasis without a letter or longer than a term is none."""
    open_at: list[int] = []
    children = inline.children or []
    for index, child in enumerate(children):
        if child.type == "code_inline":
            found.entity(child.content, "concept")
        elif child.type in ("strong_open", "em_open"):
            open_at.append(index)
        elif child.type in ("strong_close", "em_close") and open_at:
            inner = children[open_at.pop() + 1 : index]
            if len(inner) <= MAX_WORDS and all(part.type in ("text", "code_inline") for part in inner):
                found.entity("".join(part.content for part in inner), "concept")


def _wikilinks(found: _Collector, source: str, topic: str | None) -> None:
    for match in _WIKILINK.finditer(source):
        relation = _RELATION.fullmatch(match[1])
        name = found.entity(relation[2] if relation else match[1], alias=(match[2] or "").strip())
        predicate = predicate_slug(relation[1]) if relation else None
        if name and predicate and topic:
            found.triple(Triple(topic, predicate, name))


_FRAMES: tuple[tuple[str, str, EntityKind, EntityKind], ...] = (
    ("live in|reside in", "lives_in", "person", "place"),
    ("work at|work for|be employ by|be employ at", "works_at", "person", "organization"),
    ("report to|be manage by", "reports_to", "person", "person"),
    ("be marry to", "married_to", "person", "person"),
    ("be base in|be locate in|be headquarter in", "located_in", "other", "place"),
    ("be own by", "owned_by", "other", "other"),
    ("be founded by", "founded_by", "organization", "other"),
    ("be bear in", "born_in", "person", "place"),
    ("be maintain by", "maintained_by", "other", "other"),
    ("depend on", "depends_on", "other", "other"),
    ("belong to", "belongs_to", "other", "other"),
    ("use", "uses", "other", "other"),
    ("own", "owns", "other", "other"),
    ("lead", "leads", "person", "other"),
    ("manage", "manages", "person", "other"),
    ("join", "joined", "person", "organization"),
    ("be write in", "written_in", "other", "other"),
)
_VERBS: dict[tuple[str, ...], tuple[str, EntityKind, EntityKind]] = {
    tuple(stem(word) for word in frame.split()): (predicate, subject, object_)
    for frames, predicate, subject, object_ in _FRAMES
    for frame in frames.split("|")
}
_FORMER = re.compile(r"\b(?:no longer|used to|any ?more|stopped|quit|any longer)\b", re.IGNORECASE)
_PAST_PREDICATES = frozenset({"founded_by", "born_in", "joined"})
_ROLES = re.compile(
    r"(?:ceo|cto|cfo|coo|president|chair|founder|member|part|head|director|owner) of", re.IGNORECASE
)


_NOT_SAID = re.compile(
    r"(?:\b(?:everyone|everybody|everything|nobody|nothing|none|no one|anyone|anybody|all|any)\s+(?:but|except)"
    r"|\bno|\b(?:example|e\.g\.|i\.e\.|todo|hypothesis|assumption|rumou?r|fiction|joke|myth|wrong|false)\s*[:,]"
    r"|[\"\u201c\u201e\u00ab\u2018])\s*\Z",
    re.IGNORECASE,
)
"""In front of a statement: it is excepted, an example, or somebody's words, which the text does not make its own."""
_TAKEN_BACK = re.compile(
    r",\s*(?:which is (?:false|wrong|untrue|not true)|or so\b|i (?:guess|think|believe|suppose)\b|they say\b"
    r"|apparently\b|supposedly\b|allegedly\b|maybe\b|perhaps\b|probably\b|not sure\b)",
    re.IGNORECASE,
)
_NEAR = 40
_NO_NAME = frozenset(
    re.findall(
        r"\w+",
        "all any anybody anyone another both each either even every few half many more most neither no nobody none not"
        " nothing once only several some such unlike like besides whoever",
    )
)
_NO_OBJECT = _NO_NAME | {"except", "instead", "less", "rather", "than", "whenever"}


def _statements(found: _Collector, paragraph: str, reference: datetime | None) -> None:
    for clause in read_clauses(paragraph):
        read = _statement(clause)
        if read is None or _is_qualified(paragraph, clause):
            continue
        subject, predicate, object_, kinds = read
        interval = (
            explicit_interval(clause.text) if reference is None else extract_interval(clause.text, reference)
        )
        left, right = found.entity(subject, kinds[0]), found.entity(object_, kinds[1])
        if not left or not right:
            continue
        if interval is not None:
            # `no longer since 2020`, `used to in 2012`: denied now, so true within the interval.
            found.triple(Triple(left, predicate, right, "+", interval.valid_from, interval.valid_to))
        elif not _FORMER.search(clause.text):
            found.triple(Triple(left, predicate, right, "-" if clause.negative else "+"))


def _is_qualified(paragraph: str, clause: Clause) -> bool:
    before = paragraph[max(0, clause.start - _NEAR) : clause.start]
    behind = paragraph[clause.end : clause.end + _NEAR]
    return bool(_NOT_SAID.search(before) or _TAKEN_BACK.search(clause.text) or _TAKEN_BACK.match(behind))


def _statement(clause: Clause) -> tuple[str, str, str, tuple[EntityKind, EntityKind]] | None:
    """(subject, predicate, object, kinds) of a plain statement between two names."""
    if clause.imperative or clause.relative_time or not clause.complement or not _is_named(clause):
        return None
    subject = clause.text[: clause.subject[-1].end - clause.start]
    frame = next((f for f in ((*clause.verb, clause.complement[0].key), clause.verb) if f in _VERBS), None)
    if frame is not None:
        predicate, subject_kind, object_kind = _VERBS[frame]
        rest = clause.complement[len(frame) - len(clause.verb) :]
        if (clause.tense == "past") != (predicate in _PAST_PREDICATES):
            return None
        return _between(clause, subject, predicate, rest, (subject_kind, object_kind))
    if clause.verb == ("be",) and clause.tense == "present":
        said = clause.text[clause.complement[0].start - clause.start :]
        role = _ROLES.match(said)
        at = [token.key for token in clause.complement].index("of") if role and "of" in said else -1
        if role and 0 < at <= 2:
            slug = predicate_slug(role[0]) or "related_to"
            kind: EntityKind = "other" if slug == "part_of" else "person"
            return _between(clause, subject, slug, clause.complement[at + 1 :], (kind, "other"))
    return None


def _between(
    clause: Clause,
    subject: str,
    predicate: str,
    rest: tuple[Token, ...],
    kinds: tuple[EntityKind, EntityKind],
) -> tuple[str, str, str, tuple[EntityKind, EntityKind]] | None:
    tokens = object_of(clause, rest)
    if not tokens or not any(token.named for token in tokens) or any(token.measure for token in tokens):
        return None
    if any(token.text.lower() in _NO_OBJECT for token in tokens):
        return None
    object_ = clause.text[tokens[0].start - clause.start : tokens[-1].end - clause.start]
    return subject, predicate, object_, kinds


def _is_named(clause: Clause) -> bool:
    """Whether the subject is a name: capitalized, without pronoun, article or possessor."""
    words = [token.text for token in clause.subject]
    return (
        0 < len(words) <= 4
        and all(word[:1].isupper() for word in words)
        and not any(word.lower() in _NO_NAME for word in words)
        and not set(",()") & set(clause.text[: clause.subject[-1].end - clause.start])
        and not any(word.lower() in lexicon.CLOSED_CLASS for word in words)
        and not clause.first_person
        and words[0].lower() not in ("i", "we", "my", "our")
    )
