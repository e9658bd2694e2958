"""A small HTTP/1.1 server on asyncio and h11: keep-alive, limits, graceful stop. All our servers use it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import h11

HOST: Final = "127.0.0.1"
_IDLE_S: Final = 75.0
_READ_S: Final = 30.0
_DRAIN_BYTES: Final = 64_000_000
"""Read on and dropped after a refusal, so that the client sees the answer and not a reset connection."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Request:
    """`target` is the path and query as sent; header names keep their case, values are Latin-1."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The last value of that name, in any case."""
        wanted = name.lower()
        return next((value for key, value in reversed(self.headers) if key.lower() == wanted), None)

    @property
    def path(self) -> str:
        return self.target.split("?", 1)[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True)
class Response:
    """Content-Length is added."""

    status: int
    body: bytes = b""
    headers: Headers = ()


def json_response(status: int, value: object, headers: Headers = ()) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Response(status, body, (("Content-Type", "application/json"), *headers))


Handler = Callable[[Request], Awaitable[Response]]
Refusal = Callable[[int], Response]
"""Makes the answer for a status that the server itself gives: 400, 413 or 431."""


def _plain_refusal(status: int) -> Response:
    return Response(status)


class HttpServer:
    """Serves one handler on the loopback interface.

    A request above `max_body` bytes, one whose request line and headers pass `max_head`, and one that is not
    HTTP are answered by `refuse`. The handler must not raise: what it raises ends the connection.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        max_body: int = 64_000_000,
        max_head: int = 65_536,
        refuse: Refusal = _plain_refusal,
    ) -> None:
        self._handler = handler
        self._max_body = max_body
        self._max_head = max_head
        self._refuse = refuse
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """Listens; `port` 0 takes a free one. Raises OSError when the port is taken."""
        self._server = await asyncio.start_server(self._serve, HOST, port, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self, grace_s: float = 5.0) -> None:
        """Stops listening, lets requests in progress end within the grace, closes every connection."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task, connection in list(self._connections.items()):
            if not connection.busy:
                task.cancel()
        if self._connections:
            _, late = await asyncio.wait(list(self._connections), timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(reader, writer, self._max_head, self._max_body)
        self._connections[task] = connection
        try:
            while self._server is not None and await self._exchange(connection):
                pass
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass  # the peer is gone, or we stop: nobody is left to tell
        finally:
            del self._connections[task]
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _exchange(self, connection: _Connection) -> bool:
        """One request and its answer; False when the connection ends."""
        try:
            request = await connection.receive()
        except _Refused as refused:
            await connection.send(self._refuse(refused.status), close=True)
            await connection.drain()
            return False
        if request is None:
            return False
        response = await self._handler(request)
        return await connection.send(response, close=self._server is None, head=request.method == "HEAD")


def _is_over(http: h11.Connection) -> bool:
    """The exchange ended and neither side wants to close."""
    return http.our_state is h11.DONE and http.their_state is h11.DONE


def _head_size(request: h11.Request) -> int:
    fields = sum(len(name) + len(value) + 4 for name, value in request.headers.raw_items())
    return len(request.method) + len(request.target) + fields


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_head: int, max_body: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._max_head = max_head
        self._max_body = max_body
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=max_head)
        self.busy = False

    async def receive(self) -> Request | None:
        self.busy = False
        event = await self._event(_IDLE_S)
        if not isinstance(event, h11.Request):
            return None
        self.busy = True
        if _head_size(event) > self._max_head:  # h11 bounds only a head that comes in pieces
            raise _Refused(431)
        declared = next((value for name, value in event.headers if name == b"content-length"), b"0")
        if int(declared) > self._max_body:
            raise _Refused(413)
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._writer.write(self._http.send(go_on) or b"")
        body = bytearray()
        while isinstance(part := await self._event(_READ_S), h11.Data):
            body += part.data
            if len(body) > self._max_body:
                raise _Refused(413)
        if not isinstance(part, h11.EndOfMessage):
            return None
        return Request(
            event.method.decode("ascii"),
            event.target.decode("latin-1"),
            tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers.raw_items()),
            bytes(body),
        )

    async def _event(self, timeout_s: float) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(timeout_s):
                    self._http.receive_data(await self._reader.read(262_144))
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint) from None
        return event

    async def send(self, response: Response, *, close: bool, head: bool = False) -> bool:
        """True when the connection can carry another request."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        body = b"" if response.status in (204, 304) else response.body
        headers = [*response.headers, ("Content-Length", str(len(body)))]
        if close:
            headers.append(("Connection", "close"))
        answer = h11.Response(
            status_code=response.status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        )
        parts = [self._http.send(answer)]
        if body and not head:
            parts.append(self._http.send(h11.Data(data=body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in parts if part))
        await self._writer.drain()
        if not _is_over(self._http):
            return False
        self._http.start_next_cycle()
        return True

    async def drain(self) -> None:
        left = _DRAIN_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                while left > 0 and (data := await self._reader.read(262_144)):
                    left -= len(data)
