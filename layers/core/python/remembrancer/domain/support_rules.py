"""Whether a text states a proposed relationship, by rules alone, for plain English sentences.

Built for precision: subject, relation, object and polarity must all be read in one clause, or in two
neighbouring sentences when the second begins with a pronoun that can only mean the subject of the first. What
domain/clauses.py does not understand, hedged, reported, conditional and asked sentences among it, supports
nothing. Measured by bench/remember.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import islice
from typing import Literal

from remembrancer.domain import lexicon
from remembrancer.domain.assessment import MentionView, ProposalView, ValueView
from remembrancer.domain.clauses import Clause, Token, read_clauses, sentences
from remembrancer.domain.facts import Fact, facts_of, predicate_key
from remembrancer.domain.lexicon import stem
from remembrancer.domain.measures import Date, Number, find_measures
from remembrancer.domain.names import fold

_WORD = re.compile(r"\w+(?:['’.\-@/:+&_]\w+)*(?:\+\+|#)?")
_LINE = re.compile(r"[^\n]+")
_PRONOUN = re.compile(r"\s*(he|she|it|they|his|her|its|their)\b(?!['’])\s*", re.IGNORECASE)
_STAND_IN = "Xanthe"
"""Written for a leading pronoun, so that the clause reader sees a subject."""
_PERSONAL = frozenset({"he", "she", "his", "her"})
_POSSESSIVE = frozenset({"his", "her", "its", "their"})
_TAKEN_BACK = re.compile(
    r"\s*(?:just kidding|kidding|joking|just joking|scratch that|strike that|not really|not true|wrong|no, "
    r"|never ?mind|correction|actually,? (?:no|not|that)|i was wrong|that was wrong"
    r"|sorry|oops|i (?:meant|lied|misspoke|made (?:that|this|it) up|take (?:that|this|it) back)"
    r"|(?:that|this|it)(?: was| used to be| isn['’]t| wasn['’]t| has changed| changed) "
    r"|(?:that|this|it|which)(?:['’]s| is| was)?(?: no longer| not|n['’]t| a lie| a joke| wrong| false| untrue"
    r"| incorrect| outdated| old| a mistake| a rumou?r| fiction))",
    re.IGNORECASE,
)
_UNTRUE = re.compile(
    r"\s*(?:false|untrue|not true|myth|fiction|lie|hoax|fake|rumou?r|joke|example|hypothes[ie]s|hypothetical"
    r"|wrong|incorrect|draft|idea|proposal|assumption|claim|quiz|question)\b[^:\n]{0,20}:",
    re.IGNORECASE,
)
"""What stands before such a label's colon is not said to be so."""
_INVENTED = re.compile(
    r"\bin (?:the|a|an|his|her|my|our|this|that) (?:\w+ )?(?:play|film|movie|novel|story|book|game|dream|series|show"
    r"|simulation|scenario|example|sketch|comic|video|song|joke|legend|myth)\b",
    re.IGNORECASE,
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


_DENIALS = lexicon.NEGATIONS | {"cannot", "stopped", "stop", "quit"}
_MOVES = _stems("move relocate")
_PLACED = frozenset({"at", "in", "for", "from", "to", "near"})
_UNSURE = _set(
    "temporarily sometimes occasionally rarely seldom guess guesses guessed pretends pretended presume presumes"
    " reckon reckons imagines fictional fictitious hypothetical"
)
"""Beside lexicon.HEDGES, which the clause reader knows: nothing in such a sentence holds without reserve."""
_EXCEPTIONS = _set("unless except or short than heart")
_OTHER_TIMES = _set("from until till starting effective after before")
"""Behind the first word of a complement these make it another statement; times only one about the present."""
_SHARED_OUT = _set("per each apiece too short more less fewer")
_PERSONS = _set(
    "mayor guest cousin sister brother friend boss colleague wife husband son daughter mother father parent child"
    " man woman girl boy guy lady neighbour neighbor client customer candidate student president someone somebody"
    " person uncle aunt nephew niece partner chief ceo cto cfo host nurse chef coach dad mum mom baby kid"
)
_PERSON_ENDINGS = ("er", "or", "ist", "ian", "ess", "man", "woman", "ant", "ee")
_LEADS: dict[str, frozenset[str]] = {
    "person": lexicon.TITLES,
    "organization": frozenset({"company", "team", "firm", "startup"}),
    "project": frozenset({"project", "initiative", "programme", "program"}),
    "product": frozenset({"product", "app", "application", "service", "tool", "library", "system", "flag"}),
    "place": frozenset({"city", "town", "village"}),
    "document": frozenset({"document", "ticket", "report", "issue", "file", "article", "book", "novel"}),
}
"""Nouns that may stand before or behind a name of that kind without making it another thing."""
_BOTH_SIDES = frozenset({"project", "company", "service", "app", "ticket", "product"})

_ROLE_KEYS = _set("role job job_title title occupation profession position works_as")
_COST_KEYS = _set("price cost costs fee")
_DATE_KEYS = _set("date held_on scheduled_for scheduled_on takes_place_on happens_on")
_DIMENSIONS = {
    "height": "high tall",
    "length": "long",
    "width": "wide",
    "depth": "deep",
    "age": "old",
    "weight": "heavy",
}
_COUNT = re.compile(r"(?:has|have|number_of|total)_(?P<noun>[a-z0-9_]+)|(?P<noun2>[a-z0-9_]+)_count")
_LATE_PLACE = _stems("study teach work volunteer serve play train live")
_PAST_EVENTS = _stems(
    "bear found build write release ship launch publish acquire sign complete establish make"
)
_BARE_PAST = _set("wrote won built met sold bought led left became made born founded hired")
# Collapsed by domain/facts.py for comparing two texts; as support they would claim more than was said.
_NOT_COLLAPSED = frozenset({"works_with", "wife", "husband", "company"})


MAX_STATEMENTS = 200
"""Read of one evidence text; what comes after them supports nothing."""


class _Statement:
    """One clause, the span that says it, and the sentence it was read from.

    Of a clause whose subject is a pronoun, the span and `antecedent` reach back to the sentence before.
    """

    def __init__(
        self, clause: Clause, span: tuple[int, int], sentence: str, antecedent: str = "", pronoun: str = ""
    ) -> None:
        self.clause = clause
        self.span = span
        self.antecedent = antecedent
        self.pronoun = pronoun
        words = [word.lower() for word in _WORD.findall(sentence)]
        self.denials = sum(word in _DENIALS or word.endswith(("n't", "n’t")) for word in words)
        self.used_to = "used" in words
        turned = sum(stem(word) in lexicon.OPPOSITES for word in words)
        # Two turns of the polarity in one sentence are more than these rules can follow.
        self.plain = (
            not clause.imperative
            and clause.tense != "future"
            and clause.verb[:1] != ("must",)
            and self.denials + turned <= 1
            and not _UNSURE.intersection(words)
            and not _INVENTED.search(sentence)
            and not _limited(clause)
            and not (clause.first_person and clause.subject[0].text.lower() == "we")
            and not (clause.negative and not self.denials and not turned and not self.used_to)
        )

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(facts_of(self.clause))


def _limited(clause: Clause) -> bool:
    words = {token.text.lower() for token in clause.complement[1:]}
    return bool(words & _EXCEPTIONS or (clause.tense == "present" and words & _OTHER_TIMES))


class Claim:
    """A proposal made ready to be held against statements."""

    def __init__(self, proposal: ProposalView) -> None:
        self.proposal = proposal
        view = proposal.predicate
        required = next((option.key for option in view.options if option.ref == view.required), None)
        self.key = required or view.proposed_key or ""
        self.words = self.key.split("_")
        self.subject = _names(proposal.subject)
        self.object = _names(proposal.object) if isinstance(proposal.object, MentionView) else ()
        self.subject_keys = {" ".join(_key_words(name)) for name in self.subject}
        self.canonical = {_canonical(self.words), predicate_key(self.key)}
        self.verb, self.flipped = _verb_key(self.words[0])
        self.past = _is_past(self.words)


class EvidenceReading:
    """The statements of one evidence text, read once for all the proposals that cite it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def statements(self) -> tuple[_Statement, ...]:
        return tuple(statement for statement in islice(self._read(), MAX_STATEMENTS) if statement.plain)

    def judge(self, claim: Claim) -> tuple[int, int] | Literal["contradicted"] | None:
        """The span (code points, whole sentences) that states the proposal, or that a sentence states its
        opposite, or None when nothing is said about it."""
        found: tuple[int, int] | None = None
        for statement in self.statements:
            negative = _Reading(statement, claim).negative()
            if negative is None:
                continue
            if negative != (claim.proposal.polarity == "-"):
                return "contradicted"
            found = found or statement.span
        return found

    def _read(self) -> Iterator[_Statement]:
        for line in _LINE.finditer(self.text):
            yield from _statements(line.start(), line[0])


def _statements(offset: int, line: str) -> Iterator[_Statement]:
    """Those of one line; only there does a pronoun reach back."""
    if _UNTRUE.match(line):
        return
    spans = sentences(line)
    clauses = read_clauses(line)
    for index, (start, end) in enumerate(spans):
        follower = line[slice(*spans[index + 1])] if index + 1 < len(spans) else ""
        if _TAKEN_BACK.match(follower):
            continue
        own = [clause for clause in clauses if start <= clause.start < end]
        for clause in own:
            yield _Statement(clause, _trimmed(line, start, end, offset), line[start:end])
        pronoun = _PRONOUN.match(line, start, end)
        if own or pronoun is None or index == 0:
            continue
        word = pronoun[1].lower()
        before = line[slice(*spans[index - 1])]
        replaced = f"{_STAND_IN}{'’s' if word in _POSSESSIVE else ''} {line[pronoun.end() : end]}"
        wide = _trimmed(line, spans[index - 1][0], end, offset)
        for clause in read_clauses(replaced):
            yield _Statement(clause, wide, replaced, before, word)


def _trimmed(line: str, start: int, end: int, offset: int) -> tuple[int, int]:
    piece = line[start:end]
    return (
        offset + start + len(piece) - len(piece.lstrip()),
        offset + end - len(piece) + len(piece.rstrip()),
    )


class _Reading:
    """One clause held against one claim."""

    def __init__(self, statement: _Statement, claim: Claim) -> None:
        self.statement = statement
        self.clause = statement.clause
        self.claim = claim
        self.proposal = claim.proposal
        self.key = claim.key
        self.words = claim.words
        self.subject = claim.subject

    def negative(self) -> bool | None:
        """Whether the clause denies the relationship; None when it says nothing about it."""
        for rule in (
            self._fact,
            self._verb,
            self._attribute,
            self._role,
            self._have,
            self._measure,
            self._state,
        ):
            said = rule()
            if said is not None:
                return said
        return None

    # Subject and object

    def _is_subject(self, tokens: Sequence[Token]) -> bool:
        """Whether a noun phrase is the proposal's subject and nothing else."""
        if self.statement.antecedent:
            return (
                len(tokens) == 1
                and tokens[0].text == _STAND_IN
                and _only_meant(self.statement, self.proposal.subject, self.subject)
            )
        if len(tokens) == 1 and tokens[0].text == "I" and self.clause.first_person:
            return any(self.clause.subject_key == (" ".join(name),) for name in self.subject)
        conjuncts = _conjuncts(tokens)
        return any(_is_name(part, self.subject, self.proposal.subject.kind) for part in conjuncts)

    def _is_object(self, tokens: Sequence[Token]) -> bool:
        """Whether a noun phrase that stands alone is the proposal's object."""
        target = self.proposal.object
        if isinstance(target, ValueView):
            return bool(tokens) and self._value(tokens, target) == len(tokens)
        return _is_name(list(tokens), self.claim.object, target.kind)

    def _object_leads(self, tokens: Sequence[Token]) -> bool:
        """Whether the object is the noun phrase, or an item of the plain list, that `tokens` begin with."""
        target = self.proposal.object
        at = 0
        while at < len(tokens):
            begin = at
            while at < len(tokens) and (
                tokens[at].text.lower() in lexicon.DETERMINERS
                or (tokens[at].article and tokens[at].measure is not None)
            ):
                at += 1
            length = self._match(tokens[at:], target)
            if length and self._ends(tokens, at + length):
                return True
            at = self._next_item(tokens, begin)
        return False

    def _match(self, tokens: Sequence[Token], target: MentionView | ValueView) -> int:
        """How many tokens the object takes at the beginning of `tokens`; 0 when it is not there."""
        if isinstance(target, ValueView):
            return self._value(tokens, target)
        leads = _LEADS.get(target.kind, frozenset())
        lead = 1 if len(tokens) > 1 and tokens[0].text.lower() in leads else 0
        for skipped in (0, lead) if lead else (0,):
            for name in self.claim.object:
                length = _prefix(tokens[skipped:], name)
                if length:
                    behind = tokens[skipped + length :]
                    extra = bool(behind) and behind[0].text.lower() in leads & _BOTH_SIDES
                    return skipped + length + extra
        return 0

    def _ends(self, tokens: Sequence[Token], at: int) -> bool:
        """Whether a noun phrase is over before token `at`."""
        if at >= len(tokens):
            return True
        if self._gap(tokens[at - 1], tokens[at]).strip():
            return True
        word = tokens[at].text.lower()
        if word == "of" and self.key in _ROLE_KEYS:
            return True  # `the CTO of Heron`
        if word in ("of", "'s"):
            return False
        if tokens[at].measure is not None and isinstance(self.proposal.object, MentionView):
            return True  # `PostgreSQL 16`, `moved to Lisbon 2022`
        plain = not tokens[at].named
        return plain and (
            word in lexicon.STOPS
            or word in lexicon.PREPOSITIONS
            or word in lexicon.RELATIVE_TIME
            or word
            in ("and", "instead", "rather", "together", "every", "each", "last", "again", "automatically")
            or (word.endswith("ly") and at == len(tokens) - 1)
        )

    def _next_item(self, tokens: Sequence[Token], begin: int) -> int:
        """Where the next item of a list begins, of at most four words an item; the end when there is none."""
        for at in range(begin, min(len(tokens), begin + 5)):
            word = tokens[at].text.lower()
            if word == "and" and at > begin:
                return at + 1
            if word in lexicon.STOPS or word in lexicon.PREPOSITIONS or tokens[at].measure is not None:
                break
            if at > begin and self._gap(tokens[at - 1], tokens[at]).strip() == ",":
                return at
        return len(tokens)

    def _gap(self, before: Token, after: Token) -> str:
        start = self.clause.start
        return self.clause.text[before.end - start : after.start - start]

    def _value(self, tokens: Sequence[Token], value: ValueView) -> int:
        if not tokens:
            return 0
        first = tokens[0]
        if value.type == "number":
            return _number_length(tokens, value)
        if value.type == "date":
            return int(isinstance(first.measure, Date) and _is_date(first.measure, value.text))
        if value.type == "string":
            return _prefix(tokens, _words(value.text))
        return 0

    # Ways to say it

    def _fact(self) -> bool | None:
        """`S's manager is O`, `S reports to O`, `S is the CTO of O`, as domain/facts.py reads them."""
        if self.key in _NOT_COLLAPSED or (self.clause.tense == "past" and not self.claim.past):
            return None
        moved = self.clause.verb[0] in _MOVES
        if moved and "located_in" in self.claim.canonical:
            return None
        for fact in self.statement.facts:
            if fact.predicate not in self.claim.canonical or not self._names_subject(fact.subject):
                continue
            if self._is_object_text(fact.object):
                return fact.negative
        return None

    def _names_subject(self, subject: str) -> bool:
        if self.statement.antecedent:
            return subject == stem(fold(_STAND_IN)) and _only_meant(
                self.statement, self.proposal.subject, self.subject
            )
        return subject in self.claim.subject_keys

    def _is_object_text(self, text: str) -> bool:
        target = self.proposal.object
        said = _without_determiners(_words(text))
        if isinstance(target, MentionView):
            return any(said == name for name in self.claim.object)
        if target.type == "string":
            return said == _words(target.text)
        for found in find_measures(text):
            token = Token("", text[found.start : found.end], 0, 0, found.measure)
            if found.start == 0 and self._value((token,), target):
                return not text[found.end :].strip() or (target.type == "number" and target.unit is None)
        return False

    def _verb(self) -> bool | None:
        """`S works at O`, `S owns O`, `S is written in O`, and the passive of each."""
        clause, words = self.clause, self.words
        head = self.claim.verb
        rest = words[1:]
        negative = clause.negative != self.claim.flipped
        passive = clause.verb == ("be", head)
        active = clause.verb == (head,)
        if not active and not passive:
            if rest and clause.verb == ("be",) and clause.complement and clause.complement[0].key == head:
                return negative if self._adjective(rest) else None
            return None
        if not self._tense_fits(passive, rest):
            return None
        complement = clause.complement
        if active and rest == ["by"]:  # `O founded S`
            return negative if self._is_object(clause.subject) and self._subject_leads(complement) else None
        if passive and not rest:  # `O is maintained by S`
            agent = complement[1:] if complement and complement[0].key == "by" else ()
            return (
                negative if agent and self._is_object(clause.subject) and self._subject_leads(agent) else None
            )
        if passive != (bool(rest) and _is_participle(words[0])) and passive:
            return None
        if (
            active
            and rest
            and _is_participle(words[0])
            and words[0] not in _PAST_VERB_KEYS
            and clause.tense != "past"
        ):
            return None
        if not self._is_subject(clause.subject):
            return None
        if not rest:
            return negative if self._object_leads(complement) else None
        if len(rest) != 1 or rest[0] not in lexicon.PREPOSITIONS:
            return None
        if complement and complement[0].key == rest[0]:
            return negative if self._object_leads(complement[1:]) else None
        return negative if self._late(rest[0]) else None

    def _adjective(self, rest: Sequence[str]) -> bool:
        """`S is allergic to O`."""
        complement = self.clause.complement
        return (
            self.clause.tense == "present"
            and len(rest) == 1
            and len(complement) > 2
            and complement[1].key == rest[0]
            and self._is_subject(self.clause.subject)
            and self._object_leads(complement[2:])
        )

    def _late(self, preposition: str) -> bool:
        """`S teaches mathematics at O`: the place behind what is done there."""
        if preposition not in ("at", "in") or self.clause.verb[-1] not in _LATE_PLACE:
            return False
        for at, token in enumerate(self.clause.complement):
            if token.key == preposition:
                return self._object_leads(self.clause.complement[at + 1 :])
            if token.key in lexicon.PREPOSITIONS or token.text.lower() in lexicon.STOPS:
                return False
        return False

    def _subject_leads(self, tokens: Sequence[Token]) -> bool:
        return any(
            (length := _prefix(tokens[skip:], name)) and self._ends(tokens, skip + length)
            for skip in (0, 1)
            if not skip or (tokens and tokens[0].text.lower() in lexicon.DETERMINERS | lexicon.TITLES)
            for name in self.subject
        )

    def _tense_fits(self, passive: bool, rest: Sequence[str]) -> bool:
        """A state is said in the present, an event in the past."""
        if passive:
            event = rest in ([], ["by"]) or self.clause.verb[-1] in _PAST_EVENTS
            return self.clause.tense == "present" or event
        if self.claim.past:
            return self.clause.tense == "past" or self.words[-1] == "by"
        return self.clause.tense == "present" or rest == ["by"]

    def _attribute(self) -> bool | None:
        """`S's rate limit is V`, `the rate limit of S is V`, `S's dog is called O`."""
        clause = self.clause
        named = clause.verb in (("be", stem("call")), ("be", stem("name")))
        if clause.tense != "present" or not (clause.verb == ("be",) or named) or not clause.subject:
            return None
        owner, attribute = self._owned()
        if not owner or not attribute or not self._is_subject(owner):
            return None
        wanted = self.words[1:] if self.words[0] in ("has", "have") else self.words
        said = [_noun_key(token.text) for token in attribute]
        if _plain(said) != _plain([_noun_key(word) for word in wanted]):
            return None
        return clause.negative if self._object_leads(clause.complement) else None

    def _owned(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """(owner, attribute) of the clause's subject."""
        tokens = self.clause.subject
        for at in range(len(tokens) - 1, 0, -1):
            if tokens[at].key == "'s":
                return tokens[:at], tokens[at + 1 :]
        for at in range(1, len(tokens)):
            if tokens[at].key in ("of", "for"):
                return tokens[at + 1 :], tokens[:at]
        return (), ()

    def _role(self) -> bool | None:
        """`S is a nurse`, `S works as a nurse`, `the release manager is S`."""
        target = self.proposal.object
        if self.key not in _ROLE_KEYS or not isinstance(target, ValueView) or target.type != "string":
            return None
        clause = self.clause
        if clause.tense != "present":
            return None
        if clause.verb == ("be",):
            if self._is_subject(clause.subject) and self._object_leads(clause.complement):
                return clause.negative
            if self._is_object(_undetermined(clause.subject)) and self._is_subject(clause.complement):
                return clause.negative
            return None
        works = clause.verb in ((stem("work"),), (stem("serve"),))
        if not works or not clause.complement or clause.complement[0].key != "as":
            return None
        fits = self._is_subject(clause.subject) and self._object_leads(clause.complement[1:])
        return clause.negative if fits else None

    def _have(self) -> bool | None:
        """`S has 42 desks`, `S has a budget of V`, `S has a dog named O`."""
        clause = self.clause
        complement = clause.complement
        if clause.verb != (stem("have"),) or clause.tense != "present" or len(complement) < 2:
            return None
        if not self._is_subject(clause.subject):
            return None
        target = self.proposal.object
        counted = _COUNT.fullmatch(self.key)
        noun = (counted["noun"] or counted["noun2"]) if counted else self.key
        if isinstance(target, ValueView) and target.type == "number" and target.unit is None:
            length = self._value(complement, target)
            if length and length < len(complement) and _noun_key(complement[length].text) == _noun_key(noun):
                rest = complement[length + 1 :]
                whole = not _SHARED_OUT.intersection(token.text.lower() for token in rest)
                return clause.negative if whole and self._ends(complement, length + 1) else None
        if _noun_key(complement[0].text) != _noun_key(noun):
            return None
        if complement[1].text.lower() in ("named", "called") and not isinstance(target, ValueView):
            return clause.negative if self._object_leads(complement[2:]) else None
        if complement[1].key == "of" and isinstance(target, ValueView):
            return clause.negative if self._object_leads(complement[2:]) else None
        return None

    def _measure(self) -> bool | None:
        """`S costs V`, `S is V high`, `S is on D`."""
        clause, complement = self.clause, self.clause.complement
        if not isinstance(self.proposal.object, ValueView) or clause.tense != "present" or not complement:
            return None
        if clause.verb == (stem("cost"),) and self.key in _COST_KEYS:
            fits = self._object_leads(complement)
        elif clause.verb == ("be",) and self.key in _DIMENSIONS and len(complement) == 2:
            adjective = complement[1].text.lower() in _DIMENSIONS[self.key].split()
            fits = adjective and self._value(complement, self.proposal.object) == 1
        elif clause.verb == ("be",) and self.key in _DATE_KEYS and complement[0].key == "on":
            fits = self._object_leads(complement[1:])
        else:
            return None
        return clause.negative if fits and self._is_subject(clause.subject) else None

    def _state(self) -> bool | None:
        """`S is enabled` for a boolean, `S is paused` for a status, `S can swim`."""
        target, clause = self.proposal.object, self.clause
        if not isinstance(target, ValueView) or clause.tense != "present":
            return None
        if target.type == "string" and self.key in ("status", "state"):
            same = clause.verb == ("be", _noun_key(target.text)) and not clause.complement
            return clause.negative if same and self._is_subject(_status_owner(clause)) else None
        if target.type != "boolean" or not self._is_subject(clause.subject):
            return None
        words = self.words[1:] if self.words[0] in ("is", "can") else self.words
        word, flipped = _verb_key(words[-1])
        auxiliary = "can" if self.words[0] == "can" else "be"
        if clause.verb != (auxiliary, word) or len(words) != 1:
            return None
        if clause.complement and clause.complement[0].key not in lexicon.PREPOSITIONS:
            return None
        return (clause.negative != flipped) != (target.text == "false")


_PAST_VERB_KEYS = _set("moved graduated joined worked lived relocated retired studied shipped launched")


def _only_meant(statement: _Statement, mention: MentionView, names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the pronoun can mean nothing but the mention, as far as the sentence before tells."""
    personal = statement.pronoun in _PERSONAL
    if personal != (mention.kind == "person"):
        return False
    matches = [*_WORD.finditer(statement.antecedent)]
    words = [fold(match[0].removesuffix("'s").removesuffix("’s")) for match in matches]
    at, name = _find_name(words, names)
    if at is None or any(match[0].endswith(("'s", "’s")) for match in matches[at : at + len(name)]):
        return False
    others = [index for index in range(len(words)) if not at <= index < at + len(name)]
    if any(_names_another(matches, words, index, first=at == 0, personal=personal) for index in others):
        return False
    rest = words[at + len(name) :]
    if rest[:1] and rest[0] in lexicon.BE:
        return True  # `Orion is our new search service`: what is said to be it is no other thing
    if personal:
        return not any(_is_person(words[index]) for index in others if matches[index][0][:1].islower())
    return not any(
        word not in lexicon.CLOSED_CLASS and word not in lexicon.RELATIVE_TIME and not word.endswith("ly")
        for word in rest[1:]
    )


def _names_another(
    matches: Sequence[re.Match[str]], words: Sequence[str], index: int, *, first: bool, personal: bool
) -> bool:
    """Whether word `index` of the sentence names something beside the mention that the pronoun could mean."""
    written = matches[index][0]
    if not written[:1].isupper() or written == "I":
        return False
    if index == 0 and (words[0] in lexicon.CLOSED_CLASS or stem(words[0]) in lexicon.VERBS):
        return False
    if find_measures(written, months_alone=True):
        return False
    # `Tobias started at Initech`: a person's sentence may name where.
    placed = first and personal and words[index - 1] in _PLACED and not written.endswith(("'s", "’s"))
    return not placed


def _is_person(word: str) -> bool:
    return word in _PERSONS or (
        len(word) > 4 and word.endswith(_PERSON_ENDINGS) and word not in lexicon.CLOSED_CLASS
    )


def _find_name(words: Sequence[str], names: Sequence[tuple[str, ...]]) -> tuple[int | None, tuple[str, ...]]:
    for name in names:
        for at in range(len(words) - len(name) + 1):
            if tuple(words[at : at + len(name)]) == name:
                return at, name
    return None, ()


def _names(mention: MentionView) -> tuple[tuple[str, ...], ...]:
    """The spellings under which the mention may stand in a text, longest first: its own, and the names of the
    one entity it can be."""
    spelled = {_words(mention.name)}
    options = mention.options
    if mention.required is not None:
        options = tuple(option for option in options if option.ref == mention.required)
    if len(options) == 1:
        spelled |= {_words(name) for name in (options[0].name, *options[0].aliases)}
    return tuple(sorted((name for name in spelled if name), key=lambda name: (-len(name), name)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(fold(word) for word in _WORD.findall(text.replace("’", "'")))


def _without_determiners(words: tuple[str, ...]) -> tuple[str, ...]:
    while words and words[0] in lexicon.DETERMINERS:
        words = words[1:]
    return words


def _undetermined(tokens: Sequence[Token]) -> list[Token]:
    kept = [token for token in tokens if token.text.lower() not in lexicon.FILLERS or token.named]
    while kept and kept[0].text.lower() in lexicon.DETERMINERS:
        kept = kept[1:]
    return kept


def _flat(tokens: Sequence[Token]) -> list[str]:
    return [word for token in tokens for word in (_words(token.text) or (token.text,))]


def _prefix(tokens: Sequence[Token], name: tuple[str, ...]) -> int:
    """How many tokens spell `name` at the beginning; 0 when they do not, or it ends inside a token."""
    if not name:
        return 0
    spelled: list[str] = []
    for count, token in enumerate(tokens, start=1):
        spelled.extend(_words(token.text) or (token.text,))
        if len(spelled) >= len(name):
            return count if tuple(spelled) == name else 0
    return 0


def _is_name(tokens: Sequence[Token], names: Sequence[tuple[str, ...]], kind: str) -> bool:
    """Whether the noun phrase is one of the names, with at most a determiner and a noun of its kind."""
    words = _flat(_undetermined(tokens))
    leads = _LEADS.get(kind, frozenset())
    forms = [words]
    if words and words[0].removesuffix(".") in leads:
        forms.append(words[1:])
    if words and words[-1] in leads & _BOTH_SIDES:
        forms.append(words[:-1])
    return any(tuple(form) == name for form in forms for name in names)


def _conjuncts(tokens: Sequence[Token]) -> list[list[Token]]:
    """`Abel and Britt` are two subjects; what has an `or`, a preposition or a possessor is one phrase."""
    if not any(token.key == "and" for token in tokens):
        return [list(tokens)]
    if any(token.key in lexicon.PREPOSITIONS or token.key in ("or", "'s") for token in tokens):
        return [list(tokens)]
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.key == "and":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _number_length(tokens: Sequence[Token], value: ValueView) -> int:
    """The value's number, and its unit when it has one, at the beginning of `tokens`."""
    first = tokens[0]
    measure = first.measure
    if isinstance(measure, Date):
        return int(value.unit is None and first.text == value.text and len(value.text) == 4)
    if not isinstance(measure, Number) or measure.bound:
        return 0
    if len(measure.readings) > 1 and "," not in first.text:
        return 0  # `1.200` is one or a thousand
    if value.unit is None:
        return int(measure.dimension is None and _equal(measure.readings[0], value.text))
    wanted = [found.measure for found in find_measures(f"{value.text} {value.unit}")]
    if len(wanted) == 1 and isinstance(wanted[0], Number) and wanted[0].dimension is not None:
        same = wanted[0].dimension == measure.dimension
        return int(same and _equal(measure.readings[0], repr(wanted[0].readings[0])))
    unit = len(tokens) > 1 and stem(tokens[1].text.lower()) == stem(value.unit.lower())
    return 2 if unit and measure.dimension is None and _equal(measure.readings[0], value.text) else 0


def _equal(read: float, text: str) -> bool:
    try:
        wanted = Decimal(text)
    except InvalidOperation:
        return False
    return abs(Decimal(repr(read)) - wanted) <= abs(wanted) * Decimal("1e-9")


def _is_date(measure: Date, text: str) -> bool:
    if len(measure.readings) != 1:
        return False
    year, month, day, _ = measure.readings[0]
    if year is None or month is None or day is None:
        return False
    return f"{year:04}-{month:02}-{day:02}" == text


def _verb_key(word: str) -> tuple[str, bool]:
    """The clause reader's key of a verb, and whether it stands for the opposite (`hates` is not `likes`)."""
    key = stem(word)
    flipped = key in lexicon.OPPOSITES
    key = lexicon.OPPOSITES.get(key, key)
    return lexicon.SYNONYMS.get(key, key), flipped


def _noun_key(word: str) -> str:
    key = stem(fold(word))
    return lexicon.SYNONYMS.get(key, key)


def _plain(words: Sequence[str]) -> list[str]:
    kept = [word for word in words if word not in lexicon.DETERMINERS and word not in ("address", "number")]
    return kept or list(words)


def _canonical(words: Sequence[str]) -> str:
    return predicate_key("_".join(_noun_key(word) for word in words))


def _key_words(name: Sequence[str]) -> list[str]:
    return [_noun_key(word) if word not in lexicon.CLOSED_CLASS else word for word in name]


def is_event(key: str) -> bool:
    """Whether a predicate key tells what happened (`moved_to`), not what holds (`lives_in`)."""
    return _is_past(key.split("_"))


def _is_past(words: Sequence[str]) -> bool:
    return words[0].endswith("ed") or words[0] in _BARE_PAST


def _is_participle(word: str) -> bool:
    return word.endswith(("ed", "en")) or word in (
        "built",
        "made",
        "led",
        "born",
        "run",
        "held",
        "kept",
        "set",
        "bound",
    )


def _status_owner(clause: Clause) -> Sequence[Token]:
    """`the status of S is paused` is about S."""
    for at, token in enumerate(clause.subject):
        if token.key == "of" and at and _noun_key(clause.subject[at - 1].text) == _noun_key("status"):
            return clause.subject[at + 1 :]
    return clause.subject
