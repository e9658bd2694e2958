"""The rule files: one TOML file a family, and the lexicons that all phrases share."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import re2

from remembrancer.domain.screen.fold import soften_char
from remembrancer.domain.screen.phrases import Lexicon, PhraseIndex, literals_of
from remembrancer.domain.screen.rejoin import Vocabulary
from remembrancer.domain.screen.report import Severity
from remembrancer.domain.screen.views import ROT13

FAMILIES = (
    "instruction_override",
    "role_spoofing",
    "prompt_extraction",
    "exfiltration",
    "delayed_activation",
    "authority_grant",
    "persona_override",
    "active_markup",
    "hidden_control",
    "encoded_payload",
    "self_replication",
)
REJOINED_SLACK = 3  # extra tokens allowed in each gap
MIN_ANCHOR = 6  # letters: shorter words turn up by chance across word ends
MIN_ROT13 = 5
_OPTIONS = re2.Options()
_OPTIONS.max_mem = 32 << 20


@dataclass(frozen=True)
class Rule:
    """One rule. `severity` holds when the text addresses the agent, `reported` when it is quoted or told.

    With `narrated_clean` a match whose subject is a narrator ("I", "they") does not count. `unicode` rules can
    only match text outside ASCII.
    `source` is the text its patterns read: `raw` (as written) or `soft` (folded). Phrases always read folded
    words. A match that fully matches one of `exceptions` does not count.
    """

    id: str
    family: str
    severity: Severity
    reported: Severity
    narrated_clean: bool
    source: str
    unicode: bool
    phrases: tuple[str, ...]
    patterns: tuple[str, ...]
    exceptions: tuple[str, ...]
    needs: tuple[str, ...]

    @cached_property
    def pattern(self) -> re2._Regexp:
        """All patterns as one expression over UTF-8 bytes."""
        return re2.compile("|".join(f"(?:{_folded(p, self.source)})" for p in self.patterns), _OPTIONS)

    @cached_property
    def exception(self) -> re2._Regexp | None:
        if not self.exceptions:
            return None
        return re2.compile("|".join(f"(?:{_folded(p, self.source)})" for p in self.exceptions), _OPTIONS)

    @cached_property
    def folded_needs(self) -> tuple[str, ...]:
        """A text without any of these cannot match; empty when there is no such shortcut."""
        return tuple(_folded(need, self.source) for need in self.needs)


OVERFLOW = Rule(
    id="encoded.overflow",
    family="encoded_payload",
    severity=Severity.CRITICAL,
    reported=Severity.CRITICAL,
    narrated_clean=False,
    source="soft",
    unicode=False,
    phrases=(),
    patterns=(),
    exceptions=(),
    needs=(),
)
"""Fired by what is more than the budget lets the screen decode."""


@dataclass(frozen=True)
class RuleSet:
    """All rules, and their phrases compiled for folded words (`soft`) and for look-alike words (`latin`)."""

    rules: tuple[Rule, ...]
    classes: Mapping[str, Sequence[str]]
    version: str

    @cached_property
    def literals(self) -> frozenset[str]:
        return frozenset(literals_of(phrase for rule in self.rules for phrase in rule.phrases))

    @cached_property
    def soft(self) -> Lexicon:
        return Lexicon(self.classes, self.literals, latin=False)

    @cached_property
    def latin(self) -> Lexicon:
        return Lexicon(self.classes, self.literals, latin=True)

    @cached_property
    def soft_phrases(self) -> PhraseIndex[Rule]:
        return PhraseIndex(((rule, phrase) for rule in self.rules for phrase in rule.phrases), self.soft)

    @cached_property
    def latin_phrases(self) -> PhraseIndex[Rule]:
        return PhraseIndex(((rule, phrase) for rule in self.rules for phrase in rule.phrases), self.latin)

    @cached_property
    def loose_phrases(self) -> PhraseIndex[Rule]:
        """For text whose words were put together again, some of them wrongly."""
        owned = ((rule, phrase) for rule in self.rules for phrase in rule.phrases)
        return PhraseIndex(owned, self.latin, slack=REJOINED_SLACK)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words and stems of the phrases; none that is itself two words that phrases know."""
        words = {*self.latin.words, *self.latin.stems} - {"systemprompt", "systemprompts"}
        anchors = frozenset(word for word in self.latin.words if len(word) >= MIN_ANCHOR and word.isalpha())
        return Vocabulary(frozenset(words), anchors)

    @cached_property
    def rot13_anchors(self) -> re2._Regexp:
        """A long word of the phrases or of active markup, written in rot13."""
        words = {
            word for word in self.soft.words if len(word) >= MIN_ROT13 and word.isascii() and word.isalpha()
        }
        anchors = "|".join(sorted(word.translate(ROT13) for word in words))
        tags = "script|iframe|object|embed|meta|base|form|img|svg|body|div|start_of_turn|inst|sys|a href"
        markup = (
            f"fpevcg|qngn:|[<\\[]\\s*/?(?:{tags.translate(ROT13)})"  # `script`, `data:`, tags
            "|<[^<>]*\\sba[a-z]{3,}\\s*=|<\\|[a-z_]{3,}\\|>"  # `<x onload=`, `<|user|>`
        )
        return re2.compile(f"(?:^|[^a-z])(?:{anchors})(?:[^a-z]|$)|{markup}", _OPTIONS)

    @cached_property
    def text_rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.patterns)


@cache
def load_rules() -> RuleSet:
    """The rules that ship with the package."""
    folder = Path(__file__).parent / "rules"
    digest = hashlib.sha256()
    classes: dict[str, list[str]] = {}
    rules: list[Rule] = []
    for name in ("words", *FAMILIES):
        data = (folder / f"{name}.toml").read_bytes()
        digest.update(data)
        content = tomllib.loads(data.decode("utf-8"))
        for class_name, entries in content.get("words", {}).items():
            classes[class_name] = entries.replace("-", " ").split("|")
        rules.extend(_rule(name, item) for item in content.get("rule", ()))
    return RuleSet(tuple(rules), classes, digest.hexdigest()[:12])


def _rule(family: str, item: Mapping[str, Any]) -> Rule:
    """One rule; a hyphen in a phrase separates words, as it does in a text."""
    severity = Severity(item["severity"])
    needs = tuple(item.get("needs", ()))
    return Rule(
        id=item["id"],
        family=family,
        severity=severity,
        reported=Severity(item.get("reported", severity)),
        narrated_clean=item.get("narrated") == "clean",
        source=item.get("source", "soft"),
        unicode=item.get("unicode", False) or bool(needs and not any(need.isascii() for need in needs)),
        phrases=tuple(phrase.replace("-", "+") for phrase in item.get("phrases", ())),
        patterns=tuple(item.get("patterns", ())),
        exceptions=tuple(item.get("exceptions", ())),
        needs=needs,
    )


def _folded(pattern: str, source: str) -> str:
    """A pattern folded as the text it will read."""
    if source == "raw" or pattern.isascii():
        return pattern
    return "".join([char if char.isascii() else soften_char(char) for char in pattern])
