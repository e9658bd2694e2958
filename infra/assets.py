"""The built folders as CDK assets: named by content digest, bundled on this machine, never in Docker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

from infra import build
from infra.settings import ROOT


@dataclass(frozen=True)
class Sources:
    """Where the deployed code comes from; tests put changed copies in their place."""

    functions: Path = ROOT / "functions"
    core: Path = ROOT / "layers/core/python"


@jsii.implements(cdk.ILocalBundling)
class _Local:
    def __init__(self, fill: Callable[[Path], None]) -> None:
        self._fill = fill

    def try_bundle(self, output_dir: str, options: object = None, **_: object) -> bool:
        self._fill(Path(output_dir))
        return True


def _code(source: Path, digest: str, fill: Callable[[Path], None]) -> lambda_.Code:
    bundling = cdk.BundlingOptions(
        # Required by the type; reached only if the local bundling declined, which it never does.
        image=cdk.DockerImage.from_registry("scratch"),
        local=_Local(fill),
        output_type=cdk.BundlingOutput.NOT_ARCHIVED,
    )
    return lambda_.Code.from_asset(
        str(source), asset_hash=digest, asset_hash_type=cdk.AssetHashType.CUSTOM, bundling=bundling
    )


def functions_code(sources: Sources) -> lambda_.Code:
    """`functions/`, shared by all functions."""
    return _code(
        sources.functions,
        build.tree_digest(sources.functions),
        lambda out: build.build_functions(out, sources.functions),
    )


def core_code(sources: Sources) -> lambda_.Code:
    return _code(
        sources.core, build.tree_digest(sources.core), lambda out: build.build_core(out, sources.core)
    )


def model_code() -> lambda_.Code:
    return _code(ROOT / "layers/model", build.model_digest(), build.build_model)


def deps_code(architecture: str) -> lambda_.Code:
    return _code(
        ROOT / "layers/deps",
        build.deps_digest(architecture),
        lambda out: build.place(build.deps_folder(architecture), out),
    )
