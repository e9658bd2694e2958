"""The screen itself: every view of every field, matched against every rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from remembrancer.domain.screen import tokens
from remembrancer.domain.screen.context import Speech, in_quotes, speech
from remembrancer.domain.screen.fold import latinize, may_latinize, soft_offsets, soften
from remembrancer.domain.screen.phrases import Lexicon, PhraseIndex
from remembrancer.domain.screen.rejoin import rejoin
from remembrancer.domain.screen.report import (
    MAX_SIGNALS_PER_FIELD,
    ScreenReport,
    Severity,
    Signal,
    build_report,
)
from remembrancer.domain.screen.rules import OVERFLOW, Rule, RuleSet, load_rules
from remembrancer.domain.screen.views import Budget, Locate, View, decoded_views, original, rot13

_LIMIT = MAX_SIGNALS_PER_FIELD + 1
_WINDOW = 4096  # tokens
_OVERLAP = 128  # tokens, more than any phrase can span


@dataclass(frozen=True, slots=True)
class _Hit:
    """A match in a view's text. `plain` when the folded and the written text are the same but for case."""

    rule: Rule
    start: int
    end: int
    reported: bool
    plain: bool


def screen(fields: Mapping[str, str]) -> ScreenReport:
    """Screen the text fields of one request, names given by the caller. Pure and deterministic; never raises.

    Time is linear in the text; what may be decoded is bounded for the request as a whole.
    """
    rules = load_rules()
    budget = Budget()
    return build_report(
        {name: _screen_field(name, text, rules, budget) for name, text in fields.items()}, rules.version
    )


def _screen_field(name: str, text: str, rules: RuleSet, budget: Budget) -> list[Signal]:
    root = original(text)
    signals: dict[Signal, None] = {}
    grave = 0
    for signal in _signals(name, root, rules, budget):
        if signal in signals or _known(signal, signals):
            continue
        signals[signal] = None
        grave += signal.severity is Severity.CRITICAL
        if grave == _LIMIT:  # the verdict is certain and the list is full
            break
    budget.overflows.clear()
    return list(signals)


def _signals(name: str, root: View, rules: RuleSet, budget: Budget) -> Iterator[Signal]:
    """Everything found in one field: the text as written, then folded, then decoded."""
    for hit in _hits(root.text, rules, budget):
        severity = hit.rule.reported if hit.reported else hit.rule.severity
        view = "raw" if hit.plain else "normalized"
        yield Signal(name, hit.rule.family, hit.rule.id, severity, hit.start, hit.end, view)
    for child in _decoded_views(root, rules, budget):
        for hit in _hits(child.text, rules, budget):
            if child.decoded(hit.start, hit.end):
                start, end = child.locate(hit.start, hit.end)
                view = "decoded:" + "+".join(child.chain)
                yield Signal(name, OVERFLOW.family, hit.rule.id, Severity.CRITICAL, start, end, view)
    for start, end in budget.overflows:
        yield Signal(name, OVERFLOW.family, OVERFLOW.id, OVERFLOW.severity, start, end, "raw")


def _decoded_views(root: View, rules: RuleSet, budget: Budget) -> Iterator[View]:
    """All decoded views of a field, and each of them in rot13 where that may hold words of the rules."""
    for view in chain([root], decoded_views(root, budget)):
        if view.chain:
            yield view
        if rules.rot13_anchors.search(soften(view.text)):
            yield rot13(view)


def _known(signal: Signal, others: Iterable[Signal]) -> bool:
    """Whether a folded text shows only what the written one showed: same family, same place, as grave."""
    return signal.view == "normalized" and any(
        other.view == "raw"
        and other.family == signal.family
        and other.start < signal.end
        and signal.start < other.end
        and (other.severity is signal.severity or other.severity is Severity.CRITICAL)
        for other in others
    )


