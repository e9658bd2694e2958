"""Claims that were once called supported by a text that says something else."""

from __future__ import annotations

import pytest

from remembrancer.domain.verifying import match, verdict


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The version is 3.5", "The version is 3 of 5"),
        ("The temperature is -5 degrees", "The temperature was 5 degrees."),
        ("Balance is 5", "Balance is -5"),
        ("It costs $5", "It costs €5"),
        ("Growth was 5%", "Growth was 5 points"),
        ("cost is 5", "The cost is 5,000"),
        ("port is 80", "port is 80.5"),
        ("5", "1.5"),
        ("weight 5 kg", "weight 0.5 kg"),
        ("cost is 5 million", "cost is 2.5 million"),
        ("Growth was 5", "Growth was 5 %"),
        ("the meeting is at 10:30", "the meeting at 10 has 30 people"),
        ("Restart before the deploy", "Restart after the deploy"),
        ("The alarm is on", "The alarm is off"),
        ("The price is over 100 euros", "The price is under 100 euros"),
        ("I like tea", "You like tea"),
        ("All users like tea", "Some users like tea"),
        ("Ana works at Globex", "Ana left. Ben works at Globex."),
        ("Ana does not work at Globex", "Ana works at Globex, not at Acme"),
        ("Ana works at Globex", "Does Ana work at Globex?"),
        ("Ana works at Globex", "Ana works at Globex?"),
        ("The budget is 5", "The budget is 5 million"),
        ("The budget is 5 euros", "The budget is 5 million euros"),
        ("The price is 5 euros", "The price is 5k euros"),
        ("The server is at 10.0.0", "The server is at 10.0.0.1"),
        ("The alarm is at 10:30 am", "The alarm is at 10:30 pm"),
        ("The alarm is at 10:30", "The alarm is at 10:30 p.m."),
        ("It takes 5 days", "It takes 5-7 days"),
        ("It takes 7 days", "It takes 5–7 days"),
        ("The temperature is 5 degrees", "The temperature is minus 5 degrees"),
        ("Maria lives in Rome", "Maria lives in Rome no longer."),
        ("Maria lives in Rome", "Maria lives in Rome, not any more."),
        ("maria lives in rome", "Maria lives in Rome: that is not true."),
        ("Maria lives in Rome", "That Maria lives in Rome is false."),
        ("Maria lives in Rome", "Maria lives in Rome. This was a rumour!"),
        ("Maria lives in Rome", "That Maria lives in lovely Rome isn't true."),
        ("Maria moved to Lisbon", "Maria wants to move to Lisbon"),
        ("Maria moved to Lisbon", "Maria will move to Lisbon"),
        ("Maria moved to Lisbon", "Maria might have moved to Lisbon"),
        ("Maria moved to Lisbon", "Maria almost moved to Lisbon"),
        ("Maria will move to Lisbon", "Maria moved to Lisbon"),
        ("Maria lives in Rome", "Maria used to live in Rome"),
        ("Maria likes tea", "Maria hardly likes tea"),
    ],
)
def test_another_statement_is_no_support(claim: str, text: str) -> None:
    assert verdict([match(claim, text)]) != "supported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("revenue 1,500 dollars", "The revenue was 1500 dollars"),
        ("revenue of 1500 dollars", "The revenue was 1,500 dollars"),
        ("It costs $5.50 a month", "It costs only $5.50 for a month"),
        ("The temperature is -5 degrees", "The temperature there is -5 degrees."),
        ("Growth was 5%", "Growth in June was 5 %."),
        ("Growth was 5%", "Growth, they say, was 5%"),
        ("Ana does not work at Globex", "Ana doesn't work at Globex any more."),
        ("Maria moved to Lisbon", "Maria, they say, moved\nto sunny Lisbon"),
        ("The release of version 3.5 is in June", "The release of version 3.5, at last, is in June."),
        ("Does Ana work at Globex?", "Does Ana work at Globex?"),
        ("The budget is 5 million euros", "The budget for it is 5 million euros"),
        ("Sales grew by 5 percent", "Sales in May grew by 5 percent."),
        ("The alarm is at 10:30 pm", "The alarm there is at 10:30 PM."),
        ("It takes 5-7 days", "It often takes 5 - 7 days"),
        ("The launch was in 2024", "The launch was on 2024-05-06"),
        ("Maria moved to Lisbon", "Maria moved, in May, with Will, to Lisbon"),
        ("Maria wants to move to Lisbon", "Maria wanted, at last, to move to Lisbon"),
        ("Maria lives in Rome", "Maria lives in Rome. Is it not true?"),
        ("The naïve plan failed", "The naïve plan, as we said, failed"),
    ],
)
def test_the_same_statement_in_other_words_is_support(claim: str, text: str) -> None:
    assert verdict([match(claim, text)]) == "supported"
