"""Credentials in text: where they are, and the text without them.

Provider shapes are data (`secret_rules`); what has no shape of its own is found by its name: an assignment
(`password = ...`, `"apiKey": "..."`), a command-line option, a tag, or a sentence that states it. Both are
searched in the view of `flat`, so invisible characters inside a key hide nothing. Every pattern runs in
linear time (google-re2). The rules of the maintained detector `detect-secrets` are held against these by
test; it is not imported here because its plugins load an HTTP client and backtracking patterns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import re2

from remembrancer.domain.findings import Finding, mask, merge
from remembrancer.domain.flat import flatten
from remembrancer.domain.secret_rules import RULES

_PASSWORD = rb"pass(?:word|wd|phrase|code)?|pwd|passwort|contrase(?:n|\xfe)a|mot[ _-]de[ _-]passe"
_TOKEN = (
    rb"secret|token|api[ _-]?key|access[ _-]?key|auth[ _-]?key|secret[ _-]?key|private[ _-]?key|"
    rb"signing[ _-]?key|encryption[ _-]?key|account[ _-]?key|master[ _-]?key|license[ _-]?key|app[ _-]?key|credentials?"
)
_NAME = (
    rb"(?:("
    + _PASSWORD
    + rb")|("
    + _TOKEN
    + rb"))(?:s|[_-]?\d{1,2}|[_-]?(?:key|base|value|prod|dev|live|test)){0,2}"
)
_ASSIGN = rb"\\{0,2}[\"'\]`]{0,2}\s{0,8}(?:=>|:=|={1,3}|:)\s{0,8}"
_NAME_FIRST_LETTERS = (b"pass", b"pwd", b"contrase", b"mot", b"secret", b"token", b"key", b"credential")

_QUOTED = (
    rb"(?i)"
    + _NAME
    + _ASSIGN
    + rb"(?:[bru]|os\.getenv\()?\\{0,2}[\"'`]{1,3}([^\"'`\r\n\\]{4,300})\\{0,2}[\"'`]"
)
_BARE = rb"(?i)" + _NAME + _ASSIGN + rb"([^\s\"'`,;&<>]{6,300})"
_OPTION = rb"(?i)\s--?(?:(" + _PASSWORD + rb")|(" + _TOKEN + rb"))[ =]{1,2}[\"']?([^\s\"'`;&<>]{6,300})"
_TAG = rb"(?i)<[a-z:]{0,20}(?:(" + _PASSWORD + rb")|(" + _TOKEN + rb"))>\s{0,8}([^\s<>]{6,300})\s{0,8}</"
_LOGIN = rb"(?i)\blogin\s{1,4}\S{1,80}\s{1,4}(password)()\s{1,4}(\S{4,100})"
_STATED = (
    rb"(?i)\b(?:(" + _PASSWORD + rb")|(" + _TOKEN + rb"))(?: (?:for|to|of|on) [^\n.:;=]{1,60}?)?"
    rb"(?: (?:is|was|are|to|now|ist|est|es|set|changed|reset)){1,4}:? {0,2}[\"'`]{0,2}([^\s\"'`,;<>]{6,300})"
)
_NAMED = (_QUOTED, _BARE, _OPTION, _TAG, _LOGIN)

_HARMLESS = (
    rb"(?i)^(?:[<{\[(*]|\$[{(a-z_]|%[({a-z]|@|/|\.{1,2}/|~/|x{3,}|\.{3}|https?://|arn:|projects/|file:|op://|vault:|ssm:|env[.:(\[]|"
    rb"os\.|process\.|self\.|this\.|config\.|settings\.|ctx\.|args\.|your[_-]|my[_-]|"
    rb"(?:sha|md|aes|rsa|utf|base|bcrypt|argon|pbkdf|hs|rs|es|ps|oauth|saml|ed|x)[_-]?\d|"
    rb"\d{1,4}[+-]?(?:char|digit|letter|word|byte|bit|day|week|month|hour|min|sec|time|step|year|%)|"
    rb"(?:string|str|text|none|null|nil|true|false|undefined|required|optional|password|passwd|secret|token|"
    rb"hidden|redacted|masked|removed|example|placeholder|changeme|input|number|integer|boolean)[\"').,;:!?]*$)"
)
_IDENTIFIER = rb"^[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+[.,;)]*$|^[A-Za-z_][\w.]*[(\[]"
_WORDS = rb"^[A-Za-z]?[a-z]*(?:[-_./:][A-Za-z]?[a-z]*|[-_./:][A-Z]+|[-_./:]?v?\d{1,4})*$|^[A-Z]+(?:[-_./:][A-Z]+|[-_./:]\d{1,4})*$"
_PLACEHOLDER = rb"\[redacted:[a-z0-9_:]{1,48}\]"
_PAGING = (
    b"next",
    b"page",
    b"continuation",
    b"csrf",
    b"cancel",
    b"max",
    b"sort",
    b"public",
    b"primary",
    b"foreign",
)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Disjoint credentials by position, spans in code points of `text`."""
    flat = flatten(text)
    found = [*_provider_secrets(flat.data), *_named_secrets(flat.data)]
    return merge(Finding(kind, *flat.span(start, end)) for kind, start, end in found)


