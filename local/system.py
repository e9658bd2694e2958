"""The whole system, composed: PostgreSQL, functions, gateway, sign-in, review page, AWS, schedules."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from functions.manifest import FUNCTIONS, MACHINES, SCHEDULES
from layers.model.build import default_dir
from local.aws import Aws, AwsFailed
from local.directory import AGENT_CLIENT, ISSUER, PAGE_CLIENT, Directory
from local.environment import LocalValues, as_role
from local.gateway import MAX_BODY, MAX_HEAD, Gateway, refuse, unavailable
from local.http import HttpServer, Request, Response
from local.issuer import Issuer
from local.machines import Machines
from local.postgres import OWNER, PostgresError, Server
from local.proof import altered, rows_that_hold
from local.runtime import ROOT, Runtime
from local.scheduler import Scheduler
from local.seed import SeedFailed, migrate, seed
from local.site import PREFIX, Site
from local.tokens import TokenVerifier

LOCAL: Final = ROOT / ".local"
DEFAULT_PORT: Final = 8080

Progress = Callable[[str], None]


class PortTaken(Exception):
    """Another program listens on the port."""


@dataclass
class System:
    """Use as `async with running_system(...)`. Everything it keeps lies in `folder`."""

    port: int
    folder: Path = LOCAL
    progress: Progress = field(default=lambda _: None)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.directory = Directory.load(self.folder)
        self.issuer = Issuer(self.directory, time.time)
        self._postgres: Server | None = None
        self._aws = Aws(self.folder / "logs")
        self._ready = False
        self._background: asyncio.Task[None] | None = None
        self._runtime: Runtime | None = None
        self._database_url: Callable[[str], str] | None = None
        self._gateway_log: IO[str] | None = None
        self._http = HttpServer(self._serve, max_body=MAX_BODY, max_head=MAX_HEAD, refuse=refuse)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def admin_key(self) -> Path:
        """The demo admin's private signing key (Ed25519, PEM)."""
        return self.folder / "ada-key.pem"

    def token(self, who: str) -> str:
        """A fresh access token of a demo person or of the demo agent. Raises KeyError."""
        if who in self.directory.people:
            return self.issuer.person_token(who)
        return self.issuer.agent_token(who)

    def database_url(self, role: str) -> str:
        """The database as that role. Raises RuntimeError before the start."""
        if self._database_url is None:
            raise RuntimeError("not started")
        return self._database_url(role)

    def rows_that_hold(self, text: str) -> dict[str, int]:
        """Rows by table that hold the text anywhere. Raises RuntimeError for a database that is not ours."""
        if self._postgres is None:
            raise RuntimeError("only the embedded PostgreSQL is searched")
        return rows_that_hold(self._postgres.url(OWNER), text)

    def altered(self, seq: int) -> AbstractContextManager[None]:
        """A row of the audit chain, altered for a while. Raises RuntimeError for a database that is not ours."""
        if self._postgres is None:
            raise RuntimeError("only the embedded PostgreSQL is altered")
        return altered(self._postgres.url(OWNER), seq)

    @property
    def runtime(self) -> Runtime:
        """The functions. Raises RuntimeError before the start."""
        if self._runtime is None:
            raise RuntimeError("not started")
        return self._runtime

    async def start(self, *, seed_demo: bool = True) -> None:
        """Until the API answers. Raises PortTaken, PostgresError, SeedFailed."""
        try:
            # First of all, so that a second start on one port fails before it touches anything.
            await self._http.start(self.port)
        except OSError as error:
            raise PortTaken(f"port {self.port} is taken: PORT=8081 make run, for example") from error
        self.port = self._http.port
        database_url = self._database_url = await self._database()
        (self.folder / "logs").mkdir(exist_ok=True)
        self._gateway_log = (self.folder / "logs" / "gateway.log").open("a", buffering=1)
        values = LocalValues(
            database_url=database_url,
            public_bases=(self.url, f"http://127.0.0.1:{self.port}"),
            aws_endpoint=self._aws.endpoint,
            model_dir=default_dir(),
            mac_key_file=self.folder / "mac.key",
            assessor={n: value for n, value in os.environ.items() if n.startswith("REM_ASSESSOR")},
        )
        self._runtime = Runtime(FUNCTIONS, values, self.folder / "logs")
        await self._runtime.start()
        verifier = TokenVerifier(
            lambda: self.issuer.public_keys, ISSUER, self.issuer.known_clients, time.time
        )
        self._gateway = Gateway(FUNCTIONS, self.runtime.invoke, verifier, log=self._log)
        self._site = Site(ROOT / "web" / "dist", {"config.json": self._page_configuration})
        await migrate(self.runtime.invoke)
        self.progress("schema is current")
        if seed_demo:
            fresh = await seed(self.runtime.invoke, self.admin_key)
            self.progress("demo tenant seeded" if fresh else "demo tenant is there")
        self._ready = True

    def start_background(self) -> None:
        """What nobody has to wait for: warm functions, the AWS emulator with its workflows, schedules."""
        self._background = asyncio.create_task(self._run_background())

    async def stop(self) -> None:
        """Everything that was started, in reverse."""
        if self._background is not None:
            self._background.cancel()
            await asyncio.wait({self._background})
        await self._http.stop()
        if self._runtime is not None:
            await self._runtime.stop()
        await self._aws.stop()
        if self._postgres is not None:
            await asyncio.to_thread(self._postgres.stop)
        if self._gateway_log is not None:
            self._gateway_log.close()

    async def _database(self) -> Callable[[str], str]:
        given = os.environ.get("REM_DATABASE_URL")
        if given:
            try:
                as_role(given, "rem_recall")
            except ValueError as error:
                raise PostgresError(str(error)) from None
            self.progress("database is REM_DATABASE_URL")
            # The owner applies migrations; the roles that they create serve the rest.
            return lambda role: given if role == "rem_migrate" else as_role(given, role)
        server = self._postgres = Server(self.folder / "postgres")
        starting = asyncio.create_task(asyncio.to_thread(server.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await starting  # a thread cannot be cancelled, and what it starts must be stopped
            raise
        await asyncio.to_thread(server.ensure_database)
        self.progress(f"PostgreSQL {server.flavour} in {server.data_dir}")
        return server.url

    async def _run_background(self) -> None:
        # One after the other: two cores are soon busy, and somebody may be waiting for an answer.
        await self.runtime.warm(f.name for f in FUNCTIONS if f.embeds)
        self.progress("functions that embed are warm")
        await self._run_workflows()

    async def _run_workflows(self) -> None:
        try:
            await self._aws.start(self.runtime.port)
        except AwsFailed as error:
            self.progress(f"no workflows: {error}")
            return
        machines = await asyncio.to_thread(lambda: Machines(self._aws.client("stepfunctions")))
        await asyncio.to_thread(machines.create, MACHINES)
        self.progress("workflows and schedules run")
        from botocore.exceptions import BotoCoreError, ClientError

        async def call(name: str) -> None:
            done = await self.runtime.invoke(name, b"{}")
            if done.error is not None:
                raise SeedFailed(name)

        async def begin(name: str) -> None:
            await asyncio.to_thread(machines.start, name)

        scheduler = Scheduler(
            SCHEDULES,
            invoke=call,
            start=begin,
            log=self._log,
            failures=(SeedFailed, BotoCoreError, ClientError),
        )
        await scheduler.run()

    async def _serve(self, request: Request) -> Response:
        if not self._ready:
            return unavailable()
        if request.path.startswith(Issuer.PATHS):
            return await self.issuer.handle(request)
        if request.path.startswith(PREFIX) or request.path == PREFIX.rstrip("/"):
            return await self._site.handle(request)
        return await self._gateway.handle(request)

    def _page_configuration(self, request: Request) -> bytes:
        """config.json as the stack publishes it; the sign-in is on the page's own origin here."""
        host = request.header("Host") or ""
        known = (f"localhost:{self.port}", f"127.0.0.1:{self.port}")
        sign_in = f"http://{host if host in known else known[0]}"
        value = {"api": "/v1", "client_id": PAGE_CLIENT, "issuer": ISSUER, "sign_in": sign_in}
        return json.dumps(value).encode()

    def _log(self, line: str) -> None:
        if self._gateway_log is not None:
            self._gateway_log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")


@asynccontextmanager
async def running_system(system: System, *, seed_demo: bool = True) -> AsyncIterator[System]:
    """Started, and stopped again whatever happens."""
    try:
        await system.start(seed_demo=seed_demo)
        yield system
    finally:
        await system.stop()


def curl_commands(system: System) -> list[str]:
    """Three commands to paste into a shell: propose, list proposals, recall."""
    agent = f"-H 'Authorization: Bearer {system.token(AGENT_CLIENT)}'"
    reviewer = f"-H 'Authorization: Bearer {system.token('rita')}'"
    json_type = "-H 'Content-Type: application/json'"
    return [
        f"curl -sS {system.url}/v1/ingest/proposal {agent} {json_type} "
        """-H "Idempotency-Key: $(date +%s%N)" -d '{"content": "Melanie has moved to Lisbon."}'""",
        f"curl -sS {system.url}/v1/proposals {reviewer}",
        f"curl -sS {system.url}/v1/recall {agent} {json_type} "
        """-d '{"query": "Where does Melanie live?"}'""",
    ]