def _hits(text: str, rules: RuleSet, budget: Budget) -> Iterator[_Hit]:
    """All matches in one view, spans in `text`."""
    soft = soften(text)
    to_text = _back(text, soft)
    yield from _text_hits(text, soft, to_text, rules)
    words = tokens.split(soft)
    cut: list[tokens.Tokens] = []

    def soft_span(start: int, end: int) -> tuple[int, int]:
        if not cut:
            cut.append(tokens.tokenize(soft))
        return to_text(cut[0].starts[start], cut[0].ends[end - 1])

    lexicon = rules.soft
    codes = lexicon.encode(words)
    for rule, start, end, reported in _phrase_hits(codes, lexicon, rules.soft_phrases):
        first, last = soft_span(start, end)
        plain = soften(text[first:last]) == text[first:last].casefold()
        yield _Hit(rule, first, last, reported, plain)
    yield from _latin_hits(soft, to_text, rules, budget)


def _latin_hits(soft: str, to_text: Locate, rules: RuleSet, budget: Budget) -> Iterator[_Hit]:
    """Matches of words that were spelled with look-alikes, leet, separators or without spaces."""
    folded = may_latinize(soft)
    latin = latinize(soft) if folded else soft.replace("l", "i")
    lexicon, phrases = rules.latin, rules.loose_phrases
    again = rejoin(latin, rules.vocabulary, budget.letters)
    budget.letters -= again.letters
    if again.overflow:
        yield _Hit(OVERFLOW, *to_text(*again.overflow), reported=False, plain=False)
    cut = again.tokens
    if cut is None:
        if not folded or latin == soft.replace("l", "i"):
            return
        cut, phrases = tokens.tokenize(latin), rules.latin_phrases
    for rule, start, end, reported in _phrase_hits(lexicon.encode(cut.words), lexicon, phrases):
        yield _Hit(rule, *to_text(cut.starts[start], cut.ends[end - 1]), reported=reported, plain=False)


def _phrase_hits(
    codes: str, lexicon: Lexicon, phrases: PhraseIndex[Rule]
) -> Iterator[tuple[Rule, int, int, bool]]:
    """Matches as token spans, a window of the text at a time, so that a caller that has enough can stop."""
    for begin in range(0, max(len(codes), 1), _WINDOW):
        offset = max(0, begin - _OVERLAP)
        window = codes[offset : begin + _WINDOW]
        data = window.encode()
        for rule, phrase in phrases.candidates(frozenset(window)):
            for start, end in phrase.find(data, _LIMIT):
                how = speech(codes, offset + start, offset + end, lexicon)
                if how is not Speech.OPPOSITE and not (rule.narrated_clean and how is Speech.NARRATED):
                    yield rule, offset + start, offset + end, how is not Speech.DIRECTIVE


def _text_hits(text: str, soft: str, to_text: Locate, rules: RuleSet) -> Iterator[_Hit]:
    sources = {"raw": text.encode("utf-8", "replace"), "soft": soft.encode("utf-8")}
    ascii_only = text.isascii()
    for rule in rules.text_rules:
        data = sources[rule.source]
        where = text if rule.source == "raw" else soft
        if rule.unicode and ascii_only:
            continue
        if rule.needs and not any(need in where for need in rule.folded_needs):
            continue
        count = 0
        for match in rule.pattern.finditer(data):
            if rule.exception is not None and rule.exception.fullmatch(match.group()):
                continue
            start = len(data[: match.start()].decode("utf-8"))
            end = start + len(data[match.start() : match.end()].decode("utf-8"))
            if start == end:
                continue
            if rule.source == "raw":
                yield _Hit(rule, start, end, False, True)
            else:
                first, last = to_text(start, end)
                reported = rule.reported is not rule.severity and in_quotes(soft, start, end)
                yield _Hit(rule, first, last, reported, soft[start:end] == text[first:last].casefold())
            count += 1
            if count == _LIMIT:
                break


def _back(text: str, soft: str) -> Locate:
    """The map from spans of `soft` to spans of `text`, made when first needed."""
    offsets: list[int] = []

    def locate(start: int, end: int) -> tuple[int, int]:
        if len(soft) == len(text) and text.isascii():
            return start, end
        if not offsets:
            offsets.extend(soft_offsets(text))
        return offsets[start], offsets[end - 1] + 1

    return locate
