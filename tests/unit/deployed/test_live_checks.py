"""`make live` skips without credentials, and its checks tell a good answer from a bad one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from infra import live
from infra.problems import PROBLEMS
from infra.settings import load_profile


class _Stack(BaseHTTPRequestHandler):
    """A deployment that answers as the template says, unless told otherwise."""

    policy = "default-src 'none'; script-src 'self'"

    def do_GET(self) -> None:
        kinds = {"/v1/me": "UNAUTHORIZED", "/v1/no-such-path": "MISSING_AUTHENTICATION_TOKEN"}
        if self.path in kinds:
            (problem,) = [p for p in PROBLEMS if p.kind == kinds[self.path]]
            self._answer(problem.status, "application/problem+json", problem.document("c"))
        elif self.path == "/v1/health":
            self._answer(200, "application/json", {"status": "ok"})
        else:
            self._answer(200, "text/html", {})

    def _answer(self, status: int, content_type: str, body: object) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Security-Policy", self.policy)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def deployed() -> Iterator[live.Deployed]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stack)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    yield live.Deployed(load_profile("dev"), {"ApiUrl": base, "PageUrl": base}, session=None)
    server.shutdown()
    server.server_close()


HTTP_CHECKS = (
    live.health_answers_on_both_names,
    live.the_gateway_answers_with_problem_documents,
    live.the_page_is_strict,
)


def test_a_stack_as_the_template_says_passes(
    deployed: live.Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert live.run(deployed, HTTP_CHECKS) == 0
    assert capsys.readouterr().out.count("ok ") == len(HTTP_CHECKS)


def test_a_lax_page_is_told(
    deployed: live.Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_Stack, "policy", "default-src 'none'; script-src 'unsafe-inline'")
    assert live.run(deployed, HTTP_CHECKS) == 1
    assert "FAILED  the page is strict" in capsys.readouterr().out


def test_a_name_that_nobody_answers_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = live.Deployed(
        load_profile("dev"), {"ApiUrl": "http://127.0.0.1:9", "PageUrl": ""}, session=None
    )
    assert live.run(nowhere, (live.health_answers_on_both_names,)) == 1
    assert "does not answer" in capsys.readouterr().out


def test_without_credentials_it_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert live.main([]) == 0
    assert capsys.readouterr().out == "live: skipped, no AWS credentials\n"
