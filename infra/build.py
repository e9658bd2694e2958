"""Builds what is uploaded: the functions' package and the three layers, without Docker and without CDK.

Each builder fills a folder. A content digest names it, so that both synth paths agree and an unchanged
layer is taken from `.cache/`. `python -m infra.build` builds everything for both architectures.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from infra.settings import ROOT

PYTHON_VERSION = "3.13"
"""The Lambda runtime's."""

PLATFORMS = {"x86_64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}

PROVIDED_BY_RUNTIME = frozenset({"botocore", "python-dateutil", "six", "urllib3"})
"""In a layer they would shadow those that the runtime's boto3 is made for."""

UNUSED = frozenset(
    {
        # tokenizers asks for its hub client; we load a local file.
        "huggingface-hub", "hf-xet", "fsspec", "filelock", "tqdm", "click", "anyio", "h11", "truststore",
        "httpx2", "httpcore2", "httpx2-jsfetch",
        # cffi needs its parser only to compile.
        "pycparser",
        # Windows only.
        "colorama", "tzdata",
        # onnxruntime needs them to write models.
        "flatbuffers", "protobuf", "packaging",
    }
)  # fmt: skip
"""Distributions that the pinned closure names and no deployed code imports; a test imports what is left."""

_PRUNED = (
    # The Python binding is linked statically; the C library beside it serves C programs.
    "onnxruntime/capi/libonnxruntime.so*",
    # Making models, training, tools.
    "onnxruntime/transformers", "onnxruntime/quantization", "onnxruntime/tools", "onnxruntime/datasets",
    "onnxruntime/backend", "onnxruntime/ThirdPartyNotices.txt",
    # Parts of numpy that nothing here calls (compilers, random numbers, transforms, masks, tests).
    "numpy/f2py", "numpy/_pyinstaller", "numpy/random", "numpy/testing", "numpy/fft",
    "numpy/polynomial", "numpy/ma",
    "numpy/_core/include", "numpy/_core/lib", "numpy/_core/_simd*", "numpy/_core/_*_tests*",
    # Pages, brokers and data of other services.
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.js",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.css",
    "aws_lambda_powertools/utilities/kafka", "aws_lambda_powertools/utilities/data_masking",
    "aws_lambda_powertools/utilities/feature_flags", "aws_lambda_powertools/utilities/streaming",
    "aws_lambda_powertools/utilities/auth_alpha", "aws_lambda_powertools/utilities/circuit_breaker",
    "aws_lambda_powertools/utilities/idempotency", "aws_lambda_powertools/utilities/parameters",
    "pydantic/v1", "stdnum/oui.dat", "stdnum/imsi.dat",
    # Numbers of single countries; an IBAN is checked by its own module, and by a country's where there is one.
    "stdnum/??",
    # The pure parser of the same package serves as well.
    "yaml/_yaml*", "_yaml",
    "bin", "*.dist-info/RECORD", "*.dist-info/sboms", "wrapt-stubs",
)  # fmt: skip
_PRUNED_ANYWHERE = ("tests", "__pycache__", "*.pyi", "*.c", "*.h", "*.pxd", "*.pyx", "*.lib", "*.a")

_SKIPPED_SOURCES = ("__pycache__", "*.pyc", "*.tests.toml", ".*")


class BuildFailed(RuntimeError):
    """A build step ended with an error; the text is what it printed."""


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for path in paths:
        if path.is_file():
            yield path.name, path
            continue
        if not path.is_dir():
            raise BuildFailed(f"{path} is missing")
        for file in sorted(path.rglob("*")):
            relative = file.relative_to(path)
            skipped = any(
                Path(part).match(pattern) for part in relative.parts for pattern in _SKIPPED_SOURCES
            )
            if file.is_file() and not skipped:
                yield f"{path.name}/{relative.as_posix()}", file


def tree_digest(*paths: Path, salt: str = "") -> str:
    """SHA-256 over names and bytes of the sources, without bytecode and test data, file modes and times."""
    digest = hashlib.sha256(f"{PYTHON_VERSION}|{salt}".encode())
    for name, file in _files(paths):
        content = file.read_bytes()
        digest.update(f"|{name}|{len(content)}|".encode())
        digest.update(content)
    return digest.hexdigest()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command[:5])} ...: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _runtime_python() -> str | None:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON_VERSION:
        return sys.executable
    return shutil.which(f"python{PYTHON_VERSION}")


