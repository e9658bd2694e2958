"""Local servers that speak what Bedrock and OpenAI speak, and check that they are spoken to that way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import botocore.session
from botocore.validate import ParamValidator
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

CANARY = "canary-provider-5c1e"
"""In everything that a provider says beside its answer: it must reach no exception and no log."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0
    cut: bool = False
    """Closes the connection in the middle of the body."""


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


class Server:
    """One thread a request; answers with what `reply` makes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.reply: Callable[[Asked], Reply] = lambda _: Reply(500, b"")
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = Asked(unquote(self.path), dict(self.headers), body)
                server.asked.append(asked)
                reply = server.reply(asked)
                time.sleep(reply.delay_s)
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(reply.body)))
                    self.send_header("Connection", "close")  # else the next call may meet the closing
                    self.end_headers()
                    self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client waited no longer

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


_MODEL = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse")


class BedrockWire:
    """Bodies of the Converse operation, checked against botocore's model of the service."""

    name = "bedrock"
    model = "eu.example.model-v1:0"

    def check(self, asked: Asked) -> None:
        assert asked.path == f"/model/{self.model}/converse"
        report = ParamValidator().validate({"modelId": self.model, **asked.body}, _MODEL.input_shape)
        assert not report.has_errors(), report.generate_report()

    def said(self, asked: Asked) -> list[tuple[str, str]]:
        """(role, text) of the messages."""
        return [
            (message["role"], "".join(_text(part) for part in message["content"]))
            for message in asked.body["messages"]
        ]

    def reply(self, text: str, stop: str = "complete", usage: dict[str, Any] | None = None) -> Reply:
        reason = {
            "complete": "end_turn", "truncated": "max_tokens", "malformed": "malformed_model_output",
            "blocked": "guardrail_intervened",
        }.get(stop, stop)  # fmt: skip
        body = {
            "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
            "stopReason": reason,
            "usage": usage
            or {
                "inputTokens": 100,
                "outputTokens": 50,
                "totalTokens": 1150,
                "cacheReadInputTokens": 1000,
                "cacheWriteInputTokens": 0,
            },
            "metrics": {"latencyMs": 1},
        }
        if usage is None:
            report = ParamValidator().validate(body, _MODEL.output_shape)
            assert not report.has_errors(), report.generate_report()
        return Reply(200, json.dumps(body).encode())

    def error(self, status: int, code: str) -> Reply:
        headers = {"x-amzn-ErrorType": f"{code}:http://internal.example/"}
        return Reply(status, json.dumps({"message": CANARY}).encode(), headers)


def _text(part: dict[str, Any]) -> str:
    return str(part["text"] if "text" in part else part["guardContent"]["text"]["text"])


_REQUEST = TypeAdapter(CompletionCreateParamsNonStreaming)


class OpenAiWire:
    """Bodies of a chat completion, checked with the types of OpenAI's SDK."""

    name = "openai"
    model = "local-model"

    def check(self, asked: Asked) -> None:
        assert asked.path == "/v1/chat/completions"
        read = _REQUEST.validate_python(asked.body)
        assert read.keys() == asked.body.keys()

    def said(self, asked: Asked) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in asked.body["messages"][1:]]

    def reply(self, text: str | None, stop: str = "complete", usage: dict[str, Any] | None = None) -> Reply:
        reason = {
            "complete": "stop",
            "truncated": "length",
            "malformed": "tool_calls",
            "blocked": "content_filter",
        }.get(stop, stop)
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": reason,
                    "logprobs": None,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                }
            ],
            "usage": usage
            or {
                "prompt_tokens": 1100,
                "completion_tokens": 50,
                "total_tokens": 1150,
                "prompt_tokens_details": {"cached_tokens": 1000},
            },
        }  # fmt: skip
        if usage is None:
            ChatCompletion.model_validate(body, strict=True)
        return Reply(200, json.dumps(body).encode())

    def error(self, status: int, code: str) -> Reply:
        return Reply(status, json.dumps({"error": {"message": CANARY, "type": "x", "code": code}}).encode())


Wire = BedrockWire | OpenAiWire
