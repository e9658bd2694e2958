"""The whole system on one machine: `python -m local`."""

import sys
from pathlib import Path

# The core is a Lambda layer, not an installed package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "layers" / "core" / "python"))
