"""Every route and every function has a sample event, and its handler takes it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from functions.manifest import FUNCTIONS
from tests.integration.world import LambdaContext, World, wired

EVENTS = Path(__file__).resolve().parents[2] / "events"
SAMPLES = sorted(EVENTS.glob("*/*.json"))
# These talk to AWS; their own tests give them one.
RUN = [
    path
    for path in SAMPLES
    if path.parent.name not in ("checkpoint_sign", "outbox_publish", "remember_call_model")
]


def test_no_route_and_no_function_is_without_a_sample() -> None:
    events = {path: json.loads(path.read_text(encoding="utf-8")) for path in SAMPLES}
    sampled = {(p.parent.name, e["httpMethod"], e["resource"]) for p, e in events.items() if "resource" in e}
    assert sampled == {(f.name, r.method, r.path) for f in FUNCTIONS for r in f.routes}
    assert {path.parent.name for path in SAMPLES} == {f.name for f in FUNCTIONS}


@pytest.mark.parametrize("path", RUN, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_handler_takes_the_sample(world: World, path: Path) -> None:
    function = path.parent.name
    event = json.loads(path.read_text(encoding="utf-8"))
    module = importlib.import_module(f"functions.{function}.handler")
    if not hasattr(module, "services"):
        assert module.handler(event, LambdaContext(function))
        return
    with wired(world, function):
        if function in ("remember_prepare", "remember_check", "remember_commit"):  # no attempt is named
            with pytest.raises(Exception, match="not_found"):
                module.handler(event, LambdaContext(function))
            return
        answer = module.handler(event, LambdaContext(function))
    if "resource" in event:
        assert answer["statusCode"] in _expected(event), answer["body"]


def _expected(event: dict[str, Any]) -> set[int]:
    routes = {(r.method, r.path): r for f in FUNCTIONS for r in f.routes}
    if routes[(event["httpMethod"], event["resource"])].signed:
        return {401}  # a file cannot hold a signature that is still in its time
    return {404} if event["pathParameters"] else {200, 201, 202}