def compile_bytecode(folder: Path, mounted_at: str) -> None:
    """Ships .pyc that the runtime trusts without looking at file times, which a zip does not keep.

    Bytecode belongs to one Python version: without an interpreter of the runtime's version there is none,
    and functions start slower.
    """
    python = _runtime_python()
    if python is None:
        print(f"no python{PYTHON_VERSION} here: layers ship without bytecode", file=sys.stderr)
        return
    how = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", mounted_at]
    _run([python, "-m", "compileall", *how, str(folder)])


def build_functions(out: Path, source: Path = ROOT / "functions") -> None:
    """`functions/` as a package, so that a handler can import the manifest at run time."""
    shutil.copytree(source, out / "functions", ignore=shutil.ignore_patterns(*_SKIPPED_SOURCES))
    compile_bytecode(out, "/var/task")


def build_core(out: Path, source: Path = ROOT / "layers/core/python") -> None:
    """The core package with its SQL and rule data; the rules' test sentences stay behind."""
    shutil.copytree(source, out / "python", ignore=shutil.ignore_patterns(*_SKIPPED_SOURCES))
    compile_bytecode(out / "python", "/opt/python")


def wanted_requirements(lock: str) -> str:
    """The hash-pinned lock without the distributions that are not shipped."""
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", lock)
    left_out = PROVIDED_BY_RUNTIME | UNUSED
    return "".join(block for block in blocks if re.split(r"[=\[ ]", block, maxsplit=1)[0] not in left_out)


def build_deps(out: Path, architecture: str) -> None:
    """The pinned distributions for Lambda's Python, pruned, and the certificate authorities of RDS."""
    python = out / "python"
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(wanted_requirements((ROOT / "layers/deps/requirements.txt").read_text()))
        target = ["--target", str(python), "--python-platform", PLATFORMS[architecture]]
        pinned = [
            "--python-version",
            PYTHON_VERSION,
            "--only-binary",
            ":all:",
            "--no-deps",
            "--require-hashes",
        ]
        install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--link-mode", "copy"]
        _run([*install, *target, *pinned, "-r", str(requirements)])
    doomed = [path for pattern in _PRUNED for path in python.glob(pattern)]
    doomed += [path for pattern in _PRUNED_ANYWHERE for path in python.rglob(pattern)]
    for path in doomed:
        _remove(path)
    compile_bytecode(python, "/opt/python")
    shutil.copyfile(ROOT / "layers/deps/rds-ca.pem", out / "rds-ca.pem")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


def deps_digest(architecture: str) -> str:
    return tree_digest(ROOT / "layers/deps", ROOT / "infra/build.py", salt=architecture)


def model_digest() -> str:
    return tree_digest(ROOT / "layers/model")


def build_model(out: Path) -> None:
    """The model that `layers/model` builds, in `model/`; that build needs the application's environment."""
    python = ROOT / ".venv/bin/python"
    command = [str(python) if python.exists() else sys.executable, "-m", "layers.model.build"]
    folder = _run(command).strip()
    shutil.copytree(folder, out / "model")


def cached(kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """The finished folder of that digest under .cache/, built when absent; safe against parallel builders."""
    folder = ROOT / ".cache/layers" / f"{kind}-{digest[:16]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            build(Path(work, "out"))
            try:
                Path(work, "out").rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


def deps_folder(architecture: str) -> Path:
    """The built dependency layer of that architecture. Raises BuildFailed."""
    return cached(
        f"deps-{architecture}", deps_digest(architecture), lambda out: build_deps(out, architecture)
    )


def place(folder: Path, out: Path) -> None:
    """Copies a cached folder, by hard links where the file system allows."""
    try:
        shutil.copytree(folder, out, copy_function=os.link, dirs_exist_ok=True)
    except OSError:
        shutil.copytree(folder, out, dirs_exist_ok=True)


def unzipped_bytes(folder: Path) -> int:
    """What counts against Lambda's limit of 250 MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    for name in PLATFORMS:
        built = deps_folder(name)
        print(f"{built.relative_to(ROOT)}: {unzipped_bytes(built) / 1e6:.1f} MB")
