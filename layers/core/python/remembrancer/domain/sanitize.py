"""What stored text becomes before anyone reads it."""

from __future__ import annotations

from remembrancer.domain.findings import mask, merge
from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.pii import find_pii, maskable, pii_label
from remembrancer.domain.secrets import find_secrets, secret_label


def sanitize_read(text: str, *, reveal_pii: bool) -> str:
    """`text` as it may be emitted."""
    return _mask(strip_invisible(text), reveal_pii=reveal_pii)


def mask_source_prompt(text: str) -> str:
    """PII and secrets masked for everyone: what is kept of the prompt a proposal came from."""
    return _mask(text, reveal_pii=False)


def _mask(text: str, *, reveal_pii: bool) -> str:
    secrets = find_secrets(text)
    personal = () if reveal_pii else maskable(find_pii(text))
    secret_kinds = {finding.kind for finding in secrets}
    return mask(
        text,
        merge((*secrets, *personal)),
        lambda kind: secret_label(kind) if kind in secret_kinds else pii_label(kind),
    )
