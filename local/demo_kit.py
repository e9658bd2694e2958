"""What every step of the demo uses: the API, and how a step tells what it did."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx


class DemoFailed(Exception):
    """A step did not do what it is shown to do."""


@dataclass
class Api:
    """The API as one demo person or the agent uses it."""

    url: str
    token: Callable[[str], str]
    client: httpx.Client

    def call(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        expect: int | tuple[int, ...] = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer's JSON. Raises DemoFailed for an unexpected status."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        reply = self.client.request(
            method,
            self.url + path,
            content=content,
            headers={
                "Authorization": f"Bearer {self.token(who)}",
                "Content-Type": "application/json",
                **(headers or {}),
            },
        )
        wanted = (expect,) if isinstance(expect, int) else expect
        if reply.status_code not in wanted:
            raise DemoFailed(f"{method} {path} answered {reply.status_code}: {reply.text[:400]}")
        return reply.json()


def need(condition: bool, failure: str) -> None:
    if not condition:
        raise DemoFailed(failure)


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def say(text: str) -> None:
    print(f"   {text}", flush=True)
