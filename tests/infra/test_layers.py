"""The layers fit, are for their architecture, and import alone."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from templates import Synthesized

from infra import build
from infra.settings import ROOT

LIMIT = 170_000_000
"""Bytes unzipped of everything that an embedding function carries; Lambda stops at 262,144,000."""

_WHEEL_TAGS = {"x86_64": "x86_64", "arm64": "aarch64"}
_ELF_MACHINES = {"x86_64": 62, "arm64": 183}

_IMPORTS = """
import numpy, onnxruntime, tokenizers, psycopg, pgvector.psycopg, pydantic, re2, phonenumbers
import confusable_homoglyphs, uuid_utils, http_message_signatures
import stdnum.iban, stdnum.luhn
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.event_handler import APIGatewayRestResolver
APIGatewayRestResolver(enable_validation=True)
assert psycopg.pq.__impl__ == "binary"
import importlib, pkgutil, remembrancer
for module in pkgutil.walk_packages(remembrancer.__path__, "remembrancer."):
    importlib.import_module(module.name)
print("imported")
"""


@pytest.fixture(scope="module", params=sorted(build.PLATFORMS))
def architecture(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def deps(architecture: str) -> Path:
    return build.deps_folder(architecture)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("core") / "out"
    build.build_core(out)
    return out


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "out"
    build.build_model(out)
    return out


def test_all_layers_together_fit(deps: Path, core: Path, model: Path) -> None:
    layers = {"deps": deps, "core": core, "model": model}
    sizes = {name: build.unzipped_bytes(folder) for name, folder in layers.items()}
    print({name: f"{size / 1e6:.1f} MB" for name, size in sizes.items()})
    assert sum(sizes.values()) < LIMIT


def test_wheels_are_for_the_architecture_and_the_runtime(deps: Path, architecture: str) -> None:
    """Binary wheels name the platform; every shared object says it again in its header."""
    tagged = 0
    for wheel in (deps / "python").glob("*.dist-info/WHEEL"):
        tags = [line.split(": ")[1] for line in wheel.read_text().splitlines() if line.startswith("Tag: ")]
        binary = [tag for tag in tags if not tag.endswith("-any")]
        tagged += bool(binary)
        assert all(tag.endswith(_WHEEL_TAGS[architecture]) for tag in binary), wheel
        assert all(tag.startswith(("cp313-", "cp3")) for tag in binary), wheel
    assert tagged >= 8
    for shared in (deps / "python").rglob("*.so*"):
        header = shared.read_bytes()[:20]
        assert header[:4] == b"\x7fELF"
        assert int.from_bytes(header[18:20], "little") == _ELF_MACHINES[architecture], shared


def test_nothing_that_was_left_out_came_back(deps: Path) -> None:
    shipped = {
        path.name.rsplit("-", 1)[0].replace("_", "-").lower()
        for path in (deps / "python").glob("*.dist-info")
    }
    shipped = {name.removesuffix(".dist-info").rsplit("-", 1)[0] for name in shipped} | shipped
    assert not shipped & (build.UNUSED | build.PROVIDED_BY_RUNTIME)
    assert not list((deps / "python").glob("hf_xet*")) + list((deps / "python").glob("httpx*"))
    assert (deps / "python/onnxruntime").is_dir()


def test_bytecode_is_trusted_without_file_times(deps: Path, core: Path) -> None:
    """A zip keeps no times that Python would accept: the flag in the header says "unchecked hash"."""
    for folder in (deps / "python", core / "python"):
        compiled = list(folder.rglob("*.cpython-313.pyc"))
        assert len(compiled) > 20
        assert {int.from_bytes(path.read_bytes()[4:8], "little") for path in compiled[:200]} == {0b01}


def test_the_certificate_authorities_of_rds_travel_with_the_deps(deps: Path, dev: Synthesized) -> None:
    bundle = (deps / "rds-ca.pem").read_text()
    assert bundle.count("-----BEGIN CERTIFICATE-----") > 60
    assert bundle == (ROOT / "layers/deps/rds-ca.pem").read_text()


def test_test_sentences_stay_behind(core: Path) -> None:
    assert not list(core.rglob("*.tests.toml"))
    assert list(core.rglob("*.sql")), "migrations travel with the core"


def test_the_layers_import_alone(core: Path, tmp_path: Path) -> None:
    """With nothing but the layers and, as on Lambda, the runtime's own boto3 behind them."""
    host = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine())
    if host is None or sys.version_info[:2] != (3, 13):
        pytest.skip("the layers are for Python 3.13 on x86_64 or arm64")
    packages = next((ROOT / ".venv/lib").glob("python3.*/site-packages"), None)
    if packages is None:
        pytest.skip("no application environment to stand in for the runtime's boto3")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    for name in ("boto3", "botocore", "s3transfer", "dateutil", "six.py", "urllib3"):
        (runtime / name).symlink_to(packages / name)
    path = [build.deps_folder(host) / "python", core / "python", runtime]
    script = f"import sys; sys.path += {[str(p) for p in path]!r}\n{_IMPORTS}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == "imported", done.stderr[-2_000:]


def test_a_digest_follows_content_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "__pycache__").mkdir(parents=True)
    (tree / "a.py").write_text("1")
    before = build.tree_digest(tree)
    (tree / "__pycache__/a.pyc").write_text("x")
    (tree / "rule.tests.toml").write_text("x")
    (tree / "a.py").touch()
    assert build.tree_digest(tree) == before
    (tree / "a.py").write_text("2")
    assert build.tree_digest(tree) != before


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(build.BuildFailed, match="nowhere is missing"):
        build.tree_digest(tmp_path / "nowhere")
