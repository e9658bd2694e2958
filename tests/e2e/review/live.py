"""The running local system as a test sees it: its API as any person or agent, and its database."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from local.directory import AGENT_CLIENT
from local.postgres import OWNER
from local.system import System
from remembrancer.adapters.signatures import sign_request

ROOT = Path(__file__).resolve().parents[3]
START_S = 180
WAIT_S = 20


@dataclass(frozen=True)
class Live:
    """`url` is the origin that serves API, sign-in and page."""

    system: System
    http: httpx.Client
    loop: asyncio.AbstractEventLoop
    said: list[str]
    """The progress that it told."""

    @property
    def url(self) -> str:
        return self.system.url

    @property
    def page(self) -> str:
        return f"{self.url}/review/"

    def call(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer; anything but success fails the test."""
        reply = self.http.request(
            method,
            f"{self.url}/v1{path}",
            content=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {self.system.token(who)}",
                "Content-Type": "application/json",
                "Idempotency-Key": str(uuid.uuid4()),
                **(headers or {}),
            },
        )
        assert reply.is_success, reply.text
        return reply.json()

    def sql(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """As the superuser, past every policy."""
        with psycopg.connect(
            self.system.database_url(OWNER), autocommit=True, row_factory=dict_row
        ) as connection:
            cursor = connection.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def run(self, function: str) -> None:
        """What its schedule would do."""
        done = asyncio.run_coroutine_threadsafe(self.system.runtime.invoke(function, b"{}"), self.loop)
        assert done.result(START_S).error is None, f"{function} failed"

    # What most tests begin with.

    def propose(self, content: str, **more: Any) -> str:
        answer = self.call(AGENT_CLIENT, "POST", "/ingest/proposal", {"content": content, **more})
        return str(answer["proposal_id"])

    def shown(self, proposal: str, who: str = "robin") -> dict[str, Any]:
        return dict(self.call(who, "GET", f"/proposals/{proposal}"))

    def status(self, proposal: str) -> str:
        return str(self.shown(proposal)["status"])

    def becomes(self, proposal: str, status: str) -> None:
        """Waits for it: the request is on its way."""
        deadline = time.monotonic() + WAIT_S
        while self.status(proposal) != status:
            assert time.monotonic() < deadline, f"it stays {self.status(proposal)}"
            time.sleep(0.05)

    def approve(self, proposal: str, who: str = "robin", **more: Any) -> dict[str, Any]:
        digest = self.shown(proposal, who)["content_digest"]
        body = {"content_digest": digest, **more}
        return dict(self.call(who, "POST", f"/proposals/{proposal}/approve", body))

    def edit(self, proposal: str, content: str, who: str = "robin") -> None:
        body = {
            "content_digest": self.shown(proposal, who)["content_digest"],
            "proposal": {"content": content},
        }
        self.call(who, "POST", f"/proposals/{proposal}/edit", body)

    def remember(self, content: str, **more: Any) -> str:
        """Propose and approve; the memory's id."""
        return str(self.approve(self.propose(content, **more))["memory_id"])

    def ingest(self, content: str, who: str = AGENT_CLIENT, **more: Any) -> str:
        return str(self.call(who, "POST", "/ingest", {"content": content, **more})["memory_id"])

    def due_in(self, proposal: str, seconds: float) -> None:
        self.sql(
            "update proposal set deadline = now() + %s * interval '1 second' where proposal_id = %s",
            seconds,
            uuid.UUID(proposal.removeprefix("prop_")),
        )

    def age(self, memory: str, days: int = 1) -> None:
        """Its expiry was that many days ago."""
        self.sql(
            "update memory_version set expires_at = now() - %s * interval '1 day' where memory_id = %s",
            days,
            uuid.UUID(memory.removeprefix("mem_")),
        )

    def store_is_there(self) -> None:
        """Waits for what starts in the background: the object store and the workflows."""
        deadline = time.monotonic() + START_S
        while "workflows and schedules run" not in self.said:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def multiply(self, proposal: str, copies: int) -> None:
        """Copies of a pending proposal with texts of their own, each due a minute after the one before."""
        columns = [
            row["column_name"]
            for row in self.sql(
                "select column_name from information_schema.columns where table_name = 'proposal'"
            )
        ]
        own = {
            "proposal_id": "gen_random_uuid()",
            "pending_key": "sha256(n::text::bytea)",
            "content_sha": "sha256(n::text::bytea)",
            "deadline": "deadline + n * interval '1 minute'",
            "body": "jsonb_set(body, '{content}', to_jsonb((body ->> 'content') || ' Note ' || n || '.'))",
        }
        self.sql(
            f"insert into proposal ({', '.join(columns)}) "
            f"select {', '.join(own.get(c, c) for c in columns)} from proposal, generate_series(1, %s) n "
            "where proposal_id = %s",
            copies,
            uuid.UUID(proposal.removeprefix("prop_")),
        )

    def erase_proposal(self, proposal: str) -> None:
        self.sql("delete from proposal where proposal_id = %s", uuid.UUID(proposal.removeprefix("prop_")))

    def clear(self) -> None:
        """Nothing waits, nothing is held, nothing contradicts: what earlier tests left is out of sight."""
        self.sql("delete from proposal")
        self.sql("update hold_out set closed_at = now() where closed_at is null")
        self.sql("update conflict set status = 'dismissed', closed_at = now() where status = 'open'")
        self.sql("update legal_order set released_at = now() where released_at is null")
        self.sql("update legal_hold set released_at = now() where released_at is null")
        self.sql("delete from dsar")
        self.sql("delete from idempotency")

    def register_key(self, person: str, public_key: str) -> str:
        """A browser's key, registered by the admin's signed request, and a day later: its id."""
        [own] = self.sql(
            "select k.key_id from signing_key k join principal p using (tenant_id, principal_id) "
            "where p.name = 'Ada Admin' order by k.registered_at limit 1"
        )
        [row] = self.sql("select principal_id from principal where name = %s", person)
        path = f"/principals/prin_{row['principal_id'].hex}/keys"
        body = {"algorithm": "ecdsa-p256-sha256", "public_key": public_key}
        signed = sign_request(
            method="POST",
            target_uri=f"{self.url}/v1{path}",
            body=json.dumps(body).encode(),
            key_id=own["key_id"],
            algorithm="ed25519",
            private_key=self.system.admin_key.read_bytes(),
            now=datetime.now(UTC),
        )
        key_id = str(self.call("ada", "POST", path, body, signed)["key_id"])
        self.sql("update signing_key set usable_from = now() - interval '1 minute' where key_id = %s", key_id)
        return key_id


@contextmanager
def running(folder: Path) -> Iterator[Live]:
    """What `make run` runs, on a free port with data of its own, in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(START_S)

    said: list[str] = []
    system = System(0, folder, said.append)
    try:
        wait_for(system.start())
        loop.call_soon_threadsafe(system.start_background)
        with httpx.Client(timeout=60) as http:
            yield Live(system, http, loop, said)
    finally:
        wait_for(system.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
