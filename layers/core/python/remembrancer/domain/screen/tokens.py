"""Words and the few punctuation marks that matter."""

from __future__ import annotations

import re
from dataclasses import dataclass

URL = "<url>"
BREAK = "."

_TOKEN = re.compile(
    r"(?:https?|ftp|wss?)://[^\s<>\"'`]+|www\.[^\s<>\"'`]+"
    r"|[^\W_]+(?:'[^\W\d_]{1,3}(?![^\W_]))?"
    r"|(?<=\w)\.(?:com|net|org|xyz|io|info|biz|top|site|online|shop|ru|cn|co|app|dev|club|click|link|live|ly|me|tk)\b"
    r"|[.!?]+(?=[\s\"')\]}*]|\Z)|;(?=\s)|\n[ \t]*\n\s*|\n"
    r"|(?<=\w) ?@ ?(?=\w)|:|[\"'`<>\[\]()]"
)
_URL_STARTS = ("http://", "https://", "ftp://", "ws://", "wss://", "www.")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token texts with their spans in the text they were cut from."""

    words: list[str]
    starts: list[int]
    ends: list[int]


def split(text: str) -> list[str]:
    """Token texts only: the fast path, for text in which nothing will be found."""
    return _TOKEN.findall(text)


def tokenize(text: str) -> Tokens:
    """Tokens of a folded text with their spans. Linear."""
    tokens = Tokens([], [], [])
    append_tokens(tokens, text, 0, len(text))
    return tokens


def append_tokens(tokens: Tokens, text: str, start: int, end: int) -> None:
    """Append the tokens of `text[start:end]`, spans counted in `text`."""
    found = list(_TOKEN.finditer(text, start, end))
    tokens.words.extend([token.group() for token in found])
    tokens.starts.extend([token.start() for token in found])
    tokens.ends.extend([token.end() for token in found])


def kind(token: str) -> str:
    """The name under which phrases know a token that is not a plain word; "" for a word."""
    first = token[0]
    if first.isalnum():
        return URL if token.startswith(_URL_STARTS) else ""
    if first in ".!?;":
        return "<domain>" if token[-1].isalpha() else BREAK
    if first == "\n":
        return BREAK if token.count("\n") > 1 else "<line>"
    if "@" in token:
        return "<at>"
    return {":": "<colon>", '"': "<quote>", "'": "<quote>", "`": "<quote>"}.get(first, "<bracket>")
