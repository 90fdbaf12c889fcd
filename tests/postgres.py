"""A real PostgreSQL server for a session of tests, or for each of its workers, with a new database for each test."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests import services

PASSWORD = "hidden-7261"  # of every user of the server, and of nobody else: no output may show it
# The user `guarded` must give the password; all others are trusted.
_ACCESS = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
_QUICK = (
    "fsync=off",
    "shared_buffers=16MB",
    "max_connections=40",
    "unix_socket_directories=",
    "log_min_messages=fatal",
)


class Server:
    """A server with a data directory of its own, which ends with this process however that ends."""

    def __init__(self, directory: Path):
        self._program = services.program(
            "postgres", untested="the PostgreSQL store", places="/usr/lib/postgresql/*/bin"
        )
        self._directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        data = directory / "data"
        data.mkdir(mode=0o700)
        self._prefix = ["setpriv", "--pdeathsig=QUIT"]
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(data, "postgres", "postgres")
            self._prefix += ["--reuid=postgres", "--regid=postgres", "--init-groups"]
        initdb = str(Path(self._program).with_name("initdb"))
        options = ["--no-sync", "--no-locale", "--encoding=UTF8", "-A", "trust", "-U", "genscope"]
        command = [*self._prefix, initdb, "-D", data, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=directory)
        (data / "pg_hba.conf").write_text(_ACCESS)
        self.start()
        self.sql(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        """Start, from a thread that lasts: the server ends with it."""
        settings = [f"--port={self.port}", *(part for name in _QUICK for part in ("-c", name))]
        command = [*self._prefix, self._program, "-D", self._directory / "data", *settings]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.sql("SELECT 1")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._directory / "log").read_text()) from None
            time.sleep(0.05)

    def stop(self) -> None:
        """End at once, as in a power cut: what runs is lost, what was committed is recovered at the next start."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)

    def kill(self) -> None:
        """SIGKILL, for the server and all that it started."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait(60)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=60)

    def sql(self, command: str, database: str = "postgres") -> list[tuple]:
        """Rows of a command, by a user who may do everything."""
        address = f"host=127.0.0.1 port={self.port} user=genscope dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def url(self, database: str, user: str = "genscope", password: str = PASSWORD) -> str:
        return f"postgresql+psycopg://{user}:{password}@127.0.0.1:{self.port}/{database}"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """The server; a test that stops it starts it again."""
    with tempfile.TemporaryDirectory(prefix="genscope-postgresql-") as name:
        Path(name).chmod(0o755)  # another user's server works below it
        server = Server(Path(name))
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgresql_url(postgresql: Server) -> str:
    """A new, empty database."""
    name = f"db{uuid.uuid4().hex}"
    postgresql.sql(f"CREATE DATABASE {name}")
    return postgresql.url(name)
