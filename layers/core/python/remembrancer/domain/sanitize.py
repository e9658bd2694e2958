"""What stored text becomes before anyone reads it, and what is kept of a source prompt."""

from __future__ import annotations

import re

from remembrancer.domain.findings import PLACEHOLDER, Finding, mask, merge
from remembrancer.domain.invisible import strip_invisible
from remembrancer.domain.markup import to_plain
from remembrancer.domain.pii import find_pii, maskable, pii_label
from remembrancer.domain.secrets import find_secrets, secret_label

WITHHELD = "[redacted:text]"
"""Instead of a text in which every masking uncovers something new."""
_ROUNDS = 8
_LINK_LABEL = re.compile(rf"({PLACEHOLDER.pattern})(?=[(\[:])")


def sanitize_read(text: str, *, reveal_pii: bool) -> str:
    """`text` as it may be emitted: no detector fires on the result, and a second pass changes nothing.

    In this order: removable invisible characters go, markup becomes plain text (`markup`), and then secrets
    and, unless `reveal_pii`, PII are masked on exactly the string that is returned.
    """
    return _masked(to_plain(strip_invisible(text)), reveal_pii=reveal_pii)


def sanitize_part(text: str, start: int, end: int, *, reveal_pii: bool) -> str:
    """`text[start:end]` as it may be emitted: withheld when the cut would show what is masked in the whole, such as
    the beginning of an address."""
    part = sanitize_read(text[start:end], reveal_pii=reveal_pii)
    return part if part in sanitize_read(text, reveal_pii=reveal_pii) else WITHHELD


def mask_source_prompt(text: str) -> str:
    """`text` with PII and secrets masked for everyone: what is stored of the prompt a proposal came from."""
    return _masked(text, reveal_pii=False)


def _masked(text: str, *, reveal_pii: bool) -> str:
    for _ in range(_ROUNDS):
        findings = _findings(text, reveal_pii=reveal_pii)
        if not findings:
            return text
        # A placeholder must not become the label of a link: `a@b.example(http://...)`.
        text = _LINK_LABEL.sub(r"\1 ", mask(text, findings, str))
    return WITHHELD


def _findings(text: str, *, reveal_pii: bool) -> tuple[Finding, ...]:
    """Findings whose kind is already the label; where both overlap it is the secret's."""
    secrets = (finding._replace(kind=secret_label(finding.kind)) for finding in find_secrets(text))
    personal = () if reveal_pii else maskable(find_pii(text))
    return merge((*secrets, *(finding._replace(kind=pii_label(finding.kind)) for finding in personal)))
