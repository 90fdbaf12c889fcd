"""The store's contract against a real PostgreSQL server, which the test makes and stops."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

from genscope.lab import Store
from tests.lab.store_contract import StoreContract, records, trials

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: the PostgreSQL store is NOT tested")


def binary(name):
    found = shutil.which(name) or next(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    if found is None:
        pytest.skip(f"{name} is not installed: the PostgreSQL store is NOT tested")
    return found


@pytest.fixture(scope="session")
def server():
    initdb, pg_ctl = binary("initdb"), binary("pg_ctl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as base:
        directory = Path(base) / "data"
        directory.mkdir(mode=0o700)
        prefix = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            Path(base).chmod(0o755)
            shutil.chown(directory, "postgres", "postgres")
            prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": base}
        subprocess.run([*prefix, initdb, "-D", directory, "-A", "trust", "-U", "genscope"], **quiet)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        control = [*prefix, pg_ctl, "-D", str(directory), "-w", "-l", str(directory / "log")]
        subprocess.run([*control, "-o", options, "start"], **quiet)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)


@pytest.fixture
def address(server):
    """A new, empty database."""
    name = f"db{uuid.uuid4().hex}"
    with psycopg.connect(f"postgresql://genscope@{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://genscope:hidden@{server}/{name}"


class TestPostgresql(StoreContract):
    @pytest.fixture
    def url(self, address):
        return address


def test_a_foreign_database_is_left_as_it_is(address):
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE TABLE album (title text)")
        with pytest.raises(ValueError, match="tables of another program") as caught:
            Store(address)
        assert "hidden" not in str(caught.value)
        assert connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [
            ("album",)
        ]


def test_the_server_refuses_writes_of_a_reader(address):
    with Store(address) as store:
        store.add(records(trials(2)))
    with Store(address, read_only=True) as reader:
        reader.read_only = False  # the store's own check aside
        with pytest.raises(PermissionError, match="read-only"):
            reader.add(records(trials(3)))


def test_a_server_that_does_not_answer(address):
    with pytest.raises(ConnectionError, match="Check host, port") as caught:
        Store(address.replace("127.0.0.1:", "127.0.0.1:1"))
    assert "hidden" not in str(caught.value)
