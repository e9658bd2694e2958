"""Simple English statements taken apart: who, what, of what, affirmed or denied, and when.

No grammar of English: a reader for the plain declarative sentences that memories mostly are. A sentence it
does not understand yields no clause, because a wrong reading is worse than none. Bounded: the first
20,000 code points, 200 sentences, 60 tokens a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from remembrancer.domain import lexicon
from remembrancer.domain.lexicon import stem
from remembrancer.domain.measures import Date, Measure, Number, find_measures
from remembrancer.domain.names import fold

MAX_CHARACTERS = 20_000
MAX_SENTENCES = 200
MAX_TOKENS = 60

Tense = Literal["present", "past", "future"]

_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?](?=\w)[^.!?;\n]+)*[.!?;\n]?")
_ABBREVIATION = re.compile(
    r"\b(?:mr|mrs|ms|dr|prof|st|inc|ltd|corp|no|vs|approx|jr|sr|[a-z])\.$", re.IGNORECASE
)
_COORDINATION = re.compile(
    r",?\s+(?:but|while|whereas|although|though|because|so that)\s+|,\s+(?:and|so|which|who)\s+",
    re.IGNORECASE,
)
_WORD = re.compile(r"https?://[^\s,;)\]\"'>]+(?<![.!?:])|\w+(?:['’.\-@/:+&_]\w+)*(?:\+\+|#)?")
_LETTERS = re.compile(r"[^\W\d_]+")
_BULLET = re.compile(r"\s*(?:[-*+•>#]+\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)*")
_SPEAKER = re.compile(r"\s*([A-Z][\w'’-]{0,30}(?: [A-Z][\w'’-]{0,30}){0,2}):\s+(?=\S)")
_LABEL = re.compile(r"\s*([^:=\n]{1,60}?)\s*(?::|=|->|→)\s+(\S[^\n]*)$")


@dataclass(frozen=True)
class Token:
    """One word or measure of a sentence; `key` is what comparisons look at."""

    key: str
    text: str
    start: int
    end: int
    measure: Measure | None = None
    named: bool = False
    """Written like a name: a capital inside a sentence, digits, an address."""
    article: bool = False
    """Behind `a` or `an`."""


@dataclass(frozen=True)
class Clause:
    """One statement. `verb` holds stems without negation (`("be", "bas")`); offsets are code points."""

    subject: tuple[Token, ...]
    verb: tuple[str, ...]
    complement: tuple[Token, ...]
    negative: bool
    tense: Tense
    start: int
    end: int
    text: str
    first_person: bool = False
    definite: bool = False
    """The subject is introduced by the, my, our or a possessor, or is the label of a `label: value` line."""
    label: bool = False
    imperative: bool = False
    relative_time: bool = False
    additive: bool = False
    subject_key: tuple[str, ...] = ()
    several: bool = False
    """The subject is a plural (`formats are`, `Languages:`), which several values may share."""


def read_clauses(text: str) -> list[Clause]:
    """Every clause of `text` that could be read, in order. Never raises."""
    text = text[:MAX_CHARACTERS]
    speaker, offset = _speaker(text)
    clauses: list[Clause] = []
    for start, end in _sentences(text, offset):
        clauses.extend(_read_sentence(text, start, end, speaker))
    return clauses


def word_keys(text: str) -> set[str]:
    """Every ASCII word that a part of a subject's key can be in any reading of `text`, and more: cheap, to rule out
    that a text speaks of a subject without reading it."""
    text = text[:MAX_CHARACTERS]
    words = {*_WORD.findall(text), *_LETTERS.findall(text)}
    for word in [word for word in words if "'" in word or "’" in word or word.lower() in _IRREGULAR_NOT]:
        words.update(token.text for token in _word_tokens(word, 0, first=True))
    return {*map(fold, words), *map(_plain_key, words)}


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of `text` begin and end, a semicolon and a line break ending one; bounded as above."""
    return list(_sentences(text[:MAX_CHARACTERS], 0))


