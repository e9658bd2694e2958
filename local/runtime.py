"""The functions' runtime: awslambdaric processes behind a Runtime API, and an Invoke front door.

What Lambda does and this does too: a process is started on first use and reused, a second one when the first
is busy; it sees the environment of the manifest and nothing of this machine's; it is killed at its deadline;
a crash fails one invocation and the next starts afresh; errors carry the handler's exception class.
What it does not do: enforce the memory size, throttle, retry asynchronous invocations.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

import psutil

from functions.manifest import Function
from local.http import HOST, HttpServer, Request, Response, json_response

ROOT: Final = Path(__file__).resolve().parents[1]
REGION: Final = "eu-central-1"
ACCOUNT: Final = "000000000000"
MAX_PAYLOAD: Final = 6_291_556
"""Bytes of a synchronous invocation's event, and of its answer."""
_INIT_S: Final = 60.0
_INVOKE = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


class UnknownFunction(KeyError):
    """No function of that name is in the manifest."""


class PayloadTooLarge(ValueError):
    """The event is above MAX_PAYLOAD."""


@dataclass(frozen=True)
class Invocation:
    """`error` is None or the value of X-Amz-Function-Error; then `payload` is the error object.

    `max_memory_mb` is the largest resident size of the process so far.
    """

    payload: bytes
    error: str | None = None
    max_memory_mb: int = 0


class Runtime:
    """All functions of the manifest. `environment` gives each its variables; logs are files by name."""

    def __init__(
        self,
        functions: Iterable[Function],
        environment: Callable[[Function], Mapping[str, str]],
        log_dir: Path,
        *,
        instances: int = 2,
        handler: str = "functions.{name}.handler.handler",
        code: tuple[Path, ...] = (ROOT, ROOT / "layers" / "core" / "python"),
    ) -> None:
        self._environment = environment
        self._log_dir = log_dir
        self._handler = handler
        self._code = code
        self._pools = {f.name: _Pool(f, self._new_instance, instances) for f in functions}
        self._server = HttpServer(self._front_door, max_body=MAX_PAYLOAD, refuse=_too_large)
        self._running: set[asyncio.Task[Invocation]] = set()

    @property
    def port(self) -> int:
        return self._server.port

    async def start(self, port: int = 0) -> None:
        """Opens the Invoke front door. No function is started yet."""
        self._log_dir.mkdir(parents=True, exist_ok=True)
        await self._server.start(port)

    async def stop(self) -> None:
        await self._server.stop()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))

    async def invoke(self, name: str, payload: bytes) -> Invocation:
        """One synchronous invocation. Raises UnknownFunction, PayloadTooLarge; a function's own failure is
        an Invocation with `error`. Who stops waiting does not stop the function."""
        if name not in self._pools:
            raise UnknownFunction(name)
        if len(payload) > MAX_PAYLOAD:
            raise PayloadTooLarge(len(payload))
        return await asyncio.shield(self._begin(name, payload))

    async def warm(self, names: Iterable[str]) -> None:
        """Starts a process of each function, one after the other, without invoking it."""
        for name in names:
            await self._pools[name].warm()

    def _begin(self, name: str, payload: bytes) -> asyncio.Task[Invocation]:
        task = asyncio.create_task(self._pools[name].invoke(payload))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _new_instance(self, function: Function) -> _Instance:
        variables = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TZ": ":UTC",
            "PYTHONPATH": os.pathsep.join(map(str, self._code)),
            "LAMBDA_TASK_ROOT": str(ROOT),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            **self._environment(function),
        }
        log = (self._log_dir / f"{function.name}.log").open("ab", buffering=0)
        return _Instance(function, self._handler.format(name=function.name), variables, log)

    async def _front_door(self, request: Request) -> Response:
        match = _INVOKE.fullmatch(request.path)
        if match is None or request.method != "POST":
            return _service_error(404, "UnknownOperationException", "only Invoke is served here")
        name = unquote(match[1]).removeprefix(function_arn(""))
        kind = request.header("X-Amz-Invocation-Type") or "RequestResponse"
        if name not in self._pools:
            return _service_error(404, "ResourceNotFoundException", f"Function not found: {name}")
        if kind == "Event":
            self._begin(name, request.body)
            return Response(202)
        done = await self.invoke(name, request.body)
        errors = () if done.error is None else (("X-Amz-Function-Error", done.error),)
        return Response(
            200,
            done.payload,
            (("Content-Type", "application/json"), ("X-Amz-Executed-Version", "$LATEST"), *errors),
        )


