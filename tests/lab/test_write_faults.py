"""A disk that fails at the store's first write, at its second, and so on: nothing finished is lost, nothing is doubled.

The failure is simulated below SQLAlchemy, in the connection of sqlite3, before the call has acted or after it has.
"""

import sqlite3
from typing import Any

import pytest

from genscope.lab import Store, check_store, run
from genscope.lab.storage import database
from tests.lab import toys
from tests.lab.test_interruption import leases, stored

WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "CREATE", "PRAGMA journal_mode")


class Disk:
    """Counts writes, and fails at one of them."""

    def __init__(self):
        self.writes, self.fails_at, self.after, self.code = 0, 0, False, sqlite3.SQLITE_IOERR

    def __call__(self, act, *arguments):
        self.writes += 1
        if self.writes != self.fails_at:
            return act(*arguments)
        if self.after:
            act(*arguments)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.code
        raise error

    def connect(self, *arguments, **options):
        """A connection to a file on this disk."""
        disk = self

        class Cursor(sqlite3.Cursor):
            def execute(self, command, *values):
                act = super().execute
                return disk(act, command, *values) if command.startswith(WRITES) else act(command, *values)

            def executemany(self, command, values):
                return disk(super().executemany, command, values)

        class Connection(sqlite3.Connection):
            def cursor(self, factory: Any = Cursor) -> Any:
                return super().cursor(factory)

            def execute(self, command, *values):
                return self.cursor().execute(command, *values)

            def commit(self):
                return disk(super().commit) if self.in_transaction else super().commit()

        return sqlite3.connect(*arguments, **options, factory=Connection)


@pytest.fixture
def disk(monkeypatch):
    made = Disk()

    class Module:
        """The module sqlite3, with this disk below it."""

        def __getattr__(self, name):
            return made.connect if name == "connect" else getattr(sqlite3, name)

    monkeypatch.setattr(database, "sqlite3", Module())
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.5)
    return made


def attempt(url, study):
    """Run a study on the disk; whether it came to its end."""
    try:
        with Store(url) as store:
            run(study, store=store)
    except OSError:
        return False
    return True


def survive(disk, directory, study, every, **kind):
    """Fail at each write in turn; how many writes there are."""
    url = f"sqlite:///{directory}/calm.db"
    assert attempt(url, study)
    expected, writes = stored(url, study), disk.writes
    ended = 0
    for place in range(1, writes + 1, every):
        url = f"sqlite:///{directory}/{place}.db"
        vars(disk).update(writes=0, fails_at=place, **kind)
        ended += attempt(url, study)
        vars(disk).update(writes=0, fails_at=0)
        try:
            before = stored(url, study)
        except Exception:  # it failed before there was a store
            before = set()
        assert before <= expected
        assert attempt(url, study)
        assert stored(url, study) == expected
        assert leases(url) == 0
        assert check_store(url).sound
    return writes, ended


def test_a_run_whose_disk_fails_goes_on_later(disk, tmp_path):
    writes, ended = survive(disk, tmp_path, toys.fixed, every=9)
    assert writes > 30
    assert ended < writes / 9  # most failures end the run, which says so


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL], ids=["broken", "full"])
@pytest.mark.parametrize("study", [toys.fixed, toys.search, toys.stacked], ids=lambda study: study.name)
def test_every_write_fails_in_turn(disk, tmp_path, study, code, after):
    # The 314 writes of a search are of the same kinds as the others': a fifth of them says as much, in minutes.
    survive(disk, tmp_path, study, every=5 if study is toys.search else 1, code=code, after=after)
