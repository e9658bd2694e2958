"""The demo's imports and exports: a folder of Markdown, a round trip of UMP records, what decays."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from local.demo_kit import Api, DemoFailed, need, say

WAIT_S = 900
"""The schedule finds a job that nobody could be woken for, after ten minutes."""


def import_folder(api: Api, folder: Path) -> None:
    """Every file under its own source; the second time nothing is new, and a changed file changes what changed."""
    files = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}
    files["journal.md"] = _journal()
    began = time.monotonic()
    parts = 0
    for name, text in files.items():
        said = _import(api, name, text, _progress_of(name))
        parts += len(said["items"])
        need(_statuses(said)["stored"] == len(said["items"]), f"{name} was not stored whole")
        say(f"{name}: {_told(said)}")
    say(f"{parts} parts of {len(files)} files in {time.monotonic() - began:.1f} s")
    again = sum((_statuses(_import(api, name, text)) for name, text in files.items()), Counter[str]())
    need(again["duplicate"] == parts, "the second import was not known")
    say(f"again, unchanged: {parts} parts known, none stored")
    text = files["garden.md"].replace("minutes = 25", "minutes = 30")
    changed = _import(api, "garden.md", text)
    need(_statuses(changed)["stored"] == len(changed["retired"]) == 1, "the diff is not one part")
    say(f"garden.md with another timer: {_told(changed)}, {len(changed['retired'])} retired")


def _progress_of(name: str) -> Callable[[int, int], None]:
    return lambda done, total: say(f"   {name}: {done} of {total}")


def _journal() -> str:
    """More than one request may carry at once: it becomes a job."""
    entries = (
        f"## Day {day}\n\nOn day {day} the barrel held {40 + day * 7 % 50} litres.\n" for day in range(1, 91)
    )
    return "# The rain journal\n\n" + "\n".join(entries)


def _import(
    api: Api, name: str, text: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """What became of one file: the answer, or the result of the job it became."""
    body = {
        "content": text,
        "source_uri": f"notes/{name}",
        "revision": hashlib.sha256(text.encode()).hexdigest()[:12],
        "domain": "notes",
    }
    answer: dict[str, Any] = api.call(
        "demo-agent", "POST", "/v1/ingest/markdown", body, expect=(200, 201, 202)
    )
    return _finished(api, "demo-agent", answer, progress)["result"] if "job_id" in answer else answer


def _finished(
    api: Api,
    who: str,
    answer: dict[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Any:
    """The job when it is done, its progress told on the way."""
    until = time.monotonic() + WAIT_S
    shown = -1
    while time.monotonic() < until:
        job = api.call(who, "GET", f"/v1/jobs/{answer['job_id']}")
        if job["done"] != shown:
            shown = job["done"]
            progress(shown, job["total"])
        if job["status"] != "working":
            need(job["status"] == "done", f"the job failed: {job['failure']}")
            return job
        time.sleep(0.3)
    raise DemoFailed("the job did not end in time")


def _statuses(said: dict[str, Any]) -> Counter[str]:
    return Counter(item["status"] for item in said.get("items", []))


def _told(said: dict[str, Any]) -> str:
    return ", ".join(f"{n} {status}" for status, n in sorted(_statuses(said).items()))


def round_trip(api: Api) -> None:
    """Robin, who sees personal data, takes a domain out, puts it into the own space, and takes it out again."""
    for text in (
        "Dana plays the cello in a quartet that rehearses on Thursdays.",
        "The quartet's scores are kept in the blue cabinet.",
        "Dana can be reached at dana@example.org.",
    ):
        body = {"content": text, "domain": "portable", "data_subjects": ["Dana"]}
        api.call("demo-agent", "POST", "/v1/ingest", body, expect=(200, 201))
    records = _bundle(api, ["team_shared"])
    say(f"{len(records)} records, the first: {json.dumps(records[0], ensure_ascii=False)[:110]}…")
    taken = api.call(
        "robin", "POST", "/v1/ingest/ump", {"records": records, "target_space": "private"}, expect=(200, 201)
    )
    need(not taken["refused"] and len(taken["items"]) == len(records), "a record was not taken back")
    back = _bundle(api, ["private"])
    need(_without_scope(back) == _without_scope(records), "what came back is not what left")
    say(f"imported into Robin's own space and exported again: {len(back)} records, the same byte for byte")


def _bundle(api: Api, spaces: list[str]) -> list[dict[str, Any]]:
    asked = api.call(
        "robin",
        "POST",
        "/v1/export",
        {"format": "ump", "domains": ["portable"], "spaces": spaces},
        expect=202,
    )
    link = _finished(api, "robin", asked)["link"]
    return [json.loads(line) for line in httpx.get(link, timeout=30).raise_for_status().text.splitlines()]


def _without_scope(records: Iterable[dict[str, Any]]) -> list[str]:
    """Where it lies is what was changed."""
    return sorted(
        json.dumps({name: value for name, value in record.items() if name != "scope"}, sort_keys=True)
        for record in records
    )


def decay(api: Api) -> None:
    """One memory that is over in a moment, one that will be within the month; the report lists both."""
    now = datetime.now(UTC)
    soon, later = now + timedelta(seconds=2), now + timedelta(days=10)
    gone = _expiring(api, "The guest password of the demo changes in a moment.", soon)
    _expiring(api, "The demo's parking permit is valid for ten days.", later)
    time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.1)
    listed = api.call("robin", "GET", "/v1/decayed")["memories"]
    need(gone in [row["memory_id"] for row in listed], "what is over is not listed")
    missing = api.call("demo-agent", "GET", f"/v1/memories/{gone}", expect=404)
    say(
        f"asked for by id: {missing['status']} {missing['code']}; listed for reviewers, to renew or to let go"
    )


def _expiring(api: Api, text: str, at: datetime) -> str:
    body = {"content": text, "expires_at": at.isoformat()}
    memory: str = api.call("demo-agent", "POST", "/v1/ingest", body, expect=(200, 201))["memory_id"]
    return memory
