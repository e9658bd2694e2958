"""Functions run as on Lambda: warm, in parallel, with their own environment, and die alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from functions.manifest import Function
from local.runtime import MAX_PAYLOAD, Invocation, PayloadTooLarge, Runtime, UnknownFunction, function_arn
from tests.integration.local.loops import STUBS, Loop

FUNCTIONS = (Function("echo", "stub", timeout_s=1, memory_mb=300), Function("broken", "stub"))


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def runtime(loop: Loop, log_dir: Path) -> Iterator[Runtime]:
    runtime = Runtime(
        FUNCTIONS, lambda f: {"REM_ONLY": f.name}, log_dir, handler="{name}.handler", code=(STUBS,)
    )
    loop.run(runtime.start())
    yield runtime
    loop.run(runtime.stop())


def invoke(loop: Loop, runtime: Runtime, **event: object) -> Invocation:
    return loop.run(runtime.invoke("echo", json.dumps(event).encode()))


def answer(invocation: Invocation) -> dict[str, object]:
    assert invocation.error is None
    value: dict[str, object] = json.loads(invocation.payload)
    return value


def fault(invocation: Invocation) -> str:
    assert invocation.error == "Unhandled"
    kind: str = json.loads(invocation.payload)["errorType"]
    return kind


def test_a_process_is_kept_and_sees_only_its_own_environment(
    loop: Loop, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REM_OF_THIS_MACHINE", "x")
    first, second = (answer(invoke(loop, runtime, text="ü\u2028")) for _ in range(2))
    assert first["pid"] == second["pid"]
    assert first["event"] == {"text": "ü\u2028"}
    assert first["request_id"] != second["request_id"]
    assert first["arn"] == function_arn("echo")
    assert 0 < int(str(first["remaining_ms"])) <= 1000
    environment = first["environment"]
    assert isinstance(environment, dict)
    assert environment["REM_ONLY"] == "echo"
    assert environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "300"
    assert "REM_OF_THIS_MACHINE" not in environment


def test_the_handlers_exception_class_reaches_the_caller(loop: Loop, runtime: Runtime) -> None:
    before = answer(invoke(loop, runtime))["pid"]
    assert fault(invoke(loop, runtime, do="raise")) == "CodedFault"
    assert answer(invoke(loop, runtime))["pid"] == before


@pytest.mark.parametrize("how", ["exit", "crash"])
def test_a_crash_fails_one_invocation_and_the_next_starts_afresh(
    loop: Loop, runtime: Runtime, how: str
) -> None:
    before = answer(invoke(loop, runtime))["pid"]
    assert fault(invoke(loop, runtime, do=how)) == "Runtime.ExitError"
    after = answer(invoke(loop, runtime))
    assert after["pid"] != before and after["count"] == 1


def test_a_process_killed_while_idle_is_replaced(loop: Loop, runtime: Runtime) -> None:
    psutil.Process(int(str(answer(invoke(loop, runtime))["pid"]))).kill()
    time.sleep(0.3)
    assert answer(invoke(loop, runtime))["count"] == 1


def test_the_deadline_kills(loop: Loop, runtime: Runtime) -> None:
    pid = int(str(answer(invoke(loop, runtime))["pid"]))
    began = time.monotonic()
    assert fault(invoke(loop, runtime, do="sleep", seconds=30)) == "Sandbox.Timedout"
    assert 1.0 <= time.monotonic() - began < 10.0
    assert not psutil.pid_exists(pid)


def test_a_module_that_cannot_be_imported_fails_every_invocation(loop: Loop, runtime: Runtime) -> None:
    for _ in range(2):
        assert fault(loop.run(runtime.invoke("broken", b"{}"))) == "RuntimeError"


def test_a_busy_function_gets_a_second_process_and_then_waits(loop: Loop, runtime: Runtime) -> None:
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(invoke, loop, runtime, do="sleep", seconds=0.2) for _ in range(4)]
    assert len({answer(job.result())["pid"] for job in jobs}) == 2


def test_sizes_are_lambdas(loop: Loop, runtime: Runtime) -> None:
    assert fault(invoke(loop, runtime, do="large", size=MAX_PAYLOAD - 1)) == "Function.ResponseSizeTooLarge"
    assert invoke(loop, runtime, do="large", size=MAX_PAYLOAD - 2).error is None
    with pytest.raises(PayloadTooLarge):
        loop.run(runtime.invoke("echo", b" " * (MAX_PAYLOAD + 1)))
    with pytest.raises(UnknownFunction):
        loop.run(runtime.invoke("echo2", b"{}"))


def test_memory_is_recorded(loop: Loop, runtime: Runtime, log_dir: Path) -> None:
    assert 5 < invoke(loop, runtime).max_memory_mb < 300
    assert "Memory Size: 300 MB Max Memory Used: " in (log_dir / "echo.log").read_text()


def test_the_front_door_speaks_lambdas_invoke(loop: Loop, runtime: Runtime) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{runtime.port}/2015-03-31/functions") as client:
        by_arn = client.post(f"/{function_arn('echo').replace(':', '%3A')}/invocations", content=b'{"a": 1}')
        assert by_arn.status_code == 200 and by_arn.json()["event"] == {"a": 1}
        assert "X-Amz-Function-Error" not in by_arn.headers
        failed = client.post("/echo/invocations", content=b'{"do": "raise"}')
        assert (failed.status_code, failed.headers["X-Amz-Function-Error"]) == (200, "Unhandled")
        assert (
            client.post(
                "/echo/invocations", headers={"X-Amz-Invocation-Type": "Event"}, content=b"{}"
            ).status_code
            == 202
        )
        unknown = client.post("/nobody/invocations", content=b"{}")
        assert (unknown.status_code, unknown.headers["X-Amzn-ErrorType"]) == (
            404,
            "ResourceNotFoundException",
        )
        assert client.post("/echo/invocations", content=b" " * (MAX_PAYLOAD + 1)).status_code == 413
