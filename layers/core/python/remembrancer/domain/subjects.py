"""Data subjects: opaque strings, compared as a whole."""

from __future__ import annotations

import unicodedata


def subject_key(subject: str) -> str:
    """Equal for two spellings that differ in case or in composition alone (Unicode's canonical caseless match)."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", subject).casefold())
    return unicodedata.normalize("NFC", folded)
