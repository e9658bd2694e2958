"""A stub function whose module cannot be imported."""

raise RuntimeError("no import of this")
