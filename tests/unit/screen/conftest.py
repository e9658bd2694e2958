"""The sentences that stand beside the rule files, and the way to say what the screen found."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import remembrancer.domain.screen as package
from remembrancer.domain.screen import screen
from remembrancer.domain.screen.rules import FAMILIES

RULES = Path(package.__file__).parent / "rules"
SENTENCES = {
    family: tomllib.loads((RULES / f"{family}.tests.toml").read_text(encoding="utf-8")) for family in FAMILIES
}
CRITICAL = ("instruction_override", "role_spoofing", "prompt_extraction", "exfiltration", "active_markup")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`reject`, `quarantine` and `clean` arguments become one test a sentence."""
    for verdict in ("reject", "quarantine", "clean"):
        if f"{verdict}_sentence" in metafunc.fixturenames:
            cases = [
                pytest.param((family, text), id=f"{family}-{number}")
                for family, groups in SENTENCES.items()
                for number, text in enumerate(groups.get(verdict, []))
            ]
            metafunc.parametrize(f"{verdict}_sentence", cases)


@pytest.fixture(scope="session")
def all_sentences() -> dict[str, dict[str, list[str]]]:
    """Family -> expected verdict -> sentences."""
    return SENTENCES


@pytest.fixture(scope="session")
def critical_sentences() -> list[str]:
    """Everything that must be rejected when it is written plainly, in the critical families."""
    return [text for family in CRITICAL for text in SENTENCES[family]["reject"]]


@pytest.fixture(scope="session")
def missed() -> Callable[[list[str]], list[str]]:
    """The texts that the screen lets pass as clean."""
    return lambda texts: [text for text in texts if screen({"content": text}).verdict == "clean"]