def _speaker(text: str) -> tuple[str | None, int]:
    """The name before a leading `Name: ` when what follows is speech and not the value of a label."""
    match = _SPEAKER.match(text)
    if match is None:
        return None, 0
    line = text[match.end() :].split("\n", 1)[0].rstrip()
    spoken = line.endswith(("!", "?")) or re.search(r"[.!?]\s", line) is not None
    first = next(_sentences(text, match.end()), None)
    if first is None or not (spoken or _read_sentence(text, *first, None)):
        return None, 0
    return fold(match[1]), match.end()


def _sentences(text: str, offset: int) -> Iterator[tuple[int, int]]:
    count = 0
    pending: int | None = None
    for match in _SENTENCE.finditer(text, offset):
        start = match.start() if pending is None else pending
        if _ABBREVIATION.search(text[max(start, match.end() - 8) : match.end()]):
            pending = start
            continue
        pending = None
        yield start, match.end()
        count += 1
        if count == MAX_SENTENCES:
            return
    if pending is not None:
        yield pending, len(text)


def _read_sentence(text: str, start: int, end: int, speaker: str | None) -> list[Clause]:
    sentence = text[start:end]
    if sentence.rstrip().endswith("?"):
        return []
    tokens = _tokens(text, start, end)
    if not 2 <= len(tokens) <= MAX_TOKENS or _is_hedged(tokens):
        return []
    clauses = []
    position = start
    for match in [*_COORDINATION.finditer(sentence), None]:
        stop = end if match is None else start + match.start()
        part = [token for token in tokens if position <= token.start < stop]
        clause = _read_clause(text, position, stop, part, speaker)
        if clause is not None:
            clauses.append(clause)
        if match is not None:
            position = start + match.end()
    return clauses


def _is_hedged(tokens: Sequence[Token]) -> bool:
    words = ["" if token.measure is not None else token.text.lower() for token in tokens]
    return bool(lexicon.HEDGES.intersection(words)) or any(
        (a in lexicon.HEDGES_BEFORE_TO and b in ("to", "that")) or (a, b) == ("in", "case")
        for a, b in pairwise(words)
    )


def _read_clause(text: str, start: int, end: int, tokens: list[Token], speaker: str | None) -> Clause | None:
    bullet = _BULLET.match(text, start, end)
    if bullet is not None and bullet.end() > start:
        start = bullet.end()
        tokens = [token for token in tokens if token.start >= start]
    if not 2 <= len(tokens) <= MAX_TOKENS:
        return None
    tokens = _without_lead(text, tokens)
    labelled = _labelled(text, start, end, speaker)
    if labelled is not None:
        return labelled
    found = _find_verb(tokens)
    if found is None:
        return None
    at, imperative = found
    group = _verb_group(tokens, at)
    if group is None:
        return None
    return _finish(
        text,
        tokens[:at],
        group,
        speaker,
        imperative=imperative,
    )


@dataclass(frozen=True)
class _Group:
    verb: tuple[str, ...]
    complement: tuple[Token, ...]
    negative: bool
    tense: Tense


def _finish(
    text: str,
    subject: Sequence[Token],
    group: _Group,
    speaker: str | None,
    *,
    imperative: bool = False,
    label: bool = False,
) -> Clause | None:
    if len(subject) > 1 and subject[0].text.lower() == "no":
        subject, group = subject[1:], replace(group, negative=not group.negative)
    everything = [*subject, *group.complement]
    if not everything or (not subject and not imperative):
        return None
    words = [token.text.lower() for token in everything]
    relative = bool(lexicon.RELATIVE_TIME.intersection(words)) or any(
        a in ("last", "next", "this") and b in lexicon.RELATIVE_PERIODS for a, b in pairwise(words)
    )
    first = bool(subject) and words[0] in ("i", "we")
    key = subject_key(subject, speaker)
    if not imperative and (not key or (subject and words[0] in lexicon.UNRESOLVED)):
        return None
    start, end = everything[0].start, everything[-1].end
    return Clause(
        subject=tuple(subject),
        verb=group.verb,
        complement=group.complement,
        negative=group.negative,
        tense=group.tense,
        start=start,
        end=end,
        text=text[start:end],
        first_person=first,
        definite=label or _is_definite(subject),
        label=label,
        imperative=imperative,
        relative_time=relative,
        additive=bool(lexicon.ADDITIVE.intersection(words)),
        subject_key=key,
        several=_is_several(text, subject, group),
    )


