"""What a cold start imports: its cost beside that of the libraries it cannot do without, and what it must not.

The budgets (0.35 s, embedding functions 1.2 s) are for a quiet machine, on which the libraries of REFERENCE take
about 0.25 s. On a busy one everything is slower by the same factor: the ratio is what is compared.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions import manifest

ROOT = Path(__file__).parents[2]
REFERENCE = "psycopg, pydantic, aws_lambda_powertools.event_handler.openapi.params"
QUIET_REFERENCE_S = 0.25
BUDGET_S = {False: 0.35, True: 1.2}
ROUNDS = 40
"""At most: the least times of a few rounds are those of a quiet machine."""
HEAVY = ("numpy", "onnxruntime", "tokenizers", "boto3", "botocore.session", "aws_xray_sdk", "phonenumbers")
SERVING = [function for function in manifest.FUNCTIONS if function.routes]


def run(code: str, **more: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'layers/core/python'}", **more}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def seconds(module: str, compiled: Path) -> float:
    """CPU time of the import, which waiting for a busy core does not lengthen; from bytecode, as it is deployed."""
    code = f"import time; a = time.process_time()\nimport {module}\nprint(time.process_time() - a)"
    return float(run(code, PYTHONPYCACHEPREFIX=str(compiled), PYTHONDONTWRITEBYTECODE=""))


def test_an_import_stays_within_its_budget(tmp_path: Path) -> None:
    names = ("purge", "approve")
    allowed = {name: BUDGET_S[manifest.function(name).embeds] / QUIET_REFERENCE_S for name in names}
    modules = {"reference": REFERENCE, **{name: f"functions.{name}.handler" for name in names}}
    for module in modules.values():
        seconds(module, tmp_path)  # compiles it
    best = dict.fromkeys(modules, math.inf)
    for _ in range(ROUNDS):
        best = {name: min(best[name], seconds(module, tmp_path)) for name, module in modules.items()}
        ratios = {name: best[name] / best["reference"] for name in names}
        if all(ratio <= allowed[name] for name, ratio in ratios.items()):
            return
    pytest.fail(f"{ratios} times the libraries, allowed {allowed}")


@pytest.mark.parametrize("function", SERVING, ids=lambda f: f.name)
def test_only_functions_that_embed_may_import_what_is_heavy(function: manifest.Function) -> None:
    heavy = set(run(
        f"import sys\nimport functions.{function.name}.handler\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    ).split())  # fmt: skip
    # The embedder itself is loaded at the first use, not by the import.
    allowed = {"numpy", "phonenumbers"} if function.embeds else set()
    assert heavy <= allowed
