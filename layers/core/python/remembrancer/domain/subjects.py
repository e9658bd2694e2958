"""Data subjects: opaque strings, compared as a whole."""

from __future__ import annotations

import unicodedata

from remembrancer.domain.invisible import strip_invisible


def subject_key(subject: str) -> str:
    """Equal for two spellings that differ in case or in composition alone (Unicode's canonical caseless match), or in
    what cannot be seen: the gate stores a subject without it, and whoever asks sends what was declared."""
    seen = unicodedata.normalize("NFD", strip_invisible(subject))
    folded = unicodedata.normalize("NFD", seen.casefold())
    return unicodedata.normalize("NFC", folded)
