"""CDK entry. `python app.py` and `npx aws-cdk synth` give the same templates; no account is needed."""

from __future__ import annotations

import os

from infra.node import use_pinned_node

use_pinned_node()

import aws_cdk as cdk  # noqa: E402

from infra.nag import check_with_nag  # noqa: E402
from infra.settings import cdk_context, load_profile  # noqa: E402
from infra.stack import Remembrancer  # noqa: E402


def main() -> None:
    """Synthesizes the profile of the context (`-c profile=prod`), or of REM_PROFILE in a bare run."""
    context = cdk_context()
    context["profile"] = os.environ.get("REM_PROFILE", context["profile"])
    app = cdk.App(context=context, outdir=os.environ.get("CDK_OUTDIR", "cdk.out"), analytics_reporting=False)
    Remembrancer(app, load_profile(app.node.try_get_context("profile")))
    check_with_nag(app)
    app.synth()


if __name__ == "__main__":
    main()
