"""CDK entry. A bare `python app.py` and the CDK command line give the same templates; no account is needed."""

from __future__ import annotations

import os

from infra.node import prepare

prepare()

import aws_cdk as cdk  # noqa: E402

from infra.assets import Sources  # noqa: E402
from infra.nag import check_with_nag  # noqa: E402
from infra.settings import cdk_context, load_profile  # noqa: E402
from infra.stack import Remembrancer  # noqa: E402


def build(profile: str | None = None, outdir: str | None = None, sources: Sources | None = None) -> cdk.App:
    """The application of one profile: the given one, the context's (`-c profile=prod`), or cdk.json's."""
    context = cdk_context()
    app = cdk.App(context=context, outdir=outdir, analytics_reporting=False)
    name = profile or app.node.try_get_context("profile")
    Remembrancer(app, load_profile(name), sources or Sources())
    return app


def main() -> None:
    """A bare run takes REM_PROFILE and writes to cdk.out, as the command line does."""
    app = build(os.environ.get("REM_PROFILE"), os.environ.get("CDK_OUTDIR", "cdk.out"))
    check_with_nag(app)
    app.synth()


if __name__ == "__main__":
    main()
