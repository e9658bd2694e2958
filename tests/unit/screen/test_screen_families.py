"""Every family on its own sentences: positives with the expected verdict, near misses clean."""

from __future__ import annotations

import pytest

from remembrancer.domain.screen import screen
from remembrancer.domain.screen.rules import FAMILIES, load_rules


def test_rejected_sentences(reject_sentence):
    family, text = reject_sentence
    report = screen({"content": text})
    assert any(signal.family == family and signal.severity == "critical" for signal in report.signals)
    assert report.verdict == "reject"


def test_quarantined_sentences(quarantine_sentence):
    family, text = quarantine_sentence
    report = screen({"content": text})
    assert any(signal.family == family for signal in report.signals)
    assert report.verdict == "quarantine"


def test_clean_sentences(clean_sentence):
    _, text = clean_sentence
    report = screen({"content": text})
    assert report.verdict == "clean", report.signals
    assert report.signals == ()


def test_each_family_has_enough_sentences(all_sentences):
    for family in FAMILIES:
        groups = all_sentences[family]
        assert len(groups.get("reject", [])) + len(groups.get("quarantine", [])) >= 20
        assert len(groups["clean"]) >= 20


def test_each_rule_is_fired_by_a_sentence_of_its_family(all_sentences):
    fired = set()
    for family in FAMILIES:
        for verdict in ("reject", "quarantine"):
            for text in all_sentences[family].get(verdict, []):
                fired |= {
                    signal.rule for signal in screen({"content": text}).signals if signal.family == family
                }
    assert {rule.id for rule in load_rules().rules} <= fired


def test_a_report_holds_no_text_but_names_of_ours(all_sentences):
    rules = load_rules().rules
    ours = (
        {rule.id for rule in rules}
        | {"encoded.overflow"}
        | set(FAMILIES)
        | {"content", "medium", "high", "critical"}
    )
    for family in FAMILIES:
        for verdict in ("reject", "quarantine"):
            for text in all_sentences[family].get(verdict, []):
                for signal in screen({"content": text}).to_dict()["signals"]:
                    assert signal.pop("view").split(":")[0] in {"raw", "normalized", "decoded"}
                    assert isinstance(signal.pop("start"), int) and isinstance(signal.pop("end"), int)
                    assert set(signal.values()) <= ours


@pytest.mark.parametrize(
    "text", ["The stones act as a bridge.", "config override approved", "import os; exec('x')"]
)
def test_known_false_alarms_of_other_screens_are_clean(text):
    assert screen({"title": text, "content": text}).verdict == "clean"
