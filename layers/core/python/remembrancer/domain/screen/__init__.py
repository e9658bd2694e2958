"""Layer 1 of the screen: pure rules over every text field of a request."""

from remembrancer.domain.screen.engine import screen
from remembrancer.domain.screen.report import ScreenReport, Severity, Signal, Verdict, worst

__all__ = ["ScreenReport", "Severity", "Signal", "Verdict", "screen", "worst"]
