"""Credentials in text: where they are, and the text without them.

Provider shapes are data (`secret_rules`); what has no shape of its own is found by its name: an assignment
(`password = ...`, `"apiKey": "..."`), a command-line option, a tag, or a sentence that states it. Both are
searched in the view of `flat`, so invisible characters inside a key hide nothing. Every pattern runs in
linear time (google-re2). The rules of the maintained detector `detect-secrets` are held against these by
test; it is not imported here because its plugins load an HTTP client and backtracking patterns.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from remembrancer.domain.findings import PLACEHOLDER, Finding, mask, merge
from remembrancer.domain.flat import compiled, flatten
from remembrancer.domain.secret_rules import RULES, SHORT_RULES, Rule

_PASSWORD = (
    rb"pass(?:word|wd|phrase|code)|\bpwd|_pwd|passwort|contrase(?:n|\xfe)a|mot[ _-]de[ _-]passe|"
    rb"(?:[_.-]|db|smtp)pass"
)
_TOKEN = (
    rb"secret|token|credentials?|"
    rb"(?:api|app|access|auth|secret|private|signing|encryption|account|master|license)[ _-]?key"
)
_KINDS = rb"(?:(" + _PASSWORD + rb")|(" + _TOKEN + rb"))"
_NAME = rb"(?i)" + _KINDS + rb"(?:s|[_-]?\d{1,2}|[_-]?(?:key|base|value|prod|dev|live|test)){0,2}"
_ASSIGN = rb"\\{0,2}[\"'\]`]{0,2}\s{0,8}(?:=>|:=|={1,3}|:)\s{0,8}"
_HINTS = (b"pass", b"pwd", b"contrase", b"secret", b"token", b"key", b"credential")

_QUOTED = _NAME + _ASSIGN + rb"[bru]?\\{0,2}[\"'`]{1,3}([^\"'`\r\n\\]{4,300})\\{0,2}[\"'`]"
_BARE = _NAME + _ASSIGN + rb"([^\s\"'`,;&<>]{6,300})"
_OPTION = rb"(?i)(?:^|[^\w-])--?" + _KINDS + rb"[ =]{1,2}[\"']?([^\s\"'`;&<>]{6,300})"
_TAG = rb"(?i)<[a-z:]{0,20}" + _KINDS + rb">\s{0,8}([^\s<>]{6,300})\s{0,8}</"
_LOGIN = rb"(?i)\blogin\s{1,4}\S{1,80}\s{1,4}(password)()\s{1,4}(\S{4,100})"
_STATED = (
    rb"(?i)\b" + _KINDS + rb"(?: (?:for|to|of|on) [^\n.:;=]{1,60}?)?"
    rb"(?: (?:is|was|are|to|now|ist|est|es|set|changed|reset)){1,4}:? {0,2}[\"'`]{0,2}([^\s\"'`,;<>]{6,300})"
)

_HARMLESS = re.compile(
    rb"(?i)^(?:[<{\[(*]|\$[{(a-z_]|%[({a-z]|@|/|\.{1,2}/|~/|x{3,}|\.{3}|https?://|arn:|projects/|file:|op://|"
    rb"vault:|ssm:|env[.:(\[]|(?:os|process|self|this|config|settings|ctx|args)\.|(?:your|my)[_-]|"
    rb"(?:sha|md|aes|rsa|utf|base|bcrypt|argon|pbkdf|hs|rs|es|ps|oauth|saml|ed|x)[_-]?\d|"
    rb"\d{1,4}[+-]?(?:char|digit|letter|word|byte|bit|day|week|month|hour|min|sec|time|step|year|%)|"
    rb"(?:string|str|text|none|null|nil|true|false|undefined|required|optional|password|passwd|secret|token|"
    rb"hidden|redacted|masked|removed|example|placeholder|changeme|input|number|integer|boolean)"
    rb"[\"').,;:!?]*$)"
)
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+[.,;)]*$|[A-Za-z_][\w.]*[(\[]")
_LETTERS = re.compile(rb"[A-Za-z_]+$")
_WORDS = (
    rb"^[A-Za-z]?[a-z]*(?:[-_./:][A-Za-z]?[a-z]*|[-_./:][A-Z]+|[-_./:]?v?\d{1,4})*$|"
    rb"^[A-Z]+(?:[-_./:][A-Z]+|[-_./:]\d{1,4})*$"
)
_PLACEHOLDER = re.compile(PLACEHOLDER.pattern.encode())
_OTHER_KEYS = rb"(?:next|page|continuation|csrf|cancel|max|sort|public|primary|foreign)[ _-]?$|\barn:\S*$"
_LONG = rb"[\w+/=.~-]{16}"


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Disjoint credentials by position, spans in code points of `text`."""
    flat = flatten(text)
    data = _PLACEHOLDER.sub(_blank, flat.data) if b"[redacted:" in flat.data else flat.data
    found = [*_provider_secrets(data), *_named_secrets(data)]
    return merge(Finding(kind, *flat.span(start, end)) for kind, start, end in found)