def subject_key(subject: Sequence[Token], speaker: str | None) -> tuple[str, ...]:
    """The words that identify the subject; the first person is the speaker's name, or `i`."""
    me = speaker or "i"
    keys: list[str] = []
    for token in subject:
        word = token.text.lower()
        if word in ("i", "we", "me", "us"):
            keys.append(me)
        elif word in ("my", "our", "mine", "ours"):
            keys.extend((me, "'s"))
        elif word not in lexicon.DETERMINERS and word not in lexicon.TITLES and word not in lexicon.FILLERS:
            keys.append(token.key if token.measure is not None else _plain_key(token.text))
        elif word in lexicon.UNRESOLVED and word not in ("the", "a", "an"):
            return ()
    return tuple(keys)


def _is_several(text: str, subject: Sequence[Token], group: _Group) -> bool:
    if not subject or group.verb != ("be",):
        return False
    gap = text[subject[-1].end : group.complement[0].start] if group.complement else ""
    last = subject[-1].text.lower()
    plural = last.endswith("s") and not last.endswith(("ss", "us", "is")) and not subject[-1].named
    return "are" in gap.split() or "were" in gap.split() or (plural and ":" in gap)


@lru_cache(maxsize=4096)
def _plain_key(word: str) -> str:
    """The key of a word whatever its place in the sentence, where a capital may or may not mean a name."""
    folded = fold(word)
    key = folded if folded in lexicon.CLOSED_CLASS else stem(folded)
    return lexicon.SYNONYMS.get(key, key)


def phrase_key(phrase: str) -> str:
    """The subject key of a phrase that stands alone, such as the subject of a caller's relation."""
    key = subject_key(_tokens(phrase, 0, len(phrase)), None)
    return " ".join(key) or fold(phrase)


def _is_definite(subject: Sequence[Token]) -> bool:
    if not subject:
        return False
    first = subject[0].text.lower()
    return first in ("the", "my", "our") or any(token.key == "'s" for token in subject)


def _labelled(text: str, start: int, end: int, speaker: str | None) -> Clause | None:
    """`Deadline: 5 May`, `port = 8080`: the label is the subject of an `is`."""
    match = _LABEL.match(text[start:end].rstrip(" .;!\n"))
    if match is None:
        return None
    subject = _tokens(text, start + match.start(1), start + match.end(1))
    value = _tokens(text, start + match.start(2), start + match.end(2))
    if not subject or not value or len(subject) > 6 or len(value) > 8:
        return None
    words = {token.text.lower() for token in (*subject, *value)}
    if words & lexicon.AUXILIARIES or (len(subject) == 1 and not _is_label(subject[0], value)):
        return None
    group = _Group(("be",), tuple(_content(value)), False, "present")
    return _finish(text, subject, group, speaker, label=True)


def _is_label(word: Token, value: Sequence[Token]) -> bool:
    """A single word before a colon names an attribute, or else perhaps a speaker."""
    exact = value[0].measure is not None or (len(value) == 1 and value[0].named)
    return _plain_key(word.text) in lexicon.ATTRIBUTES or exact


def _without_lead(text: str, tokens: list[Token]) -> list[Token]:
    """Drops a leading interjection or adverb (`Yes,`, `Now`, `Also`) that is no part of the statement."""
    at = 0
    leads = lexicon.FILLERS - {"the", "always"} | {"yes", "no", "well", "hey", "hi", "note", "fyi", "update"}
    while at < len(tokens) - 2 and tokens[at].text.lower() in leads:
        if tokens[at].text.lower() == "no" and text[tokens[at].end] != ",":
            break  # `No meetings are planned`
        at += 1
    return tokens[at:]