class _Pool:
    """The processes of one function: an idle one, else a new one, else wait for one."""

    def __init__(
        self, function: Function, new_instance: Callable[[Function], _Instance], instances: int
    ) -> None:
        self._function = function
        self._new_instance = new_instance
        self._places = asyncio.Semaphore(instances)
        self._idle: list[_Instance] = []
        self._all: set[_Instance] = set()

    async def invoke(self, payload: bytes) -> Invocation:
        async with self._places:
            instance = await self._take()
            try:
                return await instance.invoke(payload)
            finally:
                await self._give_back(instance)

    async def warm(self) -> None:
        async with self._places:
            if self._idle:
                return
            instance = await self._take()
            try:
                await instance.initialized()
            finally:
                await self._give_back(instance)

    async def close(self) -> None:
        await asyncio.gather(*(instance.close() for instance in list(self._all)))
        self._all.clear()
        self._idle.clear()

    async def _take(self) -> _Instance:
        # The last one used is the warmest.
        while self._idle:
            instance = self._idle.pop()
            if instance.alive:
                return instance
            await self._discard(instance)
        instance = self._new_instance(self._function)
        self._all.add(instance)
        await instance.start()
        return instance

    async def _give_back(self, instance: _Instance) -> None:
        if instance.alive:
            self._idle.append(instance)
        else:
            await self._discard(instance)

    async def _discard(self, instance: _Instance) -> None:
        self._all.discard(instance)
        await instance.close()


