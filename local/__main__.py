"""`python -m local COMMAND`: `--help` lists them."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from local import recover
from local.postgres import OWNER, PostgresError, Server
from local.proof import scrub
from local.seed import SeedFailed
from local.system import DEFAULT_PORT, LOCAL, PortTaken, System, curl_commands, running_system

_BEGAN = psutil.Process().create_time()


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.act(options)
    except asyncio.CancelledError:
        return 0  # told to stop, and stopped
    except (PostgresError, PortTaken, SeedFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description="Remembrancer on one machine")
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("PORT") or DEFAULT_PORT),
        help=f"of the API and the review page; default PORT or {DEFAULT_PORT}, 0 takes a free one",
    )
    parser.add_argument("--folder", type=Path, default=LOCAL, help="where data, keys and logs are kept")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, act, text in (
        ("run", _run, "start everything and stay until Ctrl-C"),
        ("migrate", _migrate, "apply the migrations"),
        ("bootstrap", _bootstrap, "apply the migrations and seed the demo tenant"),
        ("decay-report", _decay_report, "write what has decayed and what soon will, as pages"),
        ("clean", _clean, "stop the database and remove its data"),
    ):
        commands.add_parser(name, help=text).set_defaults(act=act)
    demo = commands.add_parser("demo", help="play the whole lifecycle on a conversation")
    demo.add_argument("--data", type=Path, help="a conversation file; a small one of our own by default")
    demo.set_defaults(act=_demo)
    commands.add_parser(
        "scrub", help="after an erasure: what the database files keep of deleted rows goes, too"
    ).set_defaults(act=_scrub)
    reapply = commands.add_parser(
        "reapply", help="after a restore: erase again what newer tombstones name, and put newer holds back"
    )
    reapply.add_argument(
        "files",
        type=Path,
        nargs="+",
        help="files or folders: what the machine `listing` wrote, or answers of GET /v1/tombstones and /v1/legal-holds",
    )
    reapply.set_defaults(act=_recover, events=recover.reapply_events)
    admin = commands.add_parser("recover-admin", help="a person who is admin, when none is left")
    admin.add_argument("--name", required=True)
    admin.add_argument("--issuer", required=True)
    admin.add_argument("--subject", required=True)
    admin.add_argument("--key", type=Path, required=True, help="the public key (PEM) that signs in 24 hours")
    admin.set_defaults(act=_recover, events=recover.admin_events)
    close = commands.add_parser("close-tenant", help="the end of an offboarding")
    close.set_defaults(act=_recover, events=recover.close_events)
    for command in (reapply, admin, close):
        command.add_argument(
            "--tenant", required=True, help="the tenant's id, as alerts and the audit export show it"
        )
        command.add_argument(
            "--stack", help="of a deployment, with your AWS credentials; the local system without"
        )
    token = commands.add_parser("token", help="print an access token")
    token.add_argument("who", help="rita, robin, avery, ada or demo-agent")
    token.set_defaults(act=_token)
    audit = commands.add_parser(
        "audit-verify", help="verify an export of an audit chain, without the database"
    )
    audit.add_argument("export", type=Path, help="JSON lines of GET /v1/audit/export, pages end to end")
    audit.add_argument("--checkpoint", type=Path, action="append", default=[], help="a stored checkpoint")
    audit.add_argument("--key", type=Path, help="public key (PEM) that signed the checkpoints")
    audit.set_defaults(act=_audit_verify)
    certificate = commands.add_parser(
        "dsar-verify", help="verify a certificate against an export of the chain, without the database"
    )
    certificate.add_argument("certificate", type=Path, help="the answer of GET /v1/dsar/{id}/certificate")
    certificate.add_argument("export", type=Path, help="JSON lines of GET /v1/audit/export, pages end to end")
    certificate.add_argument(
        "--tombstones",
        type=Path,
        action="append",
        default=[],
        help="answers of GET /v1/tombstones: those of the certificate must be among them",
    )
    certificate.add_argument(
        "--checkpoint", type=Path, action="append", default=[], help="a stored checkpoint"
    )
    certificate.add_argument("--key", type=Path, help="public key (PEM) that signed the checkpoints")
    certificate.set_defaults(act=_dsar_verify)
    return parser


def _say(text: str) -> None:
    print(f"{time.time() - _BEGAN:6.1f} s  {text}", flush=True)


def _run(options: argparse.Namespace) -> int:
    async def stay(system: System) -> int:
        _say("ready")
        commands = "\n\n".join(curl_commands(system))
        print(
            f"\nAPI          {system.url}/v1\nReview page  {system.url}/review/\n\n{commands}\n", flush=True
        )
        system.start_background()
        await asyncio.Event().wait()
        return 0

    return asyncio.run(_with_system(options, stay))


def _migrate(options: argparse.Namespace) -> int:
    return asyncio.run(_with_system(options, _nothing_more, seed_demo=False))


def _bootstrap(options: argparse.Namespace) -> int:
    return asyncio.run(_with_system(options, _nothing_more))


def _decay_report(options: argparse.Namespace) -> int:
    decay_report = importlib.import_module("local.decay_report")

    async def report(system: System) -> int:
        folder = system.folder / "reports"
        for page in await asyncio.to_thread(decay_report.write, system.database_url("rem_upkeep"), folder):
            print(page)
        return 0

    options.port = 0
    return asyncio.run(_with_system(options, report))


def _demo(options: argparse.Namespace) -> int:
    """Plays in a database of its own, made afresh: what it shows does not depend on an earlier run."""
    demo = importlib.import_module("local.demo")
    decay_report = importlib.import_module("local.decay_report")
    model = importlib.import_module("local.scripted_model").ScriptedModel()
    os.environ.update(model.environment)
    options.folder = options.folder / "demo"
    Server(options.folder / "postgres").destroy()

    async def play(system: System) -> int:
        system.start_background()  # long work and remembering are workflows
        code: int = await asyncio.to_thread(
            demo.play,
            system.url,
            system.token,
            system.admin_key,
            options.data,
            system.rows_that_hold,
            model,
            system.altered,
        )
        folder = system.folder / "reports"
        for page in await asyncio.to_thread(decay_report.write, system.database_url("rem_upkeep"), folder):
            print(f"\nThe decay report, to open in a browser: {page.resolve().as_uri()}")
        return code

    return asyncio.run(_with_system(options, play))


def _token(options: argparse.Namespace) -> int:
    try:
        print(System(port=0, folder=options.folder).token(options.who))
    except KeyError:
        print(f"error: nobody is called {options.who}", file=sys.stderr)
        return 1
    return 0


def _audit_verify(options: argparse.Namespace) -> int:
    audit = importlib.import_module("local.audit_verify")
    try:
        code: int = audit.audit_verify(options.export, options.checkpoint, options.key)
    except (OSError, audit.Unverifiable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return code


def _dsar_verify(options: argparse.Namespace) -> int:
    dsar = importlib.import_module("local.dsar_verify")
    audit = importlib.import_module("local.audit_verify")
    try:
        code: int = dsar.dsar_verify(
            options.certificate, options.export, options.tombstones, options.checkpoint, options.key
        )
    except (OSError, audit.Unverifiable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return code


def _recover(options: argparse.Namespace) -> int:
    """Through the migrate function, here or deployed: no route does any of this."""
    try:
        events = options.events(options)
        if options.stack is not None:
            return recover.in_stack(options.stack, events)
    except (recover.RecoverFailed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options.port = 0

    async def run(system: System) -> int:
        return await recover.here(system.runtime.invoke, events)

    return asyncio.run(_with_system(options, run, seed_demo=False))


def _scrub(options: argparse.Namespace) -> int:
    with Server(options.folder / "postgres") as server:
        scrub(server.url(OWNER))
    return 0


def _clean(options: argparse.Namespace) -> int:
    Server(options.folder / "postgres").destroy()
    return 0


async def _nothing_more(system: System) -> int:
    return 0


async def _with_system(
    options: argparse.Namespace, work: Callable[[System], Awaitable[int]], *, seed_demo: bool = True
) -> int:
    """Ctrl-C and SIGTERM cancel the work and stop what was started; a second Ctrl-C does not wait."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def stop() -> None:
        print("stopping", flush=True)
        loop.add_signal_handler(signal.SIGINT, os._exit, 130)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    async with running_system(System(options.port, options.folder, _say), seed_demo=seed_demo) as system:
        return await work(system)


if __name__ == "__main__":
    sys.exit(main())