def _find_verb(tokens: Sequence[Token]) -> tuple[int, bool] | None:
    """Index of the first word of the verb group and whether the sentence is a command."""
    first = tokens[0].text.lower()
    second = _word_at(tokens, 1)
    command = first == "never" or (first == "do" and second == "not") or first == "always"
    head = 2 if first == "do" else 1 if command else 0
    if head < len(tokens) and not tokens[head].named and (command or _is_base_verb(tokens[head])):
        later = {token.text.lower() for token in tokens[head + 1 :]}
        if not later & lexicon.AUXILIARIES and len(tokens) > head + 1:
            return 0, True
    candidate: int | None = None
    unknown: int | None = None
    for index, token in enumerate(tokens):
        word = token.text.lower()
        if index == 0:
            continue
        if word in lexicon.AUXILIARIES and not (token.named and word in ("will", "may")):
            return index, False
        if word == "never" or (word == "no" and _word_at(tokens, index + 1) == "longer"):
            return index, False
        if token.measure is not None or token.named:
            continue
        if unknown is None and _looks_like_verb(tokens, index):
            unknown = index
        if candidate is None and _may_be_verb(tokens, index):
            candidate = index
            if word.endswith("ed") or index + 1 >= len(tokens):
                break
            after = tokens[index + 1].text.lower()
            if after not in lexicon.AUXILIARIES:
                break
            candidate = None
    found = unknown if candidate is None else candidate
    return None if found is None else (found, False)


