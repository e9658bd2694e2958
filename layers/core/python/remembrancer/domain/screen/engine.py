"""The screen itself: every view of every field, matched against every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from remembrancer.domain.screen import rejoin, tokens
from remembrancer.domain.screen.context import Speech, in_quotes, speech
from remembrancer.domain.screen.fold import latinize, may_latinize, soft_offsets, soften
from remembrancer.domain.screen.phrases import Lexicon, PhraseIndex
from remembrancer.domain.screen.report import (
    MAX_SIGNALS_PER_FIELD,
    ScreenReport,
    Severity,
    Signal,
    build_report,
)
from remembrancer.domain.screen.rules import Rule, RuleSet, load_rules
from remembrancer.domain.screen.views import Budget, Locate, View, decoded_views, original, rot13

_LIMIT = MAX_SIGNALS_PER_FIELD + 1


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
    plain: list[Signal] = []
    normalized: list[Signal] = []
    for hit in _hits(text, rules):
        severity = hit.rule.reported if hit.reported else hit.rule.severity
        found_by = "raw" if hit.plain else "normalized"
        signal = Signal(name, hit.rule.family, hit.rule.id, severity, hit.start, hit.end, found_by)
        (plain if hit.plain else normalized).append(signal)
    decoded = [
        _encoded(name, hit, view)
        for view in _decoded_views(root, rules, budget)
        for hit in _hits(view.text, rules)
        if view.decoded(hit.start, hit.end)
    ]
    for start, end in budget.overflows:
        decoded.append(
            Signal(name, "encoded_payload", "encoded.overflow", Severity.CRITICAL, start, end, "raw")
        )
    budget.overflows.clear()
    return plain + [signal for signal in normalized if not _known(signal, plain)] + decoded


def _decoded_views(root: View, rules: RuleSet, budget: Budget) -> Iterator[View]:
    """All decoded views of a field, and each of them in rot13 where that may hold words of the rules."""
    for view in chain([root], decoded_views(root, budget)):
        if view.chain:
            yield view
        if rules.rot13_anchors.search(soften(view.text)):
            yield rot13(view)


def _encoded(name: str, hit: _Hit, view: View) -> Signal:
    start, end = view.locate(hit.start, hit.end)
    found_by = "decoded:" + "+".join(view.chain)
    return Signal(name, "encoded_payload", hit.rule.id, Severity.CRITICAL, start, end, found_by)


def _known(signal: Signal, others: list[Signal]) -> bool:
    """Whether the same family was already found there, at least as grave."""
    return any(
        other.family == signal.family
        and other.start < signal.end
        and signal.start < other.end
        and (other.severity is signal.severity or other.severity is Severity.CRITICAL)
        for other in others
    )


def _hits(text: str, rules: RuleSet) -> Iterator[_Hit]:
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
    yield from _latin_hits(soft, to_text, rules)


def _latin_hits(soft: str, to_text: Locate, rules: RuleSet) -> Iterator[_Hit]:
    """Matches of words that were spelled with look-alikes, leet, separators or without spaces."""
    folded = may_latinize(soft)
    latin = latinize(soft) if folded else soft.replace("l", "i")
    lexicon = rules.latin
    phrases = rules.loose_phrases
    cut = rejoin.rejoined(latin, rules.latin_words, rules.latin_lengths, rules.latin_anchors)
    if cut is None:
        if not folded or latin == soft.replace("l", "i"):
            return
        phrases = rules.latin_phrases
        cut = tokens.tokenize(latin)
    for rule, start, end, reported in _phrase_hits(lexicon.encode(cut.words), lexicon, phrases):
        yield _Hit(rule, *to_text(cut.starts[start], cut.ends[end - 1]), reported=reported, plain=False)


def _phrase_hits(
    codes: str, lexicon: Lexicon, phrases: PhraseIndex[Rule]
) -> Iterator[tuple[Rule, int, int, bool]]:
    present = frozenset(codes)
    data = codes.encode()
    for rule, phrase in phrases.candidates(present):
        for start, end in phrase.find(data, _LIMIT):
            how = speech(codes, start, end, lexicon)
            if how is not Speech.OPPOSITE and not (rule.narrated_clean and how is Speech.NARRATED):
                yield rule, start, end, how is not Speech.DIRECTIVE


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
