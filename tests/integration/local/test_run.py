"""`python -m local run` as a person meets it: real functions, real tokens, stopped, killed, started twice."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from local.environment import LocalValues, as_role
from local.postgres import Server
from local.runtime import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class Run:
    """One `python -m local run`; `lines` is what it printed."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local", "--port", str(port), "--folder", str(folder), "run"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, text: str, timeout_s: float = 90) -> str:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for line in self.lines:
                if text in line:
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"{text!r} was not printed:\n" + "\n".join(self.lines))

    @property
    def url(self) -> str:
        return self.wait_for("API ").split()[1].removesuffix("/v1")

    def curl(self, number: int) -> str:
        """The command as printed."""
        self.wait_for("/v1/recall")
        return [line for line in self.lines if line.startswith("curl ")][number]

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join(10)
        return code


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rem run ") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path / "local"
        Server(path / "local" / "postgres").destroy()


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(port: int = 0) -> Run:
        runs.append(Run(folder, port))
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()
        run.process.wait()


def paste(command: str) -> str:
    """Through a shell, as a person does."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_the_whole_life_of_a_run(start: Callable[..., Run], folder: Path) -> None:
    first = start()
    assert httpx.get(f"{first.url}/v1/health").json() == {"status": "ok"}
    proposed = re.search(r'"proposal_id":"(prop_\w+)"', paste(first.curl(0)))
    assert proposed is not None
    assert proposed[1] in paste(first.curl(1))
    assert '"hits":' in paste(first.curl(2))

    taken = start(int(first.url.rsplit(":", 1)[1]))
    assert taken.process.wait(30) == 1
    taken._reader.join(10)
    assert taken.lines[-1].startswith("error: port ") and len(taken.lines) == 1

    # A second one shares the database and outlives the first, which is killed.
    second = start()
    assert proposed[1] in paste(second.curl(1))
    orphans = first.family()
    assert len(orphans) >= 3
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    _, left = psutil.wait_procs(orphans, timeout=20)
    assert left == []
    assert proposed[1] in paste(second.curl(1))

    running = second.family()
    second.wait_for("workflows and schedules run")
    assert second.end() == 0
    _, left = psutil.wait_procs(running, timeout=10)
    assert left == [] and not (folder / "postgres" / "postmaster.pid").exists()

    # What was committed is there after all that, and nothing was seeded twice.
    third = start()
    third.wait_for("demo tenant is there")
    assert proposed[1] in paste(third.curl(1))
    assert third.end(signal.SIGTERM) == 0
    for secret in ("identity.json", "mac.key", "ada-key.pem"):
        assert (folder / secret).stat().st_mode & 0o077 == 0


def test_a_broken_data_folder_is_one_line(start: Callable[..., Run], folder: Path) -> None:
    (folder / "postgres").mkdir(parents=True)
    (folder / "postgres" / "PG_VERSION").write_text("9.6\n")
    run = start()
    assert run.process.wait(60) == 1
    run._reader.join(10)
    assert len(run.lines) == 1 and "was made by PostgreSQL 9.6" in run.lines[0]


def test_a_url_becomes_another_roles() -> None:
    assert as_role("postgresql://me:p%40ss@db:5432/x?a=b", "rem_recall") == (
        "postgresql://rem_recall:p%40ss@db:5432/x?a=b"
    )
    assert as_role("postgresql://me@%2Frun%2Fpg/x", "rem_audit") == "postgresql://rem_audit@%2Frun%2Fpg/x"
    with pytest.raises(ValueError):
        as_role("postgresql://db/x", "rem_recall")


def test_a_function_with_reach_gets_no_database(tmp_path: Path) -> None:
    from functions.manifest import FUNCTIONS
    from infra.environment import names_for

    values = LocalValues(
        lambda role: f"postgresql://{role}@x/y", ("http://a",), "http://b", tmp_path, tmp_path
    )
    for function in FUNCTIONS:
        given = values(function)
        assert ("REM_DATABASE_URL" in given) == (function.network == "vpc")
        assert ("REM_MAC_KEY_FILE" in given) == ("REM_KMS_MAC_KEY" in names_for(function))
        if function.db_role:
            assert given["REM_DATABASE_URL"] == f"postgresql://{function.db_role}@x/y"