def redact_secrets(text: str) -> tuple[str, tuple[Finding, ...]]:
    """`text` with `[redacted:secret:<kind>]` for each credential, and where they were."""
    findings = find_secrets(text)
    return mask(text, findings, secret_label), findings


def secret_label(kind: str) -> str:
    return f"[redacted:secret:{kind}]"


def _blank(placeholder: re.Match[bytes]) -> bytes:
    return b" " * len(placeholder[0])


def _provider_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    lowered = data.lower()
    rules = RULES if compiled(_LONG).search(data) else SHORT_RULES
    for rule in rules:
        for hint in rule.hints:
            if hint in lowered:
                yield from _matches(rule, data)
                break


def _matches(rule: Rule, data: bytes) -> Iterator[tuple[str, int, int]]:
    regex = compiled(rule.pattern)
    group = 1 if regex.groups else 0
    for match in regex.finditer(data):
        secret = match.group(group)
        if _entropy(secret) < rule.entropy or (rule.mixed and not _mixed(secret)):
            continue
        if not (rule in SHORT_RULES and _is_reference(secret)):
            yield rule.kind, match.start(group), match.end(group)


def _named_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    lowered = data.lower()
    if not any(hint in lowered for hint in _HINTS):
        return
    for pattern, is_password, is_token in _NAMED:
        for match in compiled(pattern).finditer(data):
            if compiled(_OTHER_KEYS).search(lowered[max(0, match.start() - 80) : match.start()]):
                continue
            named_password = match.start(1) >= 0
            value = _trimmed(match.group(3))
            if is_password(value) if named_password else is_token(value):
                start = match.start(3)
                yield ("password" if named_password else "api_key"), start, start + len(value)


def _is_password(value: bytes) -> bool:
    return not _IDENTIFIER.match(value) and not _LETTERS.match(value) and _is_quoted_password(value)


def _is_quoted_password(value: bytes) -> bool:
    if len(value) < 6 or b" " in value or _is_reference(value):
        return False
    return not _LETTERS.match(value) or _entropy(value) >= 3.6


def _is_token(value: bytes) -> bool:
    if len(value) < 12 or b" " in value or _is_reference(value) or _IDENTIFIER.match(value):
        return False
    entropy = _entropy(value)
    return entropy >= (4.0 if _LETTERS.match(value) else 2.8) and not compiled(_WORDS).search(value)


def _is_stated_password(value: bytes) -> bool:
    if len(value) < 6 or _is_reference(value):
        return False
    letters = sum(chr(byte).isalpha() for byte in value)
    return letters >= 2 and any(0x30 <= byte <= 0x39 for byte in value)


_NAMED: tuple[tuple[bytes, Callable[[bytes], bool], Callable[[bytes], bool]], ...] = (
    (_QUOTED, _is_quoted_password, _is_token),
    (_BARE, _is_password, _is_token),
    (_OPTION, _is_password, _is_token),
    (_TAG, _is_quoted_password, _is_token),
    (_LOGIN, _is_password, _is_token),
    (_STATED, _is_stated_password, _is_token),
)
"""Pattern (groups: password name, token name, value), and what makes the value a password or a token."""


def _is_reference(value: bytes) -> bool:
    """A placeholder, a variable, a path or the name of an algorithm: it stands for a secret, or for none."""
    return bool(_HARMLESS.match(value))


def _trimmed(value: bytes) -> bytes:
    """Without the punctuation of the sentence around it."""
    return value.rstrip(b".,;:?)]}")


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
