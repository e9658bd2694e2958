"""`python -m local COMMAND`: run, demo, migrate, bootstrap, token, clean."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from local.postgres import PostgresError, Server
from local.seed import SeedFailed
from local.system import DEFAULT_PORT, LOCAL, PortTaken, System, curl_commands, running_system

_BEGAN = time.monotonic()


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.act(options)
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
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, act, text in (
        ("run", _run, "start everything and stay until Ctrl-C"),
        ("migrate", _migrate, "apply the migrations"),
        ("bootstrap", _migrate, "apply the migrations and seed the demo tenant"),
        ("clean", _clean, "stop the database and remove its data"),
    ):
        commands.add_parser(name, help=text).set_defaults(act=act)
    demo = commands.add_parser("demo", help="play the whole lifecycle on a conversation")
    demo.add_argument("--data", type=Path, help="a conversation file; a small one of our own by default")
    demo.set_defaults(act=_demo)
    token = commands.add_parser("token", help="print an access token")
    token.add_argument("who", help="rita, robin, avery, ada or demo-agent")
    token.set_defaults(act=_token)
    return parser


def _say(text: str) -> None:
    print(f"{time.monotonic() - _BEGAN:6.1f} s  {text}", flush=True)


def _run(options: argparse.Namespace) -> int:
    async def stay(system: System) -> int:
        _say("ready")
        commands = "\n\n".join(curl_commands(system))
        print(
            f"\nAPI          {system.url}/v1\nReview page  {system.url}/review/\n\n{commands}\n", flush=True
        )
        await _until_told_to_stop()
        print("stopping", flush=True)
        return 0

    return asyncio.run(_with_system(options.port, stay))


def _migrate(options: argparse.Namespace) -> int:
    async def nothing_more(system: System) -> int:
        return 0

    return asyncio.run(_with_system(0, nothing_more))


def _demo(options: argparse.Namespace) -> int:
    from local import demo

    async def play(system: System) -> int:
        return await asyncio.to_thread(demo.play, system.url, system.token, system.admin_key, options.data)

    return asyncio.run(_with_system(options.port, play))


def _token(options: argparse.Namespace) -> int:
    try:
        print(System(port=0).token(options.who))
    except KeyError:
        print(f"error: nobody is called {options.who}", file=sys.stderr)
        return 1
    return 0


def _clean(options: argparse.Namespace) -> int:
    Server(LOCAL / "postgres").destroy()
    return 0


async def _with_system(port: int, work: Callable[[System], Awaitable[int]]) -> int:
    async with running_system(System(port, progress=_say)) as system:
        return await work(system)


async def _until_told_to_stop() -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await told.wait()


if __name__ == "__main__":
    sys.exit(main())
