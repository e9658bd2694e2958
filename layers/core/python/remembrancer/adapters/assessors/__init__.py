"""The assessor that the settings name."""

from __future__ import annotations

from remembrancer.domain.assessment_prompt import PROMPT_VERSION
from remembrancer.domain.assessment_rules import RULES_VERSION
from remembrancer.domain.ports import Assessor
from remembrancer.settings import Settings


def assessor(read: Settings) -> Assessor:
    """A deployment has one; only its own libraries are imported."""
    if read.assessor == "bedrock":
        from remembrancer.adapters.assessors.bedrock import BedrockAssessor

        return BedrockAssessor(read)
    if read.assessor == "openai":
        from remembrancer.adapters.assessors.openai import OpenAiAssessor

        return OpenAiAssessor(read)
    from remembrancer.adapters.assessors.rules import RulesAssessor

    return RulesAssessor()


def assessor_id(read: Settings) -> str:
    """What a validated answer is reused by: another model, another prompt or other rules judge anew."""
    if read.assessor == "rules":
        return RULES_VERSION
    return f"{read.assessor}/{read.assessor_model}/{PROMPT_VERSION}"
