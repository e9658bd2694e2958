"""A profile is checked before anything is made of it, and says every fault at once."""

from __future__ import annotations

from typing import Any

import pytest

from infra.settings import InvalidProfile, cdk_context, load_profile

PROFILES = cdk_context()["profiles"]


def _changed(base: str, **changes: Any) -> dict[str, Any]:
    return {base: {**PROFILES[base], **changes}}


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_shipped_profiles_are_valid(name: str) -> None:
    assert load_profile(name).prefix == f"remembrancer-{name}"


def test_an_unknown_profile_lists_the_known_ones() -> None:
    with pytest.raises(InvalidProfile, match=r"no profile 'test'; cdk\.json has: dev, prod"):
        load_profile("test")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"min_acu": 0.5}, "auto_pause_s is set exactly when min_acu is 0"),
        ({"auto_pause_s": None}, "auto_pause_s is set exactly when min_acu is 0"),
        ({"max_acu": 0.5}, "max_acu"),
        ({"max_acu": "2"}, "max_acu"),
        ({"waf": 1}, "waf"),
        ({"region": "Frankfurt"}, "region"),
        ({"architecture": "arm"}, "architecture"),
        ({"engine_version": "16.1"}, "too old to pause"),
        ({"engine_version": "15.9"}, "only 16 and 17"),
        ({"log_days": 15}, "log_days"),
        ({"checkpoint_lock": "COMPLIANCE"}, "could not be destroyed"),
        ({"keep_data": True}, "GOVERNANCE"),
        ({"alert_email": "nobody"}, "alert_email"),
        ({"nat": True}, "nat"),
        ({"assessor": "bedrock"}, "assessor_model is set exactly"),
        ({"assessor_model": "eu.example.model"}, "assessor_model is set exactly"),
        ({"assessor": "openai"}, "assessor"),
    ],
)
def test_a_faulty_profile_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProfile, match=said):
        load_profile("dev", _changed("dev", **changes))


def test_a_missing_setting_is_named() -> None:
    settings = {k: v for k, v in PROFILES["dev"].items() if k not in ("waf", "region")}
    with pytest.raises(InvalidProfile) as caught:
        load_profile("dev", {"dev": settings})
    assert "waf" in str(caught.value) and "region" in str(caught.value)


@pytest.mark.parametrize("profile", [[], None, "dev"])
def test_a_profile_is_an_object(profile: Any) -> None:
    with pytest.raises(InvalidProfile, match="is not an object"):
        load_profile("dev", {"dev": profile})
