"""Both profiles, synthesized once a session."""

from __future__ import annotations

import json

import pytest
from templates import Synthesized

import app as cdk_app
from functions import manifest
from infra.nag import check_with_nag
from infra.settings import load_profile

PROFILES = ("dev", "prod")


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesized]:
    synthesized = {}
    for name in PROFILES:
        outdir = tmp_path_factory.mktemp(name)
        app = cdk_app.build(name, str(outdir))
        check_with_nag(app)
        app.synth()
        template = json.loads((outdir / f"remembrancer-{name}.template.json").read_text())
        report = json.loads((outdir / "validation-report.json").read_text())
        synthesized[name] = Synthesized(load_profile(name), outdir, template, report)
    return synthesized


@pytest.fixture(params=PROFILES)
def stack(request: pytest.FixtureRequest, both: dict[str, Synthesized]) -> Synthesized:
    """Each profile in turn."""
    return both[request.param]


@pytest.fixture
def dev(both: dict[str, Synthesized]) -> Synthesized:
    return both["dev"]


@pytest.fixture
def prod(both: dict[str, Synthesized]) -> Synthesized:
    return both["prod"]


@pytest.fixture(params=manifest.FUNCTIONS, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> manifest.Function:
    return request.param