def redact_secrets(text: str) -> tuple[str, tuple[Finding, ...]]:
    """`text` with `[redacted:secret:<kind>]` for each credential, and where they were."""
    findings = find_secrets(text)
    return mask(text, findings, secret_label), findings


def secret_label(kind: str) -> str:
    return f"[redacted:secret:{kind}]"


def _provider_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    lowered = data.lower()
    for rule in RULES:
        if not any(hint in lowered for hint in rule.hints):
            continue
        regex = _compiled(rule.pattern)
        group = 1 if regex.groups else 0
        for match in regex.finditer(data):
            secret = match.group(group)
            if _entropy(secret) < rule.entropy or (rule.mixed and not _mixed(secret)):
                continue
            if rule.entropy == 0.0 and group and _is_reference(secret):
                continue
            yield rule.kind, match.start(group), match.end(group)


def _named_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    lowered = data.lower()
    if not any(letters in lowered for letters in _NAME_FIRST_LETTERS):
        return
    for pattern in _NAMED:
        quoted = pattern is _QUOTED
        for match in _compiled(pattern).finditer(data):
            before = lowered[max(0, match.start() - 16) : match.start()]
            if any(word in before for word in _PAGING):
                continue
            is_password = match.start(1) >= 0
            value = match.group(3)
            if _is_password(value, quoted) if is_password else _is_token(value):
                end = match.end(3) if quoted else match.start(3) + len(_trimmed(value))
                yield ("password" if is_password else "api_key"), match.start(3), end
    for match in _compiled(_STATED).finditer(data):
        value = _trimmed(match.group(3))
        if _is_stated(value):
            kind = "password" if match.start(1) >= 0 else "api_key"
            yield kind, match.start(3), match.start(3) + len(value)


def _is_password(value: bytes, quoted: bool) -> bool:
    value = _trimmed(_compiled(_PLACEHOLDER).sub(b"", value))
    if len(value) < 6 or _is_reference(value) or (not quoted and _compiled(_IDENTIFIER).search(value)):
        return False
    if b" " in value:
        return False
    return any(byte < 0x41 or 0x5A < byte < 0x61 or 0x7A < byte < 0x80 for byte in value)


def _is_token(value: bytes) -> bool:
    value = _trimmed(_compiled(_PLACEHOLDER).sub(b"", value))
    if len(value) < 12 or b" " in value or _is_reference(value) or _compiled(_IDENTIFIER).search(value):
        return False
    return _entropy(value) >= 2.8 and not _compiled(_WORDS).search(value)


def _is_stated(value: bytes) -> bool:
    value = _trimmed(_compiled(_PLACEHOLDER).sub(b"", value))
    if len(value) < 6 or _is_reference(value) or _compiled(_WORDS).search(value):
        return False
    return any(0x30 <= byte <= 0x39 for byte in value) and any(
        chr(byte).isalpha() for byte in value if byte < 0x80
    )


def _is_reference(value: bytes) -> bool:
    """A placeholder, a variable, a path or the name of an algorithm: it stands for a secret, or for none."""
    return bool(_compiled(_HARMLESS).search(_compiled(_PLACEHOLDER).sub(b"", value))) or not value


def _trimmed(value: bytes) -> bytes:
    """Without the punctuation of the sentence around it."""
    return value.rstrip(b".,;:!?)]}")


def _entropy(value: bytes) -> float:
    """Shannon entropy in bits a byte."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _mixed(value: bytes) -> bool:
    return (
        any(0x30 <= byte <= 0x39 for byte in value)
        and any(0x41 <= byte <= 0x5A for byte in value)
        and any(0x61 <= byte <= 0x7A for byte in value)
    )


@cache
def _compiled(pattern: bytes) -> Any:
    """Compiled at first use: most texts need a few of a hundred patterns."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern, options)
