"""The demo's last steps: a person asks for their data and to be forgotten, and somebody alters the audit chain."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from local.demo_kit import Api, DemoFailed, need, say
from remembrancer.adapters.signatures import sign_request

SUBJECT: Final = "Nadia Brandt"
_WAIT_S: Final = 120


def signed(
    api: Api, admin_key: Path, path: str, body: Mapping[str, Any], expect: int | tuple[int, ...] = 200
) -> Any:
    """A request that Ada signs."""
    key_id = next(
        p["key_ids"][0] for p in api.call("ada", "GET", "/v1/principals")["principals"] if p["key_ids"]
    )
    headers = sign_request(
        method="POST",
        target_uri=f"{api.url}{path}",
        body=json.dumps(body, ensure_ascii=False).encode(),
        key_id=key_id,
        algorithm="ed25519",
        private_key=admin_key.read_bytes(),
        now=datetime.now(UTC),
    )
    return api.call("ada", "POST", path, body, expect=expect, headers=headers)


def answer_subject(api: Api, admin_key: Path, rows_that_hold: Callable[[str], Mapping[str, int]]) -> None:
    """Registered with its deadline, bundled, erased, certified."""
    for text, space in (
        (f"{SUBJECT} prefers the early train to Utrecht.", "team_shared"),
        (f"{SUBJECT} is planning a surprise party in May.", "private"),
    ):
        api.call(
            "demo-agent", "POST", "/v1/ingest",
            {"content": text, "data_subjects": [SUBJECT], "target_space": space}, expect=(200, 201),
        )  # fmt: skip
    api.call(
        "demo-agent", "POST", "/v1/ingest/proposal",
        {"content": f"{SUBJECT} may move to Ghent.", "data_subjects": [SUBJECT]}, expect=(200, 201),
    )  # fmt: skip
    whom = {"jurisdiction": "gdpr", "data_subject": SUBJECT.upper(), "dry_run": False}
    registered = signed(api, admin_key, "/v1/dsar", {"action": "register", **whom}, 201)
    say(f"registered: due {registered['deadline'][:10]}, alerts go out before; no name is kept of it")
    begun = signed(api, admin_key, "/v1/dsar", {"action": "both", **whom}, 202)
    done = _finished(api, begun["dsar_id"])
    data = _bundle(api, done["link"])
    need(len(data["memories"]) == 2 and len(data["proposals"]) == 1, "the bundle is not whole")
    say(
        f"a bundle of {len(data['memories'])} memories, one of them private, and {len(data['proposals'])} capture: "
        "data.json and readable.html, for the admin who asked, for five minutes a link"
    )
    left = rows_that_hold(SUBJECT)
    need(not left, f"bytes are left in {', '.join(left)}")
    say("then erased; a search of every row of every table for the name: 0 hits")
    answer = api.call("ada", "GET", f"/v1/dsar/{begun['dsar_id']}/certificate")
    need(answer["valid"], "the certificate does not verify")
    root = answer["certificate"]["tombstones"]
    say(
        f"certificate {answer['digest'][:16]}…: {root['count']} tombstones, root {root['root'][:16]}…, "
        f"witnessed by row {answer['recorded']['seq']} of the chain"
    )
    closed = api.call("ada", "GET", f"/v1/dsar/{registered['dsar_id']}")
    need(closed["status"] == "done", "what was registered is still open")


def tamper(api: Api, altered: Callable[[int], AbstractContextManager[None]]) -> None:
    """Somebody with the database's superuser changes one row of the past; it is found, and where."""
    chain = api.call("avery", "GET", "/v1/audit/verify")
    need(chain["ok"], "the chain does not verify")
    victim = chain["events"] // 2
    with altered(victim):
        found = api.call("avery", "GET", "/v1/audit/verify")
        need(not found["ok"], "the alteration was not found")
        fault = found["faults"][0]
        need(fault["seq"] == victim, "the alteration was not located")
        say(
            f"row {victim} of {chain['events']} is altered in the table itself: {fault['kind']} at row {fault['seq']}"
        )
    again = api.call("avery", "GET", "/v1/audit/verify")
    need(again["ok"], "the chain does not verify after the row was put back")
    say(f"the row is put back: whole again, {again['events']} events, with the report of what was found")


def _finished(api: Api, request: str) -> Any:
    over = time.monotonic() + _WAIT_S
    while time.monotonic() < over:
        shown = api.call("ada", "GET", f"/v1/dsar/{request}")
        if shown["status"] != "working":
            need(shown["status"] == "done", f"the request failed: {shown['failure']}")
            return shown
        time.sleep(0.5)
    raise DemoFailed("the request did not end in time")


def _bundle(api: Api, link: str | None) -> dict[str, Any]:
    need(link is not None, "there is no link to the bundle")
    reply = api.client.get(str(link))
    if reply.status_code != 200:
        raise DemoFailed(f"the link answered {reply.status_code}")
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        document: dict[str, Any] = json.loads(archive.read("data.json"))
    return document
