"""The operating point of layer 2 of the screen: the only place that states it.

Apart from the classifier so that settings can read it without numpy.
"""

from typing import Final

QUARANTINE_AT: Final = 0.7
REJECT_AT: Final = 0.9
"""Scores from which a text is held for a person, and refused; bench/gate.py prints the curve behind them."""
