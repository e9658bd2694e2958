"""The embedded assessor: rules, no model and no network."""

from __future__ import annotations

from remembrancer.domain.assessment import Conversation
from remembrancer.domain.assessment_rules import RULES_VERSION, assess
from remembrancer.domain.ports import Answer


class RulesAssessor:
    name = "rules"

    def answer(self, conversation: Conversation) -> Answer:
        """The same answer in every turn: it is valid in the first."""
        return Answer(assess(conversation.request), RULES_VERSION, 0, 0)
