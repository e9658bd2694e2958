"""What a newcomer does: start it, paste the printed commands, kill it, start it again, play the demo."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_S = 120


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`python -m local run` until it is ready; the process and the printed curl commands."""
    command = [sys.executable, "-m", "local", "--port", "0", "--folder", str(folder), "run"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process, _commands(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def _commands(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    deadline = time.monotonic() + START_S
    printed: list[str] = []
    while len([line for line in printed if line.startswith("curl ")]) < 3:
        left = deadline - time.monotonic()
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, left))
        line = process.stdout.readline() if readable else ""
        assert line, "it did not become ready:\n" + "".join(printed)
        printed.append(line)
    return [line.strip() for line in printed if line.startswith("curl ")]


def pasted(command: str) -> dict[str, object]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_the_printed_commands_work_and_data_survives_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    tmp_path.chmod(0o755)
    with running(folder) as (process, (propose, queue, recall)):
        captured = pasted(propose)
        assert captured["status"] == "pending"
        listed = pasted(queue)["proposals"]
        assert isinstance(listed, list) and listed[0]["proposal_id"] == captured["proposal_id"]
        assert pasted(recall)["hits"] == []
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    with running(folder) as (_, (_, queue, _)):
        listed = pasted(queue)["proposals"]
        assert isinstance(listed, list) and listed[0]["proposal_id"] == captured["proposal_id"]


@pytest.mark.slow
def test_the_demo_plays_the_whole_lifecycle(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    command = [sys.executable, "-m", "local", "--port", "0", "--folder", str(tmp_path), "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^(\d+)\. ", done.stdout, re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)] and len(steps) >= 14
    assert "the same bytes, and the model was not asked" in done.stdout
    assert len(re.findall(r"\b0 hits", done.stdout)) >= 2  # an unrelated question, and what was erased
    assert "verified from the first to the last" in done.stdout