class _Instance:
    """One process with a Runtime API of its own (a port each, because the API's paths name no process)."""

    def __init__(
        self, function: Function, handler: str, variables: Mapping[str, str], log: IO[bytes]
    ) -> None:
        self._function = function
        self._handler = handler
        self._variables = variables
        self._log = log
        self._api = HttpServer(self._runtime_api)
        self._process: asyncio.subprocess.Process | None = None
        self._gone: asyncio.Task[int] | None = None
        self._events: asyncio.Queue[tuple[str, bytes, float]] = asyncio.Queue()
        self._polling = asyncio.Event()
        self._init_error: bytes | None = None
        self._answer: asyncio.Future[Invocation] | None = None
        self._request_id = ""
        self._peak_mb = 0

    @property
    def alive(self) -> bool:
        return self._gone is not None and not self._gone.done()

    async def start(self) -> None:
        await self._api.start()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "awslambdaric", self._handler),
            env={
                **self._variables,
                "_HANDLER": self._handler,
                "AWS_LAMBDA_RUNTIME_API": f"{HOST}:{self._api.port}",
            },
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C in the terminal is for us, not for them
        )
        self._gone = asyncio.create_task(self._process.wait())

    async def close(self) -> None:
        await self._kill()
        await self._api.stop(grace_s=0.0)
        self._log.close()

    async def initialized(self) -> bool:
        """Waits until the handler's module is imported. False when that failed or took too long."""
        polling = asyncio.create_task(self._polling.wait())
        try:
            await self._first_of(polling, _INIT_S)
        finally:
            polling.cancel()
        return self._polling.is_set()

    async def invoke(self, payload: bytes) -> Invocation:
        request_id = str(uuid.uuid4())
        if not await self.initialized():
            await self._kill()
            failed = self._init_error or _error_object("Runtime.InitError", "the function did not start")
            return Invocation(failed, "Unhandled")
        limit = self._function.timeout_s
        began = time.monotonic()
        self._request_id = request_id
        self._answer = asyncio.get_running_loop().create_future()
        self._events.put_nowait((request_id, payload, time.time() + limit))
        await self._first_of(self._answer, limit)
        if self._answer.done():
            answer = self._answer.result()
        elif self.alive:
            await self._kill()
            answer = Invocation(
                _error_object("Sandbox.Timedout", f"Task timed out after {limit:.2f} seconds", request_id),
                "Unhandled",
            )
        else:
            assert self._process is not None
            text = f"Runtime exited with error: exit status {self._process.returncode}"
            answer = Invocation(_error_object("Runtime.ExitError", text, request_id), "Unhandled")
        self._answer = None
        self._report(request_id, time.monotonic() - began)
        if len(answer.payload) > MAX_PAYLOAD:
            text = f"Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD} bytes)."
            answer = Invocation(_error_object("Function.ResponseSizeTooLarge", text), "Unhandled")
        return Invocation(answer.payload, answer.error, self._peak_mb)

    async def _first_of(
        self, wanted: asyncio.Future[Invocation] | asyncio.Task[bool], timeout_s: float
    ) -> None:
        """Until `wanted` is done, the process is gone or the time is over."""
        assert self._gone is not None
        await asyncio.wait({wanted, self._gone}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)

    async def _kill(self) -> None:
        if self._process is None or self._gone is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._gone

    async def _runtime_api(self, request: Request) -> Response:
        path = request.path.removeprefix("/2018-06-01/runtime/")
        if request.method == "GET" and path == "invocation/next":
            return await self._next()
        if request.method == "POST" and path == "init/error":
            self._init_error = request.body
            return json_response(202, {"status": "OK"})
        if request.method == "POST" and path == f"invocation/{self._request_id}/response":
            return self._finish(Invocation(request.body))
        if request.method == "POST" and path == f"invocation/{self._request_id}/error":
            return self._finish(Invocation(request.body, "Unhandled"))
        return json_response(404, {"errorType": "NotFound", "errorMessage": "unknown invocation or path"})

    async def _next(self) -> Response:
        self._polling.set()
        request_id, payload, deadline = await self._events.get()
        return Response(
            200,
            payload,
            (
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", request_id),
                ("Lambda-Runtime-Deadline-Ms", str(int(deadline * 1000))),
                ("Lambda-Runtime-Invoked-Function-Arn", function_arn(self._function.name)),
                ("Lambda-Runtime-Trace-Id", _trace_id()),
            ),
        )

    def _finish(self, invocation: Invocation) -> Response:
        if self._answer is None or self._answer.done():
            return json_response(400, {"errorType": "InvalidRequestID", "errorMessage": "already answered"})
        self._measure()
        self._answer.set_result(invocation)
        return json_response(202, {"status": "OK"})

    def _measure(self) -> None:
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            resident = psutil.Process(self._process.pid).memory_info().rss
            self._peak_mb = max(self._peak_mb, resident // 1_048_576)

    def _report(self, request_id: str, seconds: float) -> None:
        line = (
            f"REPORT RequestId: {request_id} Duration: {seconds * 1000:.2f} ms "
            f"Memory Size: {self._function.memory_mb} MB Max Memory Used: {self._peak_mb} MB\n"
        )
        self._log.write(line.encode())


def _trace_id() -> str:
    return f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0"


def _error_object(kind: str, message: str, request_id: str | None = None) -> bytes:
    text = message if request_id is None else f"RequestId: {request_id} Error: {message}"
    return json.dumps({"errorType": kind, "errorMessage": text}).encode()


def _service_error(status: int, kind: str, message: str) -> Response:
    return json_response(status, {"Type": "User", "Message": message}, (("X-Amzn-ErrorType", kind),))


def _too_large(status: int) -> Response:
    kind = "RequestTooLargeException" if status == 413 else "InvalidRequestContentException"
    return _service_error(status, kind, f"Request must be smaller than {MAX_PAYLOAD} bytes")
