"""A model by script, behind the protocol that the `openai` assessor speaks: what a demo needs, and no more."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from local.http import HOST

MODEL: Final = "scripted"


class ScriptedModel:
    """Answers by the sentence that a request holds, in turn; without one it has nothing to say (503)."""

    def __init__(self) -> None:
        self.asked = 0
        self._answers: dict[str, list[str]] = {}
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                script.asked += 1
                said = script._next(text)
                body = b"" if said is None else json.dumps(_completion(said)).encode()
                self.send_response(503 if said is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: a request holds content."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What makes a local system ask it."""
        return {
            "REM_ASSESSOR": "openai",
            "REM_ASSESSOR_MODEL": MODEL,
            "REM_ASSESSOR_URL": f"http://{HOST}:{self._server.server_port}/v1",
        }

    def will_say(self, sentence: str, *answers: str) -> None:
        """To requests that hold the sentence, one answer after the other."""
        self._answers[sentence] = list(answers)

    def _next(self, asked: str) -> str | None:
        for sentence, answers in self._answers.items():
            if sentence in asked and answers:
                return answers.pop(0)
        return None


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