def _word_at(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text.lower() if index < len(tokens) else ""


def _is_base_verb(token: Token) -> bool:
    word = token.text.lower()
    return stem(word) in lexicon.VERBS and not word.endswith(("s", "ed", "ing"))


def _may_be_verb(tokens: Sequence[Token], index: int) -> bool:
    word = tokens[index].text.lower()
    before = tokens[index - 1].text.lower()
    if before in lexicon.DETERMINERS or before == "'s" or stem(word) not in lexicon.VERBS:
        return False
    if word.endswith("ing"):
        return False
    if word.endswith("s") and not word.endswith("ss"):
        return True
    past = word.endswith("ed") or stem(word) != _bare(word)
    if past:
        return True
    # A base form needs a plural subject: `we use`, `invoices use`, not `the work starts`.
    return before in ("i", "we", "you", "they", "to") or before.endswith("s") or before in ("people", "not")


def _looks_like_verb(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word that no list knows stands where a verb would: `The patch fixes the leak`."""
    word = tokens[index].text.lower()
    before = tokens[index - 1].text.lower()
    if before in lexicon.CLOSED_CLASS or before == "'s" or word in lexicon.CLOSED_CLASS or len(word) < 4:
        return False
    after = _word_at(tokens, index + 1)
    if word.endswith("s"):
        followed = index + 1 < len(tokens) and (after in lexicon.CLOSED_CLASS or tokens[index + 1].named)
        return not word.endswith(("ss", "us", "is")) and (
            followed or is_number(tokens[min(index + 1, len(tokens) - 1)])
        )
    return word.endswith("ed")


def _bare(word: str) -> str:
    return word.removesuffix("e") if len(word) > 3 else word


def _verb_group(tokens: Sequence[Token], at: int) -> _Group | None:
    """Reads auxiliaries, negations, adverbs and the main verb from `at`; the rest is the complement."""
    negations = 0
    tense: Tense = "present"
    verb: list[str] = []
    index = at
    passive_possible = perfect = False
    while index < len(tokens):
        word = tokens[index].text.lower()
        after = _word_at(tokens, index + 1)
        if word in ("not", "never") or (word == "no" and after in ("longer", "more")):
            if after in lexicon.PARTIAL:
                return None
            negations += 1
            index += 2 if word == "no" else 1
        elif word in ("hardly", "barely", "rarely", "seldom"):
            return None
        elif word in lexicon.FILLERS and word != "the":
            index += 1
        elif word == "used" and after == "to" and not verb:
            negations += 1  # what used to be is denied of the present
            index += 2
        elif word in lexicon.BE and not any(part != "be" for part in verb):
            tense = "past" if word in lexicon.PAST_AUXILIARIES and tense != "future" else tense
            verb = ["be"]
            passive_possible = True
            index += 1
        elif word in lexicon.AUXILIARIES and not verb:
            if word in ("will", "shall"):
                tense = "future"
            elif word in ("must", "should", "can", "ought"):
                verb = []
                modal = "must" if word in ("must", "should", "ought") else "can"
                return _with_modal(tokens, index + 1, modal, negations)
            elif word in ("did", "had"):
                tense = "past"
            if word in ("has", "have", "had") and not _participle_follows(tokens, index + 1):
                verb = [stem("have")]
                index += 1
                break
            perfect = perfect or word in ("has", "have")
            index += 1
        elif passive_possible and len(verb) == 1 and stem(word) in lexicon.EXCLUSIVE and not after:
            break  # `is pending` names a value, as `is red` does
        elif passive_possible and len(verb) == 1 and _is_participle(tokens[index]):
            verb.append(stem(word))
            index += 1
            break
        elif passive_possible:
            break
        elif not verb:
            if tokens[index].measure is not None or tokens[index].named:
                return None
            if stem(word) in ("stop", "quit") and after.endswith("ing"):
                negations += 1
                verb = [stem(after)]
                index += 2
                break
            if _is_past(word) and tense == "present" and not perfect:
                tense = "past"
            verb = [stem(word)]
            index += 1
            break
        else:
            break
    if not verb:
        return None
    if perfect and not any(token.key == "since" for token in tokens[index:]):
        tense = "past"  # `has lived in Rome` says that she once did
    return _close_group(verb, list(tokens[index:]), negations, tense)


def _with_modal(tokens: Sequence[Token], index: int, modal: str, negations: int) -> _Group | None:
    rest = _verb_group(tokens, index) if index < len(tokens) else None
    if rest is None:
        return None
    negative = rest.negative != bool(negations % 2)
    return replace(rest, verb=(modal, *rest.verb), negative=negative)


def _close_group(verb: list[str], rest: list[Token], negations: int, tense: Tense) -> _Group | None:
    words = [token.text.lower() for token in rest]
    if words[:1] == ["no"] and words[1:2] != ["longer"]:
        negations += 1
        rest = rest[1:]
    for tail in (["any", "more"], ["any", "longer"], ["anymore"]):
        if words[-len(tail) :] == tail:
            rest = rest[: -len(tail)]
            break
    inner = [token.text.lower() for token in rest]
    if lexicon.NEGATIONS.intersection(inner) or lexicon.PARTIAL.intersection(inner[:1] if negations else ()):
        return None
    head = verb[-1]
    content = _content(rest)
    if verb == ["be"] and content and _is_state(content):
        verb, content = ["be", content[0].key], content[1:]  # `is open` beside `is closed`
        head = verb[-1]
    if head in lexicon.OPPOSITES and (verb[0] == "be" or head in lexicon.OPPOSITE_VERBS):
        negations += 1
        verb = [*verb[:-1], lexicon.OPPOSITES[head]]
    if head in _SWITCHES and content and content[-1].key == "off":
        negations += 1
        content = [*content[:-1], replace(content[-1], key="on")]
    verb = [lexicon.SYNONYMS.get(part, part) for part in verb]
    return _Group(tuple(verb), tuple(content), bool(negations % 2), tense)


_SWITCHES = frozenset({stem("turn"), stem("switch"), "be"})


def _is_state(content: Sequence[Token]) -> bool:
    token = content[0]
    if token.named or token.measure is not None or token.article:
        return False
    if token.key in lexicon.PREPOSITIONS and len(content) > 1:
        return False  # `is on Monday`
    return token.key in lexicon.OPPOSITES or token.key in lexicon.AFFIRMATIVE_STATES


def _participle_follows(tokens: Sequence[Token], index: int) -> bool:
    for token in tokens[index : index + 3]:
        word = token.text.lower()
        if word in ("not", "never", "been") or word in lexicon.FILLERS - {"the"}:
            if word == "been":
                return True
            continue
        return _is_participle(token)
    return False


def _is_participle(token: Token) -> bool:
    word = token.text.lower()
    if token.measure is not None or token.named:
        return False
    return (
        (word.endswith(("ed", "ing")) and len(word) > 4)
        or (stem(word) in lexicon.VERBS and stem(word) != _bare(word) and not word.endswith("s"))
        or word in ("set", "born", "run", "put", "held", "built", "made", "kept", "led", "hit")
    )


def _is_past(word: str) -> bool:
    if word.endswith("ed"):
        return True
    return not word.endswith("s") and stem(word) != _bare(word) and stem(word) != stem(word + "s")


def _content(tokens: Sequence[Token]) -> list[Token]:
    """Without articles and fillers; what followed `a` or `an` remembers it."""
    kept: list[Token] = []
    article = False
    for token in tokens:
        word = token.text.lower()
        if word in lexicon.ARTICLES and not (token.named and kept and kept[-1].named):  # but `Building A`
            article = True
        elif word not in lexicon.FILLERS:
            kept.append(replace(token, article=True) if article else token)
            article = False
    return kept


_CONTRACTIONS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
_IRREGULAR_NOT = {"can't": "can", "won't": "will", "shan't": "shall", "cannot": "can", "ain't": "is"}
_PRONOUNS = frozenset({"i", "you", "he", "she", "it", "we", "they", "that", "there", "who", "what", "here"})


def _tokens(text: str, start: int, end: int) -> list[Token]:
    sentence = text[start:end]
    measures = {found.start: found for found in find_measures(sentence)}
    tokens: list[Token] = []
    position = 0
    while position < len(sentence) and len(tokens) <= MAX_TOKENS:
        found = measures.get(position)
        if found is not None:
            key = fold(sentence[found.start : found.end])
            tokens.append(
                Token(
                    key,
                    sentence[found.start : found.end],
                    start + found.start,
                    start + found.end,
                    found.measure,
                )
            )
            position = found.end
            continue
        match = _WORD.match(sentence, position)
        if match is None:
            position += 1
            continue
        stop = match.end()
        if measures:
            stop = min((at for at in measures if position < at < stop), default=stop)
        tokens.extend(_word_tokens(sentence[position:stop], start + position, first=not tokens))
        position = stop
    return tokens


def _word_tokens(word: str, start: int, *, first: bool) -> list[Token]:
    plain = word.replace("’", "'")
    lower = plain.lower()
    end = start + len(word)
    if lower in _IRREGULAR_NOT:
        return [_word(_IRREGULAR_NOT[lower], start, end, first), _word("not", start, end, False)]
    if "'" not in lower:
        return [_word(plain, start, end, first)]
    for tail, full in _CONTRACTIONS.items():
        if lower.endswith(tail) and len(lower) > len(tail):
            cut = len(word) - len(tail)
            return [_word(plain[:cut], start, start + cut, first), _word(full, start + cut, end, False)]
    if lower.endswith("'s"):
        cut = len(word) - 2
        tail = "is" if lower[:cut] in _PRONOUNS else "'s"
        return [_word(plain[:cut], start, start + cut, first), _word(tail, start + cut, end, False)]
    return [_word(plain, start, end, first)]


def _word(text: str, start: int, end: int, first: bool) -> Token:
    plain = text.isalpha() and text[1:].islower()  # most words are: they need no look at each letter
    odd = not plain and (
        any(c in "@/:._+#&" or c.isdigit() for c in text) or any(c.isupper() for c in text[1:])
    )
    named = odd or (not first and text[:1].isupper() and text != "I")
    folded = fold(text)
    if named:
        return Token(folded, text, start, end, named=True)
    if folded in lexicon.CLOSED_CLASS:
        return Token(folded, text, start, end)
    key = stem(folded)
    return Token(lexicon.SYNONYMS.get(key, key), text, start, end)


def is_number(token: Token) -> bool:
    return isinstance(token.measure, Number)


def is_date(token: Token) -> bool:
    return isinstance(token.measure, Date)
