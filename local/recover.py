"""Operator's acts that no route does: erasures and holds after a restore, an admin when none is left, a tenant's end.

They go through the migrate function, of the local system or of a deployed stack.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from local.runtime import Invocation

PAGE: Final = 5_000
"""Tombstones or holds of one call: a function takes six megabytes."""

Event = dict[str, Any]
_HOLD: Final = (
    "hold_id", "of", "subject_digest", "memory_ids", "reason", "case_reference", "placed_at", "placed_by",
    "released_at", "released_by", "release_reason",
)  # fmt: skip
_TOMBSTONE: Final = ("tombstone_id", "mac", "erased_at", "erased_by", "reason", "job_id")


class RecoverFailed(Exception):
    """What is wrong, in words for the operator."""


def reapply_events(options: argparse.Namespace) -> list[Event]:
    """Holds before tombstones, each once. Of files, and of all `.json` files of a folder: answers of the API, and the
    objects that the machine `listing` writes.

    Raises RecoverFailed for a file that is no such listing or another tenant's, OSError.
    """
    tombstones: dict[str, Event] = {}
    holds: dict[str, Event] = {}
    for path in _files(options.files):
        for answer in _answers(path):
            if answer.get("tenant_id", options.tenant) != options.tenant:
                raise RecoverFailed(f"{path}: lists another tenant")
            for one in answer.get("tombstones", []):
                tombstones[one.get("tombstone_id")] = _only(one, _TOMBSTONE, path)
            for one in answer.get("legal_holds", []):
                hold = _only(one, _HOLD, path)
                holds[hold["hold_id"]] = _later(holds.get(hold["hold_id"]), hold)
    if not tombstones and not holds:
        raise RecoverFailed("the files list neither tombstones nor legal holds")
    events = [
        *({"legal_holds": part} for part in _parts(list(holds.values()))),
        *({"tombstones": part} for part in _parts(list(tombstones.values()))),
    ]
    return [{"action": "reapply", "tenant_id": options.tenant, **event} for event in events]


def admin_events(options: argparse.Namespace) -> list[Event]:
    """Raises RecoverFailed for a file without a public key."""
    from local.bootstrap import BootstrapFailed, read_public_key

    try:
        key = read_public_key(options.key)
    except BootstrapFailed as error:
        raise RecoverFailed(str(error)) from None
    person = {"name": options.name, "issuer": options.issuer, "subject": options.subject, "key": key}
    return [{"action": "recover_admin", "tenant_id": options.tenant, **person}]


def close_events(options: argparse.Namespace) -> list[Event]:
    return [{"action": "close_tenant", "tenant_id": options.tenant}]


async def here(invoke: Callable[[str, bytes], Awaitable[Invocation]], events: Sequence[Event]) -> int:
    """The exit code; what each call answered is printed."""
    for event in events:
        done = await invoke("migrate", json.dumps(event).encode())
        if done.error is not None:
            print(f"refused: {done.payload.decode(errors='replace')}")
            return 1
        print(done.payload.decode())
    return 0


def in_stack(stack: str, events: Sequence[Event]) -> int:
    """The same, deployed. Raises RecoverFailed."""
    import boto3

    from local.bootstrap import BootstrapFailed, invoke, outputs_of

    session = boto3.Session()
    try:
        function = outputs_of(session, stack)["MigrateFunction"]
        for event in events:
            print(json.dumps(invoke(session, function, event)))
    except BootstrapFailed as error:
        raise RecoverFailed(str(error)) from None
    return 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.json"))
        else:
            yield path


def _later(one: Event | None, other: Event) -> Event:
    """An order that was listed twice, as it stood last; with all its memories, of which an erasure may have taken some
    from the later listing."""
    if one is None:
        return other
    last = other if other["released_at"] is not None else one
    return {**last, "memory_ids": sorted({*one["memory_ids"], *other["memory_ids"]})}


def _answers(path: Path) -> Iterator[Mapping[str, Any]]:
    """One JSON object a line, or one alone over many lines."""
    text = path.read_text(encoding="utf-8")
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            raise RecoverFailed(f"{path}: not JSON at character {at}") from None
        if not isinstance(value, dict):
            raise RecoverFailed(f"{path}: not an answer of the API")
        yield value


def _only(entry: Mapping[str, Any], names: Sequence[str], path: Path) -> Event:
    missing = [name for name in names if name not in entry]
    if missing:
        raise RecoverFailed(f"{path}: an entry has no {', '.join(missing)}")
    return {name: entry[name] for name in names}


def _parts(entries: list[Event]) -> Iterator[list[Event]]:
    for start in range(0, len(entries), PAGE):
        yield entries[start : start + PAGE]
